"""Claim 27: quantizing a partial sum at every hop makes the error grow with the hops.

The library rejects a quantizer on its ring, for this reason. Here the same ring runs with one:
partial sums are quantized P - 1 times, and the full sum once. The split algorithm quantizes
each value once at its sender, and the sum once at its owner, for any P.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

from sparcml import QSGD, Communicator, Half, Stream
from sparcml.collectives.dense.ring import ring
from sparcml.communicator.session import Session

from . import watched
from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from sparcml.quantize import Quantizer

SIZE = 1 << 16
RANKS = (2, 4, 8, 16, 32, 64)
SEEDS = range(1, 6)
CODERS: dict[str, Quantizer] = {
    "QSGD8": QSGD(8),
    "bfloat16": Half("bfloat16"),
    "float16": Half(),
}
# Also of rows that were kept when there was a Byte, which rounded to nearest.
TITLES = {
    "QSGD8": "QSGD, 8 bits",
    "Byte": "Byte, 8 bits",
    "bfloat16": "bfloat16",
    "float16": "float16",
}
SPLIT = "dsar_split_allgather"
GROWS, STAYS = 0.35, 0.1  # slopes that count as growth, and as none


def vectors(
    ranks: int, seeds: Sequence[int] = SEEDS, size: int = SIZE
) -> list[NDArray[np.float32]]:
    """Return Gaussian values per rank; the draws of all seeds are concatenated."""
    draws = [
        np.random.default_rng([seed, ranks]).standard_normal((ranks, size), np.float32)
        for seed in seeds
    ]
    return list(np.concatenate(draws, axis=1))


def requantizing_ring(
    link: watched.Watched, x: NDArray[np.float32], coder: Quantizer
) -> NDArray[np.float32]:
    """Run the library's ring with the quantizer that its public call rejects."""
    stream = Stream.from_dense(x)
    with Session(link).call("ring", "sum", stream, coder) as call:
        return ring(call, stream).to_dense()


def split(
    link: watched.Watched, x: NDArray[np.float32], coder: Quantizer
) -> NDArray[np.float32]:
    """Run the public call."""
    total: Any = Communicator(link).allreduce(x, algorithm=SPLIT, quantize=coder)
    return np.asarray(total)


METHODS = {"ring": requantizing_ring, "split": split}


def _one(
    method: Callable[[watched.Watched, NDArray[np.float32], Quantizer], NDArray[Any]],
    inputs: list[NDArray[np.float32]],
    coder: Quantizer,
    link: watched.Watched,
) -> NDArray[Any]:
    return method(link, inputs[link.rank], coder)


def measure(
    coder: str, ranks: int, seeds: Sequence[int] = SEEDS, size: int = SIZE
) -> list[Row]:
    """Return the relative errors of both, on the same vectors.

    One allreduce carries the draws of all seeds: messages cost more time here than values.
    """
    inputs = vectors(ranks, seeds, size)
    exact = np.asarray(np.sum(inputs, axis=0, dtype=np.float64))
    quantizer = CODERS[coder]
    rows = []
    for name, method in METHODS.items():
        totals, sent = watched.run(ranks, partial(_one, method, inputs, quantizer))
        about = {"coder": coder, "method": name, "ranks": ranks, "size": size}
        facts = {
            "all_coded": all(m.formats == {quantizer.wire_format} for m in sent),
            "same_bits": all(np.array_equal(t, totals[0]) for t in totals),
        }
        for seed, got, want in zip(
            seeds, parted(totals[0], size), parted(exact, size), strict=True
        ):
            error = float(np.linalg.norm(got - want) / np.linalg.norm(want))
            rows.append(about | {"seed": seed, "error": error} | facts)
    return rows


def parted(x: NDArray[Any], size: int) -> list[NDArray[Any]]:
    """Return the draw of each seed."""
    return list(x.reshape(-1, size))


def predicted(method: str, ranks: int) -> float:
    """Return the error in units of a single quantization, if errors are independent.

    Quantizing a sum of j vectors adds a variance of j, and the exact sum has a variance of P.
    The ring quantizes sums of 1 to P - 1 vectors, then the full one; the split P - 1 single
    vectors, since an owner does not quantize its own, then the full sum.
    """
    on_the_way = ranks * (ranks - 1) / 2 if method == "ring" else ranks - 1
    return float(np.sqrt((on_the_way + ranks) / ranks))


def quartiles(rows: list[Row], coder: str, method: str) -> dict[int, NDArray[np.float64]]:
    """Return the quartiles of the error over seeds, by ranks."""
    return {
        ranks: np.quantile(
            [
                row["error"]
                for row in rows
                if (row["coder"], row["method"], row["ranks"]) == (coder, method, ranks)
            ],
            [0.25, 0.5, 0.75],
        )
        for ranks in sorted({row["ranks"] for row in rows})
    }


def slope(rows: list[Row], coder: str, method: str) -> float:
    """Return the exponent g of error ~ P^g: the slope through the medians, log-log."""
    found = quartiles(rows, coder, method)
    medians = [middle for _, middle, _ in found.values()]
    return float(np.polyfit(np.log(list(found)), np.log(medians), 1)[0])


def measured(rows: list[Row]) -> list[str]:
    """Return the quantizers of the rows."""
    found = {row["coder"] for row in rows}
    return [coder for coder in TITLES if coder in found]


