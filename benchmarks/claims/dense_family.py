"""Claim 24: load of the busiest rank in a master, shards, a ring and a double binary tree.

Values and fan-in are counted on threads. Beyond 64 ranks they come from the costs that the
collectives declare, which tests compare with counted messages. `dense_latency` has latency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

from sparcml import Communicator

from . import dense_latency, watched
from .base import Answer, Claim, Row
from .dense_latency import costs, details, figure, hops, simulated, timed

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 61_440  # values; a multiple of every number of ranks below
COUNTED = (2, 4, 8, 16, 64)
DECLARED = 1024
NAMES = ("master", "sharded", "ring", "double_binary_tree", "recursive_double")


def busiest(algorithm: str, ranks: int) -> float:
    """Return the formula for values received by the busiest rank, in units of N."""
    return {
        "master": ranks - 1,
        "sharded": 2 * (ranks - 1) / ranks,  # half of it in each of two phases
        "ring": 2 * (ranks - 1) / ranks,
        "double_binary_tree": min(2.0, ranks / 2),
        "recursive_double": ranks.bit_length() - 1,
    }[algorithm]


def first(algorithm: str, ranks: int) -> float:
    """Return the values that the busiest rank receives in the first phase, in units of N."""
    return {
        "master": ranks - 1,
        "sharded": (ranks - 1) / ranks,
        "ring": 1 / ranks,
        "double_binary_tree": min(1.0, ranks / 4),  # halves, of two leaves
        "recursive_double": 1,
    }[algorithm]


def total(algorithm: str, ranks: int) -> int:
    """Return the values sent by all ranks, in units of N."""
    doubling = ranks * (ranks.bit_length() - 1)
    return doubling if algorithm == "recursive_double" else 2 * (ranks - 1)


def fan_in(algorithm: str, ranks: int) -> int:
    """Return the number of peers that send to the busiest rank."""
    return {
        "master": ranks - 1,
        "sharded": ranks - 1,
        "ring": 1,
        "double_binary_tree": min(4, ranks - 1),
        "recursive_double": ranks.bit_length() - 1,
    }[algorithm]


def measure(part: str, algorithm: str, ranks: int) -> list[Row]:
    """Return one row of one part."""
    about = {"part": part, "algorithm": algorithm, "ranks": ranks}
    return [about | PARTS[part](algorithm, ranks)]


def counted(algorithm: str, ranks: int, size: int = SIZE) -> Row:
    """Count the messages between threads."""

    def body(link: watched.Watched) -> Any:
        x = np.arange(1, size + 1, dtype=np.float32) + link.rank
        return Communicator(link).allreduce(x, algorithm=algorithm)

    _, sent = watched.run(ranks, body)
    at_once = [message for message in sent if message.chain == 1]
    return {
        "size": size,
        # What waits for nothing: the first phase.
        "first": max(watched.per_rank(ranks, at_once, "entries", "target")) / size,
        "in": max(watched.per_rank(ranks, sent, "entries", "target")) / size,
        "out": max(watched.per_rank(ranks, sent, "entries")) / size,
        "total": sum(message.entries for message in sent) / size,
        "fan_in": watched.fan_in(ranks, sent),
        "hops": max(message.chain for message in sent),
    }


def declared(algorithm: str, ranks: int, size: int = SIZE) -> Row:
    """Return what the busiest of some ranks declares to send; it receives the same."""
    rounds = costs(algorithm, ranks, size)
    return {
        "size": size,
        "out": max(
            sum(load.expected for turn in of_rank for load in turn.counts())
            for of_rank in rounds
        )
        / size,
        "fan_in": max(
            len({peer for turn in of_rank for peer, _ in turn.sends}) for of_rank in rounds
        ),
        "hops": hops(algorithm, ranks),
    }


PARTS: dict[str, Callable[[str, int], Row]] = {
    "counted": counted,
    "declared": declared,
    "simulated": simulated,
    "timed": timed,
}


def answer(rows: list[Row]) -> Answer:
    """Hit if every count equals its formula and the tree is faster."""
    exact = [row for row in rows if row["part"] == "counted"]
    met = sum(holds(row) for row in exact)
    at = {(r["part"], r["algorithm"], r["ranks"]): r for r in rows}
    ring = at["simulated", "ring", DECLARED]
    tree = at["simulated", "double_binary_tree", DECLARED]
    ours = (
        f"{met} of {len(exact)} sets of counts exact; at {DECLARED:,} ranks and 8 bytes the "
        f"ring takes {ring['us'] / 1e3:.0f} ms and the tree {tree['us'] / 1e3:.1f} ms "
        f"(simulated)"
    )
    hit = met == len(exact) and ring["right"] and tree["us"] < ring["us"]
    why = (
        "the counts equal the formulas; the tree has log2 P rounds per direction, so "
        "2 log2 P messages depend on each other, compared with 2 (P-1) in the ring"
        if hit
        else "some counts differ from the formulas, or the tree is slower; see the tables"
    )
    return Answer(hit, ours, why, _details(rows, at))


def holds(row: Row) -> bool:
    """Return whether a counted row equals the formulas."""
    name, ranks = row["algorithm"], row["ranks"]
    formulas = {"first": first, "in": busiest, "out": busiest, "total": total}
    formulas |= {"fan_in": fan_in, "hops": hops}
    # Kept rows have six digits.
    return all(np.isclose(row[key], of(name, ranks)) for key, of in formulas.items())


def _details(rows: list[Row], at: dict[tuple[str, str, int], Row]) -> str:
    head = ["algorithm", "P", "busiest rank, first phase (N)", "in all (N)"]
    head += ["all ranks send (N)", "fan-in", "chain", "how"]
    lines = [
        [
            row["algorithm"],
            f"{row['ranks']:,}",
            f"{row['first']:.4g}" if "first" in row else "",
            f"{row['out']:,.0f}" if row["out"] >= 1000 else f"{row['out']:.4g}",
            f"{row['total']:,.0f}" if "total" in row else "",
            f"{row['fan_in']:,}",
            f"{row['hops']:,}",
            row["part"],
        ]
        for row in rows
        if row["part"] in ("counted", "declared")
    ]
    formulas = markdown(
        ["algorithm", "first phase", "in all", "all ranks send", "fan-in", "chain"],
        [
            ["master", "(P-1) N", "(P-1) N", "2 (P-1) N", "P-1", "2"],
            ["sharded", "(P-1) N/P", "2 (P-1) N/P", "2 (P-1) N", "P-1", "1 + (P-1) / 4"],
            ["ring", "N/P", "2 (P-1) N/P", "2 (P-1) N", "1", "2 (P-1)"],
            ["double_binary_tree", "<= N", "<= 2 N", "2 (P-1) N", "<= 4", "2 log2 P"],
            ["recursive_double", "N", "log2 P N", "P log2 P N", "log2 P", "log2 P"],
        ],
    )
    size = next(row["size"] for row in rows if row["part"] == "counted")
    return (
        f"{formulas}\n"
        f"The columns give the values that the busiest rank receives in the first phase, before "
        f"any rank waits, and in total; it sends the same number. A chain is the largest "
        f"number of messages that depend on each other, measured with a logical clock per "
        f"rank. (The owner of a shard sends to a few peers at a time, which adds to its "
        f"chain.) Counted with N = {size:,} float32 values, without "
        f"headers; each counted row is compared with these formulas. "
        f"`declared` rows come from the declared cost of each collective, which tests "
        f"compare with counted messages: values and peers of the busiest rank, and "
        f"the chain by its formula.\n\n"
        f"{markdown(head, lines)}\n### Latency of 8 bytes\n\n{details(at)}"
    )


CLAIM = Claim(
    number=24,
    title="Load of the busiest rank in a dense allreduce",
    text=(
        "a single master receives and sends (P-1) N; with shards each machine receives "
        "(P-1) N/P, from P-1 peers; a ring moves 2 (P-1) N in total, with a "
        "fan-in of 1; a double binary tree needs log P rounds and is faster for short vectors"
    ),
    source="a lecture on parameter servers and allreduce",
    how="counted on threads up to 64 ranks; latency simulated up to 1,024",
    seed=0,
    cases=[
        *(("counted", name, ranks) for name in NAMES for ranks in COUNTED),
        *(("declared", name, DECLARED) for name in NAMES),
        *(
            ("simulated", name, ranks)
            for name in dense_latency.NAMES
            for ranks in dense_latency.SIMULATED
        ),
        *(
            ("timed", name, ranks)
            for name in dense_latency.NAMES
            for ranks in dense_latency.TIMED
        ),
    ],
    measure=measure,
    answer=answer,
    figures={"latency": figure},
)
