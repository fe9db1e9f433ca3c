"""Natural compression (Horvath et al., 2019): sign and exponent, the fraction at random."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from .. import kernels
from .base import Quantizer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Natural(Quantizer):
    """At random to one of the two powers of two around a value, which is the mean.

    There are no norms and no buckets: 9 bits a value, whatever its neighbours are. Below
    2^-126 the neighbours are that and zero; from 2^127 on the upper one is infinite.
    """

    biased: ClassVar[bool] = False

    def nbytes(self, count: int) -> int:
        """Nine bits a value: a byte, and a bit in a plane of signs."""
        return count + -(-count // 8)

    def omega(self, size: int) -> float:
        """E||Q(v) - v||^2 <= omega ||v||^2, for values of at least 2^-126 and zeros."""
        del size
        return 1 / 8

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        """Exponents, then signs."""
        kernels.to_natural(values, seed=seed, out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        """Powers of two."""
        kernels.from_natural(data, out.size, out)

    @property
    def wire_format(self) -> int:
        """7."""
        return 7

    @property
    def settings(self) -> bytes:
        """None: the number says it all."""
        return b""
