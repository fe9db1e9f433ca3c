"""Claim 31: quantized models do not converge, quantized differences do."""

from __future__ import annotations

from decentralized.rows import RING, final_gap, load, of
from tables import markdown

from .base import Answer, Claim, Row

BITS, FLOOR, NEAR = 4, 10.0, 2.0
METHODS = ("naive", "DCD", "ECD", "Choco")


def measure() -> list[Row]:
    """Return the saved rows of run_decentralized.py."""
    return load("compressed", "check", "bytes")


def answer(rows: list[Row]) -> Answer:
    """Hit if naive stalls 10x above D-PSGD, DCD does not, and bytes do not grow with nodes."""
    base = final_gap(rows, RING, 0)
    gaps = {method: final_gap(rows, method, BITS) / base for method in METHODS}
    counts = {
        method: {row["bytes"] for row in of(rows, "bytes", method=method)}
        for method in (RING, *METHODS)
    }
    fixed = all(len(each) == 1 for each in counts.values())
    hit = gaps["naive"] >= FLOOR and gaps["DCD"] <= NEAR and fixed
    ours = (
        f"loss above the minimum at {BITS} bits on a 112-node ring, relative to D-PSGD in "
        f"float32: naive {gaps['naive']:.0f}x, DCD {gaps['DCD']:.2f}x, Choco "
        f"{gaps['Choco']:.2f}x, ECD {gaps['ECD']:,.0f}x; "
        f"{'the same bytes' if fixed else 'different bytes'} per node on 8 to 112 nodes"
    )
    why = (
        "the error of a quantized model is relative to the model and stays; that of a "
        "difference vanishes with it. ECD is no exception in theory, but it extrapolates by t/2, "
        f"and the error of this quantizer grows with its input: at {BITS} bits it diverges"
        if hit
        else "naive is not 10x above D-PSGD, or DCD is not near it, or bytes grow; see the table"
    )
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    head = ["method", "bits", "mean model", "vs D-PSGD", "single nodes", "vs D-PSGD"]
    base = {kind: final_gap(rows, RING, 0, kind) for kind in ("mean", "local")}
    lines = []
    for row in of(rows, "compressed"):
        cells = [row["method"], str(row["bits"] or "float32")]
        for kind in ("mean", "local"):
            gap = row[kind][-1]
            cells += [f"{gap:.2e}", f"{gap / base[kind]:,.2f}x"]
        lines.append(cells)
    apart = {row["method"]: row["apart"] for row in of(rows, "check")}
    worst = max(apart.values(), default=0.0)
    return (
        "[Decentralized training](decentralized.md) has the curves. "
        "Loss above the minimum of a linear model with weight decay on Fashion-MNIST, after the "
        "last step, on a ring of 112 nodes: at the mean of all models, and the mean over single "
        "nodes. All methods have the same learning rates and batches. The nodes are computed in "
        f"one process; on 16 nodes the models differ from those of the library by at most "
        f"{worst:.1e}.\n\n{markdown(head, lines)}"
    )


CLAIM = Claim(
    number=31,
    title="Quantize differences, not models",
    text=(
        "quantizing the models that neighbours exchange does not converge; sending the "
        "quantized difference to a replica does"
    ),
    source="a talk on communication in machine learning",
    how="simulated",
    seed=1,
    cases=[()],
    measure=measure,
    answer=answer,
    figures={},
)
