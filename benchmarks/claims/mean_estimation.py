"""Claim 4: cost of a mean in bits, and lower bounds.

Each of 8 ranks has a Gaussian vector; the codes are decoded and averaged in full precision.
Errors are relative to the error of sending nothing, so that they do not depend on the number
of ranks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from compressors.ours import label
from tables import markdown

import sparcml
from sparcml import wire
from sparcml.quantize import Quantizer

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SIZE, RANKS, TRIALS, SEED = 1 << 14, 8, 4, 1
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)
BITS = range(2, 9)
LEVELS = (1, 2, 4, 8, 16, 32, 64)

MARKS = "osD^vPX*hd"

Way = sparcml.Sparsifier | Quantizer


def families() -> dict[str, Sequence[Way]]:
    """Return the codes by family, from few bits to many."""
    whole: dict[str, Any] = {"bucket": SIZE, "norm": "l2", "coder": "elias"}
    return {
        "RandomK": [sparcml.RandomK(share, shared=True) for share in SHARES],
        "TopK": [sparcml.TopK(share) for share in SHARES],
        "QSGD, Elias": [sparcml.QSGD(levels=s, **whole) for s in LEVELS],
        "QSGD": [sparcml.QSGD(bits=bits) for bits in BITS],
        "NUQSGD": [sparcml.NUQSGD(bits=bits) for bits in (3, 4, 5)],
        "OneBit": [sparcml.OneBit(bucket=1024)],
        "Sign": [sparcml.Sign(bucket=1024)],
        "TernGrad": [sparcml.TernGrad(clip=None)],
        "Natural": [sparcml.Natural()],
        "Half": [sparcml.Half()],
    }


def coded(way: Way, x: NDArray[np.float32], seed: int) -> tuple[NDArray[Any], int]:
    """Return the decoded vector and the bits of its code."""
    if isinstance(way, Quantizer):
        code = way.encode(x, seed)
        return way.decode(code).reshape(-1), 8 * code.nbytes
    stream = way.select(x, seed)
    if getattr(way, "shared", False):  # all know the places
        return stream.to_dense(), 8 * stream.values.nbytes
    return stream.to_dense(), 8 * len(wire.encode(stream, wire.Tag(0, 0))[0])


def measure(family: str, place: int, trials: int = TRIALS) -> list[Row]:
    """Return the error of the mean and the bits per rank of one code."""
    way = families()[family][place]
    errors, bits = [], []
    for trial in range(trials):
        rng = np.random.default_rng([SEED, trial])
        vectors = rng.standard_normal((RANKS, SIZE), np.float32)
        # Ranks with a shared seed pick the same places; here all have their own.
        found = [coded(way, v, trial * RANKS + i) for i, v in enumerate(vectors)]
        off = np.mean([seen for seen, _ in found], axis=0) - vectors.mean(axis=0)
        alone = np.mean(np.sum(vectors.astype(np.float64) ** 2, axis=1)) / RANKS
        errors.append(float(np.sum(off.astype(np.float64) ** 2) / alone))
        bits.append(float(np.mean([b for _, b in found])))
    return [
        {
            "family": family,
            "method": label(way),
            "biased": bool(way.biased),
            "bits": float(np.mean(bits)) / SIZE,
            "error": float(np.mean(errors)),
        }
    ]


def few_bits(bits: float) -> float:
    """Return d/B, the variance that an unbiased code of fewer than one bit per value adds."""
    return 1 / bits


def any_code(bits: float) -> float:
    """Return the distortion-rate bound of Gaussian values (Shannon)."""
    return float(2.0 ** (-2 * bits))


def answer(rows: list[Row]) -> Answer:
    """Hit if no code is below the bounds, and errors fall 4 times with each further bit."""
    scarce = [row for row in rows if row["bits"] < 1 and not row["biased"]]
    over = [row["error"] / few_bits(row["bits"]) for row in scarce]
    above = [row["error"] / any_code(row["bits"]) for row in rows]
    pace = per_bit(rows)
    hit = bool(scarce) and min(over) >= 1 and min(above) >= 1 and abs(pace - 2) < 0.35
    ours = (
        f"{len(scarce)} unbiased codes below 1 bit per value have {min(over):.1f} to "
        f"{max(over):.0f} times d/B; above it the error of QSGD falls by 2^{pace:.2f} with every "
        f"bit, and none of {len(rows)} codes is below 2^(-2B/d)"
    )
    why = (
        "with B < d bits some coordinates are not sent, and an unbiased code must compensate "
        "for them; with more bits, each halving of the deviation costs one bit per coordinate, "
        "which is the d log 1/eps of the bound. The term d log d applies to the worst vectors and "
        "does not show for Gaussian ones"
        if hit
        else "a code is below a bound, or errors do not fall as expected; see the table"
    )
    return Answer(hit, ours, why, _details(rows))


def per_bit(rows: list[Row]) -> float:
    """Return the exponent of 2 by which QSGD's error falls per bit, from 3 bits on."""
    found = [(row["bits"], row["error"]) for row in rows if row["family"] == "QSGD"]
    bits, errors = zip(*(pair for pair in found if pair[0] > 2.9), strict=True)
    return float(-np.polyfit(bits, np.log2(errors), 1)[0])


