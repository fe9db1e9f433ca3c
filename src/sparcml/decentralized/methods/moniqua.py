"""Moniqua: models modulo a bound on their differences; quantized without memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ... import kernels
from ...validation import check_integer, check_real
from ..base import Method
from ..requirements import require_doubly_stochastic, require_symmetric

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step

MAX_BITS = 8
CRC_BYTES = 4


@dataclass(frozen=True)
class Moniqua(Method):
    """Modulo quantization.

        q_i = Q((x_i / B) mod 1)                              sent, in `bits` bits per value
        x^_j = the value closest to x_i with (x^_j / B) mod 1 = q_j
        x_i <- x_i + sum_j W_ij (x^_j - x^_i) - lr g_i(x_i)

    Neighbours have similar models, so the last digits of a model suffice. Q rounds to the nearest
    of 2^bits values in [-1/2, 1/2), with an error of at most delta = 2^-(bits + 1), and
    B = 2 theta / (1 - 2 delta). No replicas are kept. The error of x^_j is at most delta B as long
    as |x_i - x_j| < theta for all neighbours and all values.

    This bound is checked: a message carries a checksum of the digits that it leaves out. If a
    receiver restores other digits, all ranks raise a ValueError that names both ranks. Then
    increase theta, or lower the learning rate.

    All receivers restore the same x^_j, so the mean of the models is kept up to rounding. There is
    no state: a change of topology keeps everything, and of the world size the mean.

    Reference: Lu, De Sa: Moniqua: Modulo Quantized Communication in Decentralized SGD, ICML 2020.

    Args:
        topology: Symmetric, doubly stochastic, of any period.
        theta: Bound on the differences between the models of neighbours.
        bits: Bits per value, 1 to 8.
    """

    name: ClassVar[str] = "moniqua"
    number: ClassVar[int] = 9

    theta: float
    bits: int = 8

    def __post_init__(self) -> None:
        super().__post_init__()
        check_real(self, "theta")
        check_integer(self, "bits")
        if not 0 < self.theta < np.inf:
            raise ValueError(f"Moniqua: theta must be positive, got {self.theta}")
        if not 1 <= self.bits <= MAX_BITS:
            raise ValueError(f"Moniqua: bits must be from 1 to {MAX_BITS}, got {self.bits}")

    def _check_topology(self) -> None:
        require_doubly_stochastic(self, self.topology)
        require_symmetric(self, self.topology)

    @property
    def delta(self) -> float:
        """Largest error of Q."""
        return 2.0 ** -(self.bits + 1)

    @property
    def modulus(self) -> float:
        """B: models are sent modulo this."""
        return 2 * self.theta / (1 - 2 * self.delta)

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        scaled = x.astype(np.float64) / self.modulus
        turns = np.floor(scaled + 0.5)
        levels = np.floor((scaled - turns + 0.5) * 2**self.bits)
        codes = np.minimum(levels, 2**self.bits - 1).astype(np.uint8)
        received = call.exchange(pack(codes, self.bits, _checksum(turns)))
        own = self.modulus * (self._decode(codes) + turns)
        others = {}
        for rank, message in received.items():
            codes, checksum = unpack(message, x.size, self.bits)
            digits = self._decode(codes)
            turns = np.floor(scaled - digits + 0.5)
            if _checksum(turns) != checksum:
                raise ValueError(
                    f"Moniqua: models of neighbours must differ by less than theta = "
                    f"{self.theta:g}, got larger differences between rank {call.rank} and "
                    f"rank {rank} in step {call.number}; increase theta or lower lr"
                )
            others[rank] = self.modulus * (digits + turns)
        h = call.descend(x, g).astype(np.float64)
        return call.add_differences(h, own, others).astype(x.dtype), dict(state)

    def _decode(self, codes: NDArray[np.uint8]) -> NDArray[np.float64]:
        digits: NDArray[np.float64] = (codes + 0.5) / 2**self.bits - 0.5
        return digits


def pack(codes: NDArray[np.uint8], bits: int, checksum: int) -> NDArray[np.int32]:
    """Return codes of `bits` bits each and a checksum as a vector of 32-bit words."""
    packed = codes
    if bits < MAX_BITS:
        planes = np.unpackbits(codes[:, None], axis=1, count=bits, bitorder="little")
        packed = np.packbits(planes.reshape(-1), bitorder="little")
    words = np.zeros(1 + -(-packed.size // 4), np.int32)
    data = words.view(np.uint8)
    data[:CRC_BYTES] = np.frombuffer(checksum.to_bytes(CRC_BYTES, "little"), np.uint8)
    data[CRC_BYTES : CRC_BYTES + packed.size] = packed
    return words


def unpack(words: NDArray[np.int32], size: int, bits: int) -> tuple[NDArray[np.uint8], int]:
    """Return the codes and the checksum of a message."""
    data = np.ascontiguousarray(words).view(np.uint8)
    codes = data[CRC_BYTES:][:size]
    if bits < MAX_BITS:
        planes = np.unpackbits(data[CRC_BYTES:], count=size * bits, bitorder="little")
        codes = np.packbits(planes.reshape(size, bits), axis=1, bitorder="little")
    return codes.reshape(-1), int.from_bytes(data[:CRC_BYTES].tobytes(), "little")


def _checksum(turns: NDArray[np.float64]) -> int:
    """Return a checksum of the integers that are not sent."""
    return kernels.crc32c(turns.astype(np.int64).view(np.uint8))
