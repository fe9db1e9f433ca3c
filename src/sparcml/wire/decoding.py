"""Decoding of messages; every field is checked before it is used."""

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

    from ..quantize import Quantizer


# Maximum size of a decoded vector, in multiples of the message, if the receiver has no vector of
# its own to compare with. Senders keep to it (`encode(bounded=True)`).
MAX_EXPANSION = 1024


def message_length(message: NDArray[np.uint8]) -> int:
    """Return the length of the message that these bytes begin with."""
    return _length(Header.read(message), message)


def _length(header: Header, message: NDArray[np.uint8]) -> int:
    values_at = SIZE + header.index_bytes
    if header.value_format == values.ABSENT:
        return values_at
    section, count = message[values_at:], header.nnz * header.block
    quantizer = values.quantizer_of(header.value_format, section)
    return values_at + values.length(section, count, header.dtype, quantizer)


def quantizer_of(message: NDArray[np.uint8], header: Header) -> Quantizer | None:
    """Return the quantizer that encoded the values of a message, or None."""
    return values.quantizer_of(header.value_format, message[SIZE + header.index_bytes :])


def verify(message: NDArray[np.uint8], header: Header | None = None) -> Header:
    """Check the length and the checksum of a full message and return its header."""
    header = header or Header.read(message)
    expected = _length(header, message)
    if len(message) != expected:
        raise WireError(
            f"message must have {expected} bytes according to its header, got {len(message)}"
        )
    (stored,) = message[SIZE - 4 : SIZE].view("<u4")
    if stored != checksum(message):
        raise WireError("checksum does not match: the message was changed in flight")
    return header


def decode(
    message: NDArray[np.uint8] | bytes | bytearray | memoryview,
    fill: float = 0.0,
    *,
    header: Header | None = None,
    blocks: int | None = None,
    as_held: bool = True,
) -> Stream:
    """Return the stream of a full message.

    Args:
        message: All bytes of the message: an array of uint8, or bytes.
        fill: Value of absent entries.
        header: Header of the message, if it has been read already.
        blocks: Number of blocks that the receiver expects, of the full vector or of a range. By
            default the header is trusted, up to `MAX_EXPANSION` times the message.
        as_held: Whether to return a dense stream if the sender held one.

    Raises:
        WireError: If the message is malformed.
    """
    message = _aligned(_bytes(message))
    header = verify(message, header)
    covered = header.blocks if blocks is None else blocks
    restores = header.index_format != indices.DENSE and as_held and header.held_dense
    if blocks is None:
        _check_expansion(header, covered if restores else header.nnz, len(message))
    if not restores:
        return _stream(header, message, fill, covered)
    dense = buffer_pool.empty(covered * header.block, header.dtype)
    _write(header, message, fill, dense)
    return Stream.unchecked(len(dense), None, dense, header.block, fill, scratch=True)


def code_of(message: NDArray[np.uint8], header: Header) -> NDArray[np.uint8] | None:
    """Return the quantizer's code of all values of a full message.

    None if values are left out, or are not encoded.

    Raises:
        WireError: If the message is malformed.
    """
    verify(message, header)
    quantizer = quantizer_of(message, header)
    if quantizer is None or header.index_format != indices.DENSE or header.index_bytes:
        return None
    if header.nnz != header.blocks:
        return None
    return message[SIZE + len(quantizer.settings) :]


def _check_expansion(header: Header, blocks: int, nbytes: int) -> None:
    expanded = blocks * header.block * header.dtype.itemsize
    if expanded > MAX_EXPANSION * nbytes:
        raise WireError(
            f"vector must have at most {MAX_EXPANSION} times the {nbytes} bytes of its message, "
            f"got {expanded} bytes; pass blocks= if the receiver expects this length"
        )


def decode_into(
    out: Stream, start: int, message: NDArray[np.uint8], header: Header, blocks: int
) -> None:
    """Write the values of a message to `blocks` blocks of a dense stream, from `start` on.

    Raises:
        WireError: If the message is malformed. The values of the range are then unspecified.
    """
    message = _aligned(message)
    if (header.block, header.dtype) != (out.block, out.dtype):
        raise WireError(
            f"block and dtype must be {out.block} and {out.dtype}, got {header.block} and "
            f"{header.dtype}"
        )
    window = out.raw_values[start * out.block : (start + blocks) * out.block]
    _write(verify(message, header), message, out.fill, window)


def _write(
    header: Header, message: NDArray[np.uint8], fill: float, window: NDArray[Any]
) -> None:
    """Write every value of a range to its position."""
    blocks = len(window) // header.block
    if header.index_format == indices.BITMAP and header.block == 1:
        section, received = _sections(header, message, blocks)
        try:
            kernels.bitmap_expand(section, received, fill, window)
        except ValueError as error:
            raise WireError(str(error)) from None
        return
    dense = header.index_format == indices.DENSE
    section, received = _sections(header, message, blocks, window if dense else None)
    positions = indices.read(header.index_format, section, header.nnz, blocks)
    if positions is not None:
        window.fill(fill)
        kernels.scatter_assign(window, positions, received, header.block)
    elif received is not window:
        window[:] = received


def _stream(header: Header, message: NDArray[np.uint8], fill: float, blocks: int) -> Stream:
    section, received = _sections(header, message, blocks)
    positions = indices.read(header.index_format, section, header.nnz, blocks)
    size = blocks * header.block
    return Stream.unchecked(size, positions, received, header.block, fill, scratch=True)


def _sections(
    header: Header, message: NDArray[np.uint8], blocks: int, out: NDArray[Any] | None = None
) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return the encoded index section and the values, in `out` if that saves a copy."""
    if header.value_format == values.ABSENT:
        raise WireError("expected a stream, got a header-only message")
    if header.nnz > blocks:
        raise WireError(
            f"nnz must be at most {blocks}, the blocks of the range, got {header.nnz}"
        )
    if header.index_bytes % 8:
        raise WireError(f"index bytes must be a multiple of 8, got {header.index_bytes}")
    values_at = SIZE + header.index_bytes
    encoded, count = message[values_at:], header.nnz * header.block
    quantizer = values.quantizer_of(header.value_format, encoded)
    received = values.read(encoded, count, header.dtype, quantizer, out)
    return message[SIZE:values_at], received


def _bytes(
    message: NDArray[np.uint8] | bytes | bytearray | memoryview,
) -> NDArray[np.uint8]:
    if isinstance(message, np.ndarray) and message.dtype == np.uint8 and message.ndim == 1:
        return message
    if isinstance(message, bytes | bytearray | memoryview):
        return np.frombuffer(message, np.uint8)
    raise TypeError(
        f"decode: message must be bytes or a vector of uint8, got {type(message).__name__}"
    )


def _aligned(message: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bytes aligned to words; a message cut out of a bundle may not be."""
    return buffer_pool.copy(message) if address(message) % 8 else message


def address(array: NDArray[Any]) -> int:
    """Return the address of the first byte."""
    return int(array.__array_interface__["data"][0])


def auxiliary(message: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the auxiliary payload of a verified header-only message, with its padding."""
    header = Header.read(message)
    if header.value_format != values.ABSENT or header.index_bytes % 8:
        raise WireError("expected an auxiliary payload, got a stream")
    return np.frombuffer(message[SIZE:].tobytes(), dtype)
