"""Claim 1: one bit per value, the talk's example, and a problem that needs feedback."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
from tables import markdown

from sparcml import OneBit

from .base import Answer, Claim, Row

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "one_bit_stalls.py"
VALUES = (0.1, -0.3, 0.5, -0.1, 0.0)
SAID = (0.2, -0.2, 0.2, -0.2, 0.2)
SIZE = 1 << 20
STALLS, MENDS = 10.0, 1.1  # times the dense loss: at least, at most


def measure(what: str) -> list[Row]:
    """Return rows of the talk's example, of code sizes, or of training losses."""
    return {"example": _example, "bits": _bits, "losses": _losses}[what]()


def _example() -> list[Row]:
    code = OneBit()
    got = code.decode(code.encode(np.array(VALUES, np.float32))).reshape(-1)
    return [
        {"what": "example", "value": v, "got": float(g)}
        for v, g in zip(VALUES, got, strict=True)
    ]


def _bits() -> list[Row]:
    values = np.random.default_rng(1).standard_normal(SIZE, np.float32)
    buckets = {"one bucket": OneBit(), "buckets of 1024": OneBit(bucket=1024)}
    return [
        {"what": "bits", "method": name, "bits": 8 * code.encode(values).nbytes / SIZE}
        for name, code in buckets.items()
    ]


def _losses() -> list[Row]:
    found: dict[str, float] = runpy.run_path(str(EXAMPLE))["losses"]()
    return [
        {"what": "losses", "method": name, "loss": value, "ratio": value / found["dense"]}
        for name, value in found.items()
    ]


def answer(rows: list[Row]) -> Answer:
    """Hit if the example is reproduced, and only runs without feedback stall."""
    got = [row["got"] for row in _of(rows, "example")]
    alike = np.allclose(got, SAID, atol=1e-6)
    stalled = [r["ratio"] for r in _of(rows, "losses") if "no feedback" in r["method"]]
    mended = [r["ratio"] for r in _of(rows, "losses") if "with feedback" in r["method"]]
    bits = {row["method"]: row["bits"] for row in _of(rows, "bits")}
    most = max(bits.values())
    hit = bool(alike and min(stalled) >= STALLS and max(mended) <= MENDS and 32 / most > 30)
    ours = (
        f"({', '.join(f'{g:+.1f}' for g in got)}); {32 / most:.1f}x to "
        f"{32 / min(bits.values()):.1f}x smaller; without feedback {min(stalled):.0f}x the "
        f"dense loss, with feedback {max(mended):.2f}x"
    )
    why = (
        "the means of the positive and of the negative values represent all of them; without "
        "feedback, a rare large gradient counts by its frequency and not by its "
        "magnitude"
        if hit
        else "the example, the stall or the effect of feedback is not as claimed; see the table"
    )
    return Answer(hit, ours, why, _details(rows))


def _of(rows: list[Row], what: str) -> list[Row]:
    return [row for row in rows if row["what"] == what]


def _details(rows: list[Row]) -> str:
    losses = [
        [row["method"], f"{row['loss']:.4f}", f"{row['ratio']:.2f}x"]
        for row in _of(rows, "losses")
    ]
    bits = [
        [row["method"], f"{row['bits']:.4f}", f"{32 / row['bits']:.1f}x"]
        for row in _of(rows, "bits")
    ]
    return (
        f"2^20 Gaussian values, with two means per bucket:\n\n"
        f"{markdown(['1-bit', 'bits per value', 'compression ratio'], bits)}\n"
        f"`examples/one_bit_stalls.py`: least squares where one measurement of ten is too "
        f"high by 9 and the others are too low by 1; 4 ranks, 200 steps, the same learning "
        f"rate for all. The loss is the mean squared distance to the optimum over the last 50 "
        f"steps: without feedback it must be at least {STALLS:g}x that of the dense run, and "
        f"with feedback at most {MENDS:g}x.\n\n"
        f"{markdown(['method', 'loss', 'relative to dense'], losses)}"
    )


CLAIM = Claim(
    number=1,
    title="One bit per value",
    text=(
        "1-bit of (0.1, -0.3, 0.5, -0.1, 0) is (+.2, -.2, +.2, -.2, +.2); about 32x smaller; "
        "it does not always converge, but does with error feedback"
    ),
    source="a talk on communication in training",
    how="measured, on threads",
    seed=1,
    cases=[("example",), ("bits",), ("losses",)],
    measure=measure,
    answer=answer,
    figures={},
)
