"""Message -> Stream, trusting nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..errors import WireError
from ..stream import Stream
from . import indices, values
from .header import SIZE, Header, checksum

if TYPE_CHECKING:
    from numpy.typing import NDArray


def message_length(message: NDArray[np.uint8]) -> int:
    """How long the message is that these bytes begin with."""
    return _length(Header.read(message), message)


def _length(header: Header, message: NDArray[np.uint8]) -> int:
    values_at = SIZE + header.index_bytes
    if header.value_format == values.ABSENT:
        return values_at
    section, count = message[values_at:], header.nnz * header.block
    quantizer = values.quantizer_of(header.value_format, section)
    return values_at + values.length(section, count, header.dtype, quantizer)


def verify(message: NDArray[np.uint8], header: Header | None = None) -> Header:
    """The header of one whole message, after checking its length and its checksum."""
    header = header or Header.read(message)
    due = _length(header, message)
    if len(message) != due:
        raise WireError(
            f"message must have {due} bytes according to its header, got {len(message)}"
        )
    (stored,) = message[SIZE - 4 : SIZE].view("<u4")
    if stored != checksum(message):
        raise WireError("checksum does not match: bytes were changed on the way")
    return header


def decode(
    message: NDArray[np.uint8],
    fill: float = 0.0,
    *,
    header: Header | None = None,
    blocks: int | None = None,
    as_held: bool = True,
) -> Stream:
    """The stream of one whole message.

    Args:
        message: All its bytes.
        fill: What an entry that was not sent stands for.
        header: What its header says, if it has been read already.
        blocks: How many the message covers; the whole vector unless said.
        as_held: Dense where the sender held it dense; otherwise as it was sent.

    Raises:
        WireError: If the bytes are no stream. Nothing of them has been used then.
    """
    message = _aligned(message)
    header = verify(message, header)
    covered = header.blocks if blocks is None else blocks
    if header.index_format == indices.DENSE or not (as_held and header.held_dense):
        return _stream(header, message, fill, covered)
    try:
        dense = buffer_pool.empty(covered * header.block, header.dtype)
    except (MemoryError, ValueError) as error:
        raise WireError(f"no room for the vector that was sent: {error}") from None
    _write(header, message, fill, dense)
    return Stream.unchecked(len(dense), None, dense, header.block, fill, scratch=True)


def decode_into(
    out: Stream, start: int, message: NDArray[np.uint8], header: Header, blocks: int
) -> None:
    """Write what a message holds into `blocks` of a dense stream, from `start` on.

    Raises:
        WireError: If the bytes are no stream. What the range holds is then unspecified.
    """
    message = _aligned(message)
    if (header.block, header.dtype) != (out.block, out.dtype):
        raise WireError(f"blocks of {header.block}, {header.dtype}, where others were due")
    window = out.raw_values[start * out.block : (start + blocks) * out.block]
    _write(verify(message, header), message, out.fill, window)


def _write(
    header: Header, message: NDArray[np.uint8], fill: float, window: NDArray[Any]
) -> None:
    """Put every value of a range in its place."""
    blocks = len(window) // header.block
    if header.index_format == indices.BITMAP and header.block == 1:
        section, found = _sections(header, message, blocks)
        try:
            kernels.bitmap_expand(section, found, fill, window)
        except ValueError as error:
            raise WireError(str(error)) from None
        return
    dense = header.index_format == indices.DENSE
    section, found = _sections(header, message, blocks, window if dense else None)
    positions = indices.read(header.index_format, section, header.nnz, blocks)
    if positions is not None:
        window.fill(fill)
        kernels.scatter_assign(window, positions, found, header.block)
    elif found is not window:
        window[:] = found


def _stream(header: Header, message: NDArray[np.uint8], fill: float, blocks: int) -> Stream:
    section, found = _sections(header, message, blocks)
    positions = indices.read(header.index_format, section, header.nnz, blocks)
    size = blocks * header.block
    return Stream.unchecked(size, positions, found, header.block, fill, scratch=True)


def _sections(
    header: Header, message: NDArray[np.uint8], blocks: int, out: NDArray[Any] | None = None
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """The index section, still coded, and the values: in `out` if that saves a copy."""
    if header.value_format == values.ABSENT:
        raise WireError("a bare header where a stream was due")
    if header.nnz > blocks:
        raise WireError(f"{header.nnz} entries in a range of {blocks} blocks: impossible")
    if header.index_bytes % 8:
        raise WireError(f"index section of {header.index_bytes} bytes is not padded to 8")
    values_at = SIZE + header.index_bytes
    coded, count = message[values_at:], header.nnz * header.block
    quantizer = values.quantizer_of(header.value_format, coded)
    found = values.read(coded, count, header.dtype, quantizer, out)
    return message[SIZE:values_at], found


def _aligned(message: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The same bytes where words begin at words: one may be cut out of a bundle."""
    return buffer_pool.copy(message) if address(message) % 8 else message


def address(array: NDArray[Any]) -> int:
    """Where it begins in memory."""
    return int(array.__array_interface__["data"][0])


def auxiliary(message: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """What a bare header that has been verified carries; padding comes as zeros."""
    header = Header.read(message)
    if header.value_format != values.ABSENT or header.index_bytes % 8:
        raise WireError("expected an auxiliary payload, got a stream")
    return np.frombuffer(message[SIZE:].tobytes(), dtype)
