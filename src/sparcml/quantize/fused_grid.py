"""QSGD's code and the mean of several codes, each in one pass over memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import kernels
from .qsgd import NORMS, QSGD

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from .base import Quantizer

    Floats = NDArray[np.float32]
    Bytes = NDArray[np.uint8]


def fuses(quantizer: Quantizer | None) -> bool:
    """Return whether `GridPasses` has the passes of a quantizer."""
    return (
        isinstance(quantizer, QSGD)
        and quantizer.coder is None
        and quantizer.bucket is not None
        and quantizer.bucket % 8 == 0
        and quantizer.bucket <= kernels.MAX_FUSED_BUCKET
    )


class GridPasses:
    """The passes over one dense vector, for `in_two_passes`.

    Args:
        quantizer: The quantizer, for which `fuses` holds.
        gradient: The new gradient, which `mean` may overwrite.
        residual: The residual; None without error feedback.
        scale: Factor of the residual.
        corrected: Array of the corrected gradient and then of the new residual, which may be
            `residual`; None without error feedback.
        mean: Array for the mean.
        check: Called before anything is sent, with whether all values are finite.
    """

    def __init__(
        self,
        quantizer: Quantizer,
        gradient: Floats,
        residual: Floats | None,
        scale: float,
        corrected: Floats | None,
        mean: Floats,
        check: Callable[[bool], None],
    ) -> None:
        assert isinstance(quantizer, QSGD)
        assert quantizer.bucket is not None
        self._format = (quantizer.bucket, quantizer.s, quantizer.bits)
        self._norm = NORMS[quantizer.norm]
        self._gradient, self._residual, self._scale = gradient, residual, scale
        self._corrected, self._mean, self._check = corrected, mean, check

    def encode(self, seed: int, code: Bytes) -> int:
        """Write the code of the corrected gradient; return the values other than +0.0."""
        nonzeros, finite = kernels.to_grid_corrected(
            self._residual,
            self._gradient,
            self._corrected,
            *self._format,
            self._norm,
            scale=self._scale,
            seed=seed,
            out=code,
        )
        self._check(finite)
        return nonzeros

    def decode(self, codes: Sequence[Bytes], own: int) -> None:
        """Write the mean, and subtract what the others have seen."""
        kernels.mean_from_grid(codes, own, *self._format, self._mean, self._corrected)