def answer(rows: list[Row]) -> Answer:
    """Hit if the ring's error grows with every quantizer, and the split's does not."""
    coders = measured(rows)
    rings = [slope(rows, coder, "ring") for coder in coders]
    splits = [slope(rows, coder, "split") for coder in coders]
    most = max(row["ranks"] for row in rows)
    worse = [
        quartiles(rows, coder, "ring")[most][1] / quartiles(rows, coder, "split")[most][1]
        for coder in coders
    ]
    grows = min(rings) > GROWS and max(map(abs, splits)) < STAYS
    hit = grows and all(row["all_coded"] for row in rows)
    ours = (
        f"error of the ring ~ P^g with g = {_span(rings, '.2f')}, of the split with g = "
        f"{_span(splits, '.2f')}; at {most} ranks the ring's is {_span(worse, '.1f')} times "
        f"larger"
    )
    why = (
        "each hop quantizes a partial sum that is larger than the previous one, so errors add up "
        "to sqrt((P+1)/2) times that of one quantization; in the split no value is quantized more "
        "than twice, and they stay below sqrt(2) times"
        if hit
        else f"slopes are not above {GROWS} for the ring and within {STAYS} of 0 for the split"
    )
    return Answer(hit, ours, why, _details(rows))


def _span(numbers: list[float], spec: str) -> str:
    """Return the range of the numbers, or one number if they print the same."""
    least, most = format(min(numbers), spec), format(max(numbers), spec)
    return least if least == most else f"{least} to {most}"


def _details(rows: list[Row]) -> str:
    ranks = sorted({row["ranks"] for row in rows})
    head = ["quantizer", "algorithm", *(f"P = {p}" for p in ranks), "slope"]
    lines = []
    for coder, method in product(measured(rows), METHODS):
        found = quartiles(rows, coder, method)
        cells = [f"{found[p][1]:.3g}" for p in ranks]
        name = "ring, quantized at every hop" if method == "ring" else SPLIT
        lines.append([coder, name, *cells, f"{slope(rows, coder, method):.2f}"])
    for method in METHODS:
        cells = [f"{predicted(method, p):.3g}" for p in ranks]
        lines.append(["predicted, in units of one quantization", method, *cells, ""])
    spread = max(
        (high - low) / middle
        for coder, method in product(measured(rows), METHODS)
        for low, middle, high in quartiles(rows, coder, method).values()
    )
    coded = f"{'Every' if all(r['all_coded'] for r in rows) else 'Not every'} message was quantized"
    same = (
        "all ranks ended with the same bits, in the ring too, since the full sum is quantized "
        "once and forwarded unchanged"
        if all(row["same_bits"] for row in rows)
        else "ranks ended with different bits"
    )
    seeds = len({row["seed"] for row in rows})
    return (
        f"Relative error of the sum, |sum - exact| / |exact| in the 2-norm, of "
        f"{rows[0]['size']:,} Gaussian float32 values per rank: medians of {seeds} "
        f"seeds (quartiles differ by at most {spread:.1%} of the median). The slope is "
        f"that of a line through the medians on logarithmic axes: the error grows as "
        f"P^slope, which tends to 1/2 for the ring and 0 for the split. {coded}; {same}. "
        f"Predicted is the error in units of that of a single quantization, if all of them are "
        f"independent.\n\n"
        f"The ring is the library's own, run with a quantizer; the public call rejects "
        f"that, for the reason shown here.\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot error against ranks, one panel per quantizer."""
    from .drawing import BLUE, ORANGE, axes

    coders = measured(rows)
    canvas, sheets = axes(len(coders), (8.0, 3.2))
    labels = {
        "ring": ("ring, quantized at every hop", ORANGE, "-o"),
        "split": ("split, quantized at most twice", BLUE, "-s"),
    }
    for ax, coder in zip(sheets, coders, strict=True):
        for method, (label, colour, style) in labels.items():
            found = quartiles(rows, coder, method)
            low, middle, high = zip(*found.values(), strict=True)
            ax.fill_between(list(found), low, high, color=colour, alpha=0.3, lw=0)
            ax.plot(list(found), middle, style, color=colour, ms=4, label=label)
            text = f"$P^{{{slope(rows, coder, method):.2f}}}$"
            ax.annotate(text, (max(found), middle[-1]), (4, 0), textcoords="offset points")
        ax.set(xlabel="ranks", xscale="log", yscale="log", title=TITLES[coder])
        ax.set_xlim(1.7, 170)  # room for the slopes
        ax.set_xticks(list(found), [str(ranks) for ranks in found])
    sheets[0].set_ylabel("relative error of the sum")
    canvas.legend(
        *sheets[0].get_legend_handles_labels(), loc="outside upper center", ncols=2
    )
    return canvas


CLAIM = Claim(
    number=27,
    title="Quantizing at every hop",
    text=(
        "a quantized allreduce has to quantize partial sums again: its error grows with the "
        "number of hops"
    ),
    source="a lecture on gradient compression",
    how="measured, on threads",
    seed=SEEDS[0],
    cases=list(product(CODERS, RANKS)),
    measure=measure,
    answer=answer,
    figures={"requantize": figure},
)
