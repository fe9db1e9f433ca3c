"""Claim 10: a sparse allreduce between an allreduce and an allgather.

With the same support on all ranks it is compared with a dense allreduce of the k values, with
disjoint supports with an allgather of the k pairs. Entries are read from message headers,
since indices are compressed and bytes do not show their number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

from sparcml import Communicator, Stream

from . import watched
from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from numpy.typing import NDArray

SIZE, K = 1 << 20, 1 << 12
RANKS = (2, 4, 8, 16)
SEED = 1

# The dense allreduce that adds in the same order and passes the same messages.
DENSE_TWIN = {
    "ssar_recursive_double": "recursive_double",
    "ssar_split_allgather": "sharded",
}


def closed_form(algorithm: str, supports: str, ranks: int, k: int = K) -> int:
    """Return the entries that each rank sends if indices are spread evenly."""
    others = k * (ranks - 1) // ranks
    rounds = ranks.bit_length() - 1
    return {
        ("ssar_recursive_double", "identical"): rounds * k,
        ("ssar_recursive_double", "disjoint"): (ranks - 1) * k,
        ("ssar_split_allgather", "identical"): 2 * others,
        ("ssar_split_allgather", "disjoint"): others + (ranks - 1) * k,
    }[algorithm, supports]


def vectors(supports: str, ranks: int, size: int, k: int) -> list[Stream]:
    """Return one index at random in each k-th of the vector."""
    rng = np.random.default_rng(SEED)
    cell = size // k
    places = rng.permuted(np.tile(np.arange(cell), (k, 1)), axis=1)[:, :ranks]
    if supports == "identical":
        places = np.repeat(places[:, :1], ranks, axis=1)
    indices = places + cell * np.arange(k)[:, None]
    values = rng.standard_normal((ranks, k)).astype(np.float32)
    return [Stream(size, indices[:, rank], values[rank]) for rank in range(ranks)]


def measure(
    supports: str, algorithm: str, ranks: int, size: int = SIZE, k: int = K
) -> list[Row]:
    """Compare the sparse allreduce with its counterpart."""
    inputs = vectors(supports, ranks, size, k)

    def sparse(link: watched.Watched) -> Stream:
        total = Communicator(link).allreduce(inputs[link.rank], algorithm=algorithm)
        assert isinstance(total, Stream)
        return total

    totals, sent = watched.run(ranks, sparse)
    if supports == "identical":
        twin = DENSE_TWIN[algorithm]
        want, twin_sent = _dense(inputs, twin)
    else:
        twin = "allgather"
        want, twin_sent = _gathered(inputs)
    equal = all(np.array_equal(total.to_dense(), want) for total in totals)
    entries = watched.per_rank(ranks, sent, "entries")
    return [
        {
            "supports": supports,
            "algorithm": algorithm,
            "ranks": ranks,
            "size": size,
            "k": k,
            "entries": max(entries),
            "entries_least": min(entries),
            "closed_form": closed_form(algorithm, supports, ranks, k),
            "bytes": max(watched.per_rank(ranks, sent, "nbytes")),
            "twin": twin,
            "twin_entries": max(watched.per_rank(ranks, twin_sent, "entries")),
            "twin_bytes": max(watched.per_rank(ranks, twin_sent, "nbytes")),
            "equal": equal,
        }
    ]


def _dense(
    inputs: list[Stream], algorithm: str
) -> tuple[NDArray[np.float32], list[watched.Sent]]:
    """Allreduce the values only, and restore their indices."""

    def body(link: watched.Watched) -> Any:
        return Communicator(link).allreduce(inputs[link.rank].values, algorithm=algorithm)

    totals, sent = watched.run(len(inputs), body)
    want = np.zeros(inputs[0].size, np.float32)
    want[inputs[0].indices] = totals[0]
    return want, sent


def _gathered(inputs: list[Stream]) -> tuple[NDArray[np.float32], list[watched.Sent]]:
    """Allgather the streams, and join them to one vector."""

    def body(link: watched.Watched) -> list[Stream]:
        return Communicator(link).allgather(inputs[link.rank])

    gathered, sent = watched.run(len(inputs), body)
    want = np.zeros(inputs[0].size, np.float32)
    for stream in gathered[0]:
        want[stream.indices] = stream.values
    return want, sent


def answer(rows: list[Row]) -> Answer:
    """Hit if results are equal bit for bit and entries equal the closed forms."""
    equal = sum(row["equal"] for row in rows)
    met = sum(row["entries"] == row["entries_least"] == row["closed_form"] for row in rows)
    hit = equal == met == len(rows)
    ours = f"{equal} of {len(rows)} results equal, {met} of {len(rows)} entry counts exact"
    return Answer(hit, ours, _why(rows, hit), _details(rows))


def _why(rows: list[Row], hit: bool) -> str:
    if not hit:
        return "a result or count differs from the claim; see the table"
    same = [
        name
        for name in DENSE_TWIN
        if all(r["entries"] == r["twin_entries"] for r in rows if r["algorithm"] == name)
    ]
    largest = max(row["ranks"] for row in rows)
    more = (
        closed_form("ssar_split_allgather", "disjoint", largest) / (K * (largest - 1)) - 1
    )
    return (
        f"{' and '.join(same)} sends exactly the entries of its counterpart at both ends; "
        f"the split sends (P-1)/P k more than an allgather ({more:.1%} at {largest} ranks), "
        f"since it does not assume that supports are disjoint"
    )


def _details(rows: list[Row]) -> str:
    head = ["supports", "algorithm", "P", "entries/k", "formula/k", "compared with"]
    head += ["its entries/k", "B/entry", "its B/entry", "same result"]
    lines = []
    for row in rows:
        k, entries = row["k"], row["entries"]
        cells = [row["supports"], row["algorithm"], str(row["ranks"])]
        cells += [f"{entries / k:.4g}", f"{row['closed_form'] / k:.4g}"]
        cells += [row["twin"], f"{row['twin_entries'] / k:.4g}"]
        cells += [f"{row['bytes'] / entries:.2f}"]
        cells += [f"{row['twin_bytes'] / row['twin_entries']:.2f}"]
        lines.append([*cells, "yes" if row["equal"] else "no"])
    one = rows[0]
    return (
        f"N = {one['size']:,} float32 values, k = {one['k']:,} nonzeros per rank, "
        f"spread evenly. Entries are those that each rank sends, read from the headers of "
        f"its messages. Equal results have the same bits. The entries of a dense allreduce "
        f"have no index: 4 B each and the headers; "
        f"with 32-bit indices a pair has 8 B, with compressed indices less.\n\n"
        f"The formulas: recursive doubling k log2 P and (P-1) k; split and allgather "
        f"2 (P-1)/P k and (P-1)/P k + (P-1) k.\n\n{markdown(head, lines)}"
    )


CLAIM = Claim(
    number=10,
    title="Sparse allreduce, between allreduce and allgather",
    text=(
        "a sparse allreduce generalizes two known collectives: with equal supports it is "
        "an allreduce of the k entries, with disjoint supports an allgather"
    ),
    source="a talk on sparse allreduce",
    how="counted, on threads",
    seed=SEED,
    cases=[(s, a, p) for s in ("identical", "disjoint") for a in DENSE_TWIN for p in RANKS],
    measure=measure,
    answer=answer,
    figures={},
)
