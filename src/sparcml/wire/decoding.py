"""Decoding of messages by `cpp/messages/decode.h`; every field is checked before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from ..errors import WireError
from ..kernels import _core
from ..quantize import Code, from_wire
from ..stream import Stream
from .header import ABSENT, DENSE, INDEX_FORMATS, RAW, SIZE, Header
from .sizes import padded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..quantize import Quantizer


# Maximum size of a decoded vector, in multiples of the message, if the receiver has no vector of
# its own to compare with. Senders keep to it (`encode(bounded=True)`).
MAX_EXPANSION: int = _core.MAX_EXPANSION
MAX_SETTINGS = 64  # bytes of a quantizer's settings

# By their numbers in `cpp/messages/decode.h`.
FAULTS = (
    "",
    "checksum does not match: the message was changed in flight",
    "expected a stream, got a header-only message",
    "nnz must be at most {blocks}, the blocks of the range, got {nnz}",
    "index bytes must be a multiple of 8, got {index_bytes}",
    "index format at offset 9 is unknown: {index_format}",
    "a dense message must have nnz = blocks and no index section",
    (
        "u32 section of {nnz} entries must have {u32_bytes} bytes with zero padding, "
        "got {index_bytes} bytes"
    ),
    "indices must be ascending and below {blocks}, got {index} at entry {position}",
    "{name} section: {name}_decode: {index_bytes} bytes cannot hold {nnz} entries",
    "{name} section: {reason}",
    "{reason}",
)


def message_length(message: NDArray[np.uint8]) -> int:
    """Return the length of the message that these bytes begin with."""
    header = Header.read(message)
    return _length(header, message, quantizer_of(message, header))


def _length(header: Header, message: NDArray[np.uint8], quantizer: Quantizer | None) -> int:
    values_at, count = SIZE + header.index_bytes, header.nnz * header.block
    if header.value_format == ABSENT:
        return values_at
    if quantizer is None:
        return values_at + count * header.dtype.itemsize
    code_at = values_at + len(quantizer.settings)
    try:
        return code_at + quantizer.encoded_nbytes(count, message[code_at:])
    except ValueError as error:
        raise WireError(f"value section: {error}") from None


def quantizer_of(message: NDArray[np.uint8], header: Header) -> Quantizer | None:
    """Return the quantizer that encoded the values of a message; None if raw or absent."""
    if header.value_format in (RAW, ABSENT):
        return None
    section = message[SIZE + header.index_bytes :]
    try:
        return from_wire(header.value_format, section[:MAX_SETTINGS].tobytes())
    except ValueError as error:
        raise WireError(str(error)) from None


def verify(message: NDArray[np.uint8], header: Header | None = None) -> Header:
    """Check the length and the checksum of a full message and return its header."""
    header = header or Header.read(message)
    _check(_aligned(message), header)
    return header


def _check(
    message: NDArray[np.uint8], header: Header, blocks: int | None = None
) -> Quantizer | None:
    """Check a message, also for a range of `blocks` if given, and return its quantizer."""
    quantizer = quantizer_of(message, header)
    expected = _length(header, message, quantizer)
    if len(message) != expected:
        raise WireError(
            f"message must have {expected} bytes according to its header, got {len(message)}"
        )
    _raise_fault(_core.check_message(message, blocks), message, header, blocks)
    return quantizer


def _raise_fault(
    found: tuple[int, str, int] | None,
    message: NDArray[np.uint8],
    header: Header,
    blocks: int | None,
) -> None:
    """Raise the error of what is wrong with a message; None is nothing."""
    if found is None:
        return
    fault, reason, position = found
    entry = message[SIZE + 4 * position :][:4].tobytes()
    fields = {
        "name": INDEX_FORMATS.get(header.index_format),
        "u32_bytes": padded(4 * header.nnz),
        "index": int.from_bytes(entry, "little"),
    }
    given = {"blocks": blocks, "reason": reason, "position": position}
    raise WireError(FAULTS[fault].format(**vars(header) | fields | given))


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
    header = header or Header.read(message)
    covered = header.blocks if blocks is None else blocks
    quantizer = _check(message, header, covered)
    restores = header.index_format != DENSE and as_held and header.held_dense
    if blocks is None:
        _check_expansion(header, covered if restores else header.nnz, len(message))
    if restores:
        dense = buffer_pool.empty(covered * header.block, header.dtype)
        _write(header, message, quantizer, fill, dense)
        return Stream.unchecked(len(dense), None, dense, header.block, fill, scratch=True)
    values = _values(header, message, quantizer)
    positions = None
    if header.index_format != DENSE:
        section, found = _core.message_indices(message, covered, allocate)
        _raise_fault(found, message, header, covered)
        if section is None:
            section = message[SIZE : SIZE + 4 * header.nnz]
        positions = section.view(np.uint32)
    size = covered * header.block
    return Stream.unchecked(size, positions, values, header.block, fill, scratch=True)


def code_of(message: NDArray[np.uint8], header: Header) -> NDArray[np.uint8] | None:
    """Return the quantizer's code of all values of a full message.

    None if values are left out, or are not encoded.

    Raises:
        WireError: If the message is malformed.
    """
    quantizer = _check(_aligned(message), header)
    if quantizer is None or header.index_format != DENSE or header.index_bytes:
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
    _write(header, message, _check(message, header, blocks), out.fill, window)


def _write(
    header: Header,
    message: NDArray[np.uint8],
    quantizer: Quantizer | None,
    fill: float,
    window: NDArray[Any],
) -> None:
    """Write every value of a checked message to its position in a range."""
    # The values of a dense message are decoded in place.
    target = window if header.index_format == DENSE else None
    values = _values(header, message, quantizer, target)
    if values is not window:
        found = _core.place_values(message, values, fill, window, allocate)
        _raise_fault(found, message, header, len(window) // header.block)


def _values(
    header: Header,
    message: NDArray[np.uint8],
    quantizer: Quantizer | None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Return the values: a view of the message if raw; decoded values may go to `out`."""
    section, dtype = message[SIZE + header.index_bytes :], header.dtype
    if quantizer is None:
        return section.view(dtype)
    if dtype.kind != "f":
        raise WireError(f"value section: a quantizer must encode floats, got {dtype}")
    code = Code(header.nnz * header.block, section[len(quantizer.settings) :])
    try:
        values = quantizer.decode(code, out if dtype == np.float32 else None)
    except ValueError as error:
        raise WireError(f"value section: {error}") from None
    with np.errstate(invalid="ignore"):  # signaling NaNs
        return values.astype(dtype, copy=False)


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


def allocate(nbytes: int) -> NDArray[np.uint8]:
    """Return memory for a message or its sections."""
    return buffer_pool.empty(nbytes, np.uint8)


def address(array: NDArray[Any]) -> int:
    """Return the address of the first byte."""
    return int(array.__array_interface__["data"][0])


def auxiliary(message: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the auxiliary payload of a verified header-only message, with its padding."""
    header = Header.read(message)
    if header.value_format != ABSENT or header.index_bytes % 8:
        raise WireError("expected an auxiliary payload, got a stream")
    return np.frombuffer(message[SIZE:].tobytes(), dtype)
