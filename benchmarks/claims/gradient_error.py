"""Error against bytes on the gradient of a real network: one row per code.

The gradient is that of the first layer of the Fashion-MNIST workload over 256 images, after
some steps of training: 50,176 values. Aggregation methods are shown by what one step sends.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from compressors.ours import label
from workloads import WORKLOADS
from workloads.data import fashion_mnist

import sparcml
from sparcml import wire
from sparcml.quantize import Quantizer

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from .base import Row

    Floats = NDArray[np.float32]
    Way = sparcml.Sparsifier | Quantizer | sparcml.PowerSGD

STEPS, ROWS, SEEDS = 200, 256, (1, 2, 3)
SHARES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)

FAMILIES: dict[str, list[Way]] = {
    "TopK": [sparcml.TopK(share) for share in SHARES],
    "TopK k of 512": [sparcml.TopK(k=k, bucket=512) for k in (1, 4, 16, 64)],
    "RandomK": [sparcml.RandomK(share, scaled=False, shared=True) for share in SHARES],
    "Blocks of 16": [sparcml.BlockTopK(share, block=16) for share in SHARES],
    "Threshold": [sparcml.Threshold(ratio=share) for share in SHARES],
    "QSGD": [sparcml.QSGD(bits=bits, bucket=1024) for bits in range(2, 9)],
    "NUQSGD": [sparcml.NUQSGD(bits=bits, bucket=1024) for bits in (3, 4, 5)],
    "TernGrad": [sparcml.TernGrad()],
    "OneBit": [sparcml.OneBit(bucket=1024)],
    "Sign": [sparcml.Sign(bucket=1024)],
    "Natural": [sparcml.Natural()],
    "Half": [sparcml.Half("bfloat16")],
    "PowerSGD": [sparcml.PowerSGD(rank=r, error_feedback=False) for r in (1, 2, 4, 8, 16)],
}
WAYS = {
    f"{family} {i}": way for family, ways in FAMILIES.items() for i, way in enumerate(ways)
}


@cache
def gradient(seed: int) -> Floats:
    """Return the gradient of the first layer after training on one rank."""
    work = WORKLOADS["fashion-mnist"]
    rng = np.random.default_rng(seed)
    weights = work.start(seed)
    for step in range(STEPS + 1):
        rows = rng.integers(0, len(fashion_mnist().labels), ROWS)
        slopes = work.gradient(weights, rows)
        if step < STEPS:
            weights = {n: w - np.float32(work.rate) * slopes[n] for n, w in weights.items()}
    return slopes["first"]


def coded(way: Way, matrix: Floats, seed: int) -> tuple[Any, int]:
    """Return the decoded gradient, flat, and its bytes."""
    x = matrix.reshape(-1)
    if isinstance(way, sparcml.PowerSGD):
        mean, _ = way.aggregate(sparcml.world(), matrix, way.init(matrix.shape))
        return np.asarray(mean).reshape(-1), 4 * way.rank * sum(matrix.shape)
    if isinstance(way, Quantizer):
        code = way.encode(x, seed)
        return way.decode(code).reshape(-1), code.nbytes
    stream = way.select(x, seed)
    if getattr(way, "shared", False):  # all know the places
        return stream.to_dense(), stream.values.nbytes
    return stream.to_dense(), len(wire.encode(stream, wire.Tag(0, 0))[0])


def measure(name: str) -> Row:
    """Return the relative error of one code, mean over the gradients of all seeds."""
    way, found = WAYS[name], [error_of(WAYS[name], seed) for seed in SEEDS]
    return {
        "family": name.rpartition(" ")[0],
        "method": label(way),
        "size": gradient(SEEDS[0]).size,
        "seeds": len(SEEDS),
        **{k: float(np.mean([one[k] for one in found])) for k in found[0]},
    }


def error_of(way: Way, seed: int) -> dict[str, float]:
    """Return bytes, relative error and bias of one code of one gradient."""
    matrix = gradient(seed)
    seen, nbytes = coded(way, matrix, seed)
    x = matrix.reshape(-1).astype(np.float64)
    off = seen - x
    squares = float(np.dot(x, x))
    return {
        "nbytes": nbytes,
        "error": float(np.sqrt(np.dot(off, off) / squares)),
        "bias": float(np.dot(off, x) / squares),
    }


def figure(rows: list[Row]) -> Figure:
    """Plot error against bytes, all families in one figure."""
    from .drawing import COLOURS, axes

    canvas, (ax,) = axes(1, (7.6, 4.4))
    marks = "os^vDP*Xoosd<"
    for i, family in enumerate(FAMILIES):
        mine = [r for r in rows if r["what"] == "error" and r["family"] == family]
        points = sorted((r["nbytes"] / 1e3, r["error"]) for r in mine)
        style = f"-{marks[i]}" if len(points) > 1 else marks[i]
        face = COLOURS[i % 7] if i < 7 else "white"
        ax.plot(
            *zip(*points, strict=True),
            style,
            color=COLOURS[i % 7],
            mfc=face,
            ms=4.5,
            lw=1.2,
            label=family,
        )
    size = next(r["size"] for r in rows if r["what"] == "error")
    ax.axvline(4 * size / 1e3, color="0.6", lw=1, ls=":")
    ax.set(
        xlabel="kB (dotted: as float32)",
        ylabel="relative error",
        xscale="log",
        yscale="log",
    )
    canvas.legend(
        *ax.get_legend_handles_labels(), loc="outside right center", frameon=False
    )
    return canvas
