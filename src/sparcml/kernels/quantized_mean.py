"""The mean of quantized vectors in two passes over memory.

`to_grid_corrected` equals `add_residual`, `count_nonfill` and `to_grid`, `mean_from_grid`
equals `from_grid` of each code, their sum by `combine_dense`, a division, and the subtraction of
one of the vectors. Values stay in the first-level cache between these loops.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import _core
from .quantization import MAX_NORM

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .quantization import Bytes, Floats

MAX_FUSED_BUCKET = _core.MAX_FUSED_BUCKET  # a bucket must also be a multiple of 8


def to_grid_corrected(
    residual: Floats | None,
    gradient: Floats,
    corrected: Floats | None,
    bucket: int,
    levels: int,
    bits: int,
    norm: int = MAX_NORM,
    *,
    scale: float = 1.0,
    seed: int = 0,
    out: Bytes,
) -> tuple[int, bool]:
    """Write the code of scale * residual + gradient, of the gradient without a residual.

    Args:
        residual: The residual, or None.
        gradient: The gradient.
        corrected: Array for the sum, which may be the residual; None without a residual.
        bucket: Number of values per norm.
        levels: Number of levels on each side of zero.
        bits: Bits per value.
        norm: `MAX_NORM` or `L2_NORM`.
        scale: Factor of the residual.
        seed: Random seed.
        out: The code.

    Returns:
        The number of encoded values other than +0.0, and whether all of them are finite.
    """
    return _core.to_grid_corrected(
        residual, gradient, scale, corrected, bucket, levels, bits, norm, seed, out
    )


def mean_from_grid(
    codes: Sequence[Bytes],
    own: int,
    bucket: int,
    levels: int,
    bits: int,
    mean: Floats,
    corrected: Floats | None = None,
) -> None:
    """Write the mean of the vectors of several codes, which are added in the given order.

    Args:
        codes: Codes of `to_grid`.
        own: Position of the code whose vector is subtracted from `corrected`.
        bucket: Number of values per norm.
        levels: Number of levels on each side of zero.
        bits: Bits per value.
        mean: Array for the mean.
        corrected: Corrected gradient, which becomes the residual; None without one.
    """
    _core.mean_from_grid(list(codes), own, bucket, levels, bits, mean, corrected)
