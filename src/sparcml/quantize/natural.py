"""Natural compression: the sign and a randomly rounded exponent.

Reference: Horvath, Ho, Horvath, Sahu, Canini, Richtarik: Natural Compression for Distributed
Deep Learning, 2019.
"""

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
    """Round each value at random to one of the two powers of two around it.

        Q(v) = sign(v) 2^(e + b), e = floor(log2 |v|), b in {0, 1}
        P(b = 1) = |v| / 2^e - 1
        E Q(v) = v, E ||Q(v) - v||^2 <= 1/8 ||v||^2, in 9 bits per value

    There are no norms and no buckets. Below 2^-126 the two neighbours are 2^-126 and zero; from
    2^127 on the upper one is infinite. With `nonfinite="propagate"`, NaN and infinities are decoded
    as they are.
    """

    name = "natural"
    wire_formats = (7,)
    biased: ClassVar[bool] = False

    def nbytes(self, count: int) -> int:
        """Return one byte per value and one sign bit per value."""
        return count + -(-count // 8)

    def omega(self, size: int) -> float:
        """Return omega in E||Q(v) - v||^2 <= omega ||v||^2, for zeros and |v| >= 2^-126."""
        del size
        return 1 / 8

    def _write(
        self, values: NDArray[np.float32], seed: int, out: NDArray[np.uint8]
    ) -> None:
        kernels.to_natural(values, seed=seed, out=out)

    def _read(self, data: NDArray[np.uint8], out: NDArray[np.float32]) -> None:
        kernels.from_natural(data, out.size, out)