def _details(rows: list[Row]) -> str:
    head = ["method", "bits per value", "error", "d/B", "2^(-2B/d)", "biased"]
    lines = []
    for row in rows:
        bound = few_bits(row["bits"])
        cells = [f"`{row['method']}`", f"{row['bits']:.3f}", f"{row['error']:.3g}"]
        cells += [f"{bound:.3g}" if row["bits"] < 1 else ""]
        cells += [f"{any_code(row['bits']):.2g}", "yes" if row["biased"] else "no"]
        lines.append(cells)
    return (
        f"Vectors of {SIZE:,} values on {RANKS} ranks, {TRIALS} trials. The error is "
        f"P ‖mean of codes - mean‖^2 / ‖v‖^2, which is 1 for sending nothing. Two bounds: unbiased "
        f"codes of B < d bits add a variance of at least d/B; and no code of B bits, biased or "
        f"not, has an error below 2^(-2B/d) on Gaussian values (distortion-rate function), that is "
        f"B >= d/2 log2(1/error).\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot error against bits, with both bounds."""
    from .drawing import BLACK, COLOURS, axes

    canvas, (ax,) = axes(1, (7.0, 4.2))
    names = list(dict.fromkeys(row["family"] for row in rows))
    for i, name in enumerate(names):
        mine = sorted((r["bits"], r["error"]) for r in rows if r["family"] == name)
        style = f"-{MARKS[i]}" if len(mine) > 1 else MARKS[i]
        colour, face = COLOURS[i % 5], None if i < 5 else "white"
        ax.plot(*zip(*mine, strict=True), style, color=colour, mfc=face, ms=5, label=name)
    scarce, many = np.geomspace(0.05, 1, 20), np.linspace(0.05, 11, 100)
    ax.plot(scarce, 1 / scarce, color=BLACK, ls="--", label="d/B, unbiased codes")
    ax.plot(many, 2.0 ** (-2 * many), color=BLACK, ls=":", label="$2^{-2B/d}$, all codes")
    ax.set(xlabel="bits per value", ylabel="error of the mean", xscale="log", yscale="log")
    ax.set_xticks([0.1, 0.3, 1, 2, 4, 8, 16], ["0.1", "0.3", "1", "2", "4", "8", "16"])
    canvas.legend(
        *ax.get_legend_handles_labels(), loc="outside right center", frameon=False
    )
    return canvas


CLAIM = Claim(
    number=4,
    title="Error against bits",
    text=(
        "fewer than B bits per round add a variance of d/B; an error of eps requires "
        "Omega(d (log d + log 1/eps)) bits (Tsitsiklis and Luo)"
    ),
    source="a talk on communication in training",
    how="measured",
    seed=SEED,
    cases=[(family, i) for family, ways in families().items() for i in range(len(ways))],
    measure=measure,
    answer=answer,
    figures={"mean-estimation": figure},
)
