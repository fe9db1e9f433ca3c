"""Stream -> message, by the cheapest format; message -> Stream, trusting nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..errors import WireError
from ..stream import Stream
from ..stream.switch import densify
from . import indices, values
from .header import SIZE, Header, Tag, checksum

if TYPE_CHECKING:
    from numpy.typing import NDArray


def encode(
    stream: Stream, tag: Tag, value_format: str = "raw", whole: int | None = None
) -> tuple[NDArray[np.uint8], Stream]:
    """One message, in the format that makes it smallest, and what its readers will see.

    If the stream is one range of a vector, `whole` is that vector's number of blocks.

    Whoever sends a stream and goes on computing with it goes on with the second: only
    then do both sides hold the same bits in the same form.
    """
    kind = values.FORMATS[value_format]
    entry_bytes = stream.block * values.itemsize(kind, stream.dtype)
    sent, (index_format, index_bytes, parameter) = _cheapest(stream, entry_bytes)
    values_at = SIZE + index_bytes
    message = _home(sent) if kind == values.RAW else None
    if message is None:
        message = np.empty(values_at + sent.nnz * entry_bytes, np.uint8)
        values.write(kind, sent.raw_values, message[values_at:])
    if sent.raw_indices is not None:
        section = message[SIZE:values_at]
        indices.write(index_format, parameter, sent.raw_indices, stream.blocks, section)
    Header(
        tag,
        stream.dtype,
        index_format,
        kind,
        stream.blocks if whole is None else whole,
        stream.block,
        sent.nnz,
        index_bytes,
        stream.is_dense,
    ).write(message)
    if kind != values.RAW:
        return message, decode(message, stream.fill)[1]
    return message, sent if sent.is_dense else stream


def _home(stream: Stream) -> NDArray[np.uint8] | None:
    """The message that a dense stream was decoded from, if nobody else needs it.

    A sum formed in place is passed on without a copy: it only gets a new header. From
    then on it is on its way, and no longer to be overwritten.
    """
    found, home = stream.raw_values, stream.raw_values.base
    if not (stream.is_dense and stream.is_scratch and isinstance(home, np.ndarray)):
        return None
    if home.dtype != np.uint8 or home.shape != (SIZE + found.nbytes,):
        return None
    if not found.nbytes or _address(found) != _address(home) + SIZE:
        return None
    stream.sealed()
    return home


def _address(array: NDArray[Any]) -> int:
    return int(array.__array_interface__["data"][0])


def _cheapest(stream: Stream, entry_bytes: int) -> tuple[Stream, tuple[int, int, int]]:
    """The form and the index format with the fewest bytes: (stream, format)."""
    dense_bytes = stream.blocks * entry_bytes
    sparse = stream if not stream.is_dense else _without_fill(stream, entry_bytes)
    if sparse.raw_indices is not None:
        index_format = indices.cheapest(sparse.raw_indices, stream.blocks)
        if index_format[1] + sparse.nnz * entry_bytes < dense_bytes:
            return sparse, index_format
    return densify(stream), (indices.DENSE, 0, 0)


def _without_fill(stream: Stream, entry_bytes: int) -> Stream:
    """A dense stream as pairs, if enough of it is fill for a bitmap to pay.

    What is left out must be bit for bit what the receiver fills in.
    """
    room = stream.blocks * entry_bytes - indices.bitmap_nbytes(stream.blocks)
    raw, fill, block = stream.raw_values, stream.fill, stream.block
    # Counting first is one fast pass; most dense vectors are really dense.
    nnz = kernels.count(raw, fill, block, bitwise=True)
    if nnz and nnz * entry_bytes >= room:  # nothing but fill needs no bitmap
        return stream
    pairs = kernels.compact(raw, fill, block, bitwise=True, limit=nnz)
    assert pairs is not None
    return Stream.trusted(stream.size, *pairs, block, fill)


def message_length(message: NDArray[np.uint8]) -> int:
    """How long the message is that these bytes begin with."""
    return _length(Header.read(message))


def _length(header: Header) -> int:
    width = values.itemsize(header.value_format, header.dtype)
    return SIZE + header.index_bytes + header.nnz * header.block * width


def decode(
    message: NDArray[np.uint8],
    fill: float = 0.0,
    *,
    blocks: int | None = None,
    as_held: bool = True,
) -> tuple[Header, Stream]:
    """The header and the stream of one whole message.

    Args:
        message: All its bytes.
        fill: What an entry that was not sent stands for.
        blocks: How many the message covers; the whole vector unless said.
        as_held: Dense where the sender held it dense; otherwise as it was sent.

    Raises:
        WireError: If the bytes are no stream. Nothing of them has been used then.
    """
    header = Header.read(message)
    if _address(message) % 8:  # cut out of a bundle of messages
        message = message.copy()
    if len(message) != _length(header):
        raise WireError(
            f"message has {len(message)} bytes, its header says {_length(header)}"
        )
    (stored,) = message[SIZE - 4 : SIZE].view("<u4")
    if stored != checksum(message):
        raise WireError("checksum does not match: bytes were changed on the way")
    stream = _stream(header, message, fill, header.blocks if blocks is None else blocks)
    return header, densify(stream) if as_held and header.held_dense else stream


def _stream(header: Header, message: NDArray[np.uint8], fill: float, blocks: int) -> Stream:
    if header.value_format == values.ABSENT:
        raise WireError("a bare header where a stream was due")
    if header.nnz > blocks:
        raise WireError(f"{header.nnz} entries in a range of {blocks} blocks: impossible")
    if header.index_bytes % 8:
        raise WireError(f"index section of {header.index_bytes} bytes is not padded to 8")
    values_at = SIZE + header.index_bytes
    found = values.read(header.value_format, message[values_at:], header.dtype)
    section = message[SIZE:values_at]
    positions = indices.read(header.index_format, section, header.nnz, blocks)
    size = blocks * header.block
    return Stream.trusted(size, positions, found, header.block, fill, scratch=True)


def bare_header(stream: Stream, tag: Tag) -> NDArray[np.uint8]:
    """A message that only says what the stream is: no indices, no values."""
    message = np.empty(SIZE, np.uint8)
    Header(
        tag,
        stream.dtype,
        indices.DENSE,
        values.ABSENT,
        stream.blocks,
        stream.block,
        stream.nnz,
        0,
    ).write(message)
    return message
