"""The header of 32 bytes that opens every message."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import WireError

if TYPE_CHECKING:
    from numpy.typing import NDArray

LAYOUT = struct.Struct("<HBBIBBBBIIIII")
SIZE = LAYOUT.size
CRC_AT = 28
MAGIC, VERSION = 0x5053, 1  # "SP"

DTYPES: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.float32),
    2: np.dtype(np.float64),
    3: np.dtype(np.int32),
    4: np.dtype(np.int64),
}
DTYPE_CODES = {dtype: code for code, dtype in DTYPES.items()}

DENSE, U32, GAP, BITMAP = range(4)  # index formats
INDEX_FORMATS = {DENSE: "dense", U32: "u32", GAP: "gap", BITMAP: "bitmap"}
HELD_DENSE = 0x80  # bit of the index format: the sender holds the vector dense

RAW = 0  # value format of numbers as in memory
ABSENT = 255  # value format of a header-only message


@dataclass(frozen=True)
class Tag:
    """Call and round of a message."""

    call: int  # collective and operation
    sequence: int  # calls on this communicator so far
    round: int = 0


@dataclass(frozen=True)
class Header:
    """Fields of the header."""

    tag: Tag
    dtype: np.dtype[Any]
    index_format: int
    value_format: int
    blocks: int
    block: int
    nnz: int
    index_bytes: int
    held_dense: bool = False

    @property
    def is_raw(self) -> bool:
        """Whether values are as in memory, not encoded by a quantizer."""
        return self.value_format == RAW

    def pack(self) -> bytes:
        """Return the bytes of the header, with a checksum of 0."""
        return LAYOUT.pack(
            MAGIC,
            VERSION,
            self.tag.call,
            self.tag.sequence & 0xFFFFFFFF,
            DTYPE_CODES[self.dtype],
            self.index_format | (HELD_DENSE if self.held_dense else 0),
            self.value_format,
            self.tag.round & 0xFF,
            self.blocks,
            self.block,
            self.nnz,
            self.index_bytes,
            0,
        )

    def write(self, message: NDArray[np.uint8]) -> None:
        """Write the header to the first bytes of a message whose sections are complete."""
        message[:SIZE] = np.frombuffer(self.pack(), np.uint8)
        crc = checksum(message)
        message[CRC_AT:SIZE] = np.frombuffer(crc.to_bytes(4, "little"), np.uint8)

    @classmethod
    def read(cls, message: NDArray[np.uint8]) -> Header:
        """Return the header of a message.

        Raises:
            WireError: If the header alone shows that the message is malformed.
        """
        if len(message) < SIZE:
            raise WireError(f"message must have at least {SIZE} bytes, got {len(message)}")
        fields = LAYOUT.unpack_from(message.data, 0)
        magic, version, call, sequence, dtype, index, value, round_ = fields[:8]
        blocks, block, nnz, index_bytes, _ = fields[8:]
        if magic != MAGIC:
            raise WireError(
                f"magic must be {MAGIC:#06x}, got {magic:#06x}; this is not a message of sparcml"
            )
        if version != VERSION:
            raise WireError(
                f"version must be {VERSION}, got {version}; run the same release of sparcml "
                f"on all ranks"
            )
        if dtype not in DTYPES:
            raise WireError(f"dtype at offset 8 must be from 1 to 4, got {dtype}")
        if block < 1 or nnz > blocks:
            raise WireError(
                f"nnz must be at most {blocks} and block at least 1, got {nnz} and {block}"
            )
        return cls(
            Tag(call, sequence, round_),
            DTYPES[dtype],
            index & ~HELD_DENSE,
            value,
            blocks,
            block,
            nnz,
            index_bytes,
            bool(index & HELD_DENSE),
        )


def checksum(message: NDArray[np.uint8]) -> int:
    """Return the CRC-32C of all bytes except the checksum."""
    return kernels.crc32c(message[SIZE:], kernels.crc32c(message[:CRC_AT]))
