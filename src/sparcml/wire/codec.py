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

    from ..quantize import Quantizer


def encode(
    stream: Stream,
    tag: Tag,
    quantizer: Quantizer | None = None,
    *,
    whole: int | None = None,
    seed: int = 0,
) -> tuple[NDArray[np.uint8], Stream]:
    """One message, in the format that makes it smallest, and what its readers will see.

    Whoever sends a stream and goes on computing with it goes on with the second: only
    then do both sides hold the same bits in the same form.

    Args:
        stream: What to send.
        tag: The call and round it belongs to.
        quantizer: How values are coded; as they are by default.
        whole: If the stream is one range of a vector, that vector's number of blocks.
        seed: What is random in the quantizer.
    """
    sent, (index_format, index_bytes, parameter) = _cheapest(stream, quantizer)
    values_at = SIZE + index_bytes
    message = _home(sent) if quantizer is None else None
    if message is None:
        nbytes = values.nbytes(sent.nnz * stream.block, stream.dtype, quantizer)
        message = np.empty(values_at + nbytes, np.uint8)
        values.write(sent.raw_values, quantizer, seed, message[values_at:])
    if sent.raw_indices is not None:
        section = message[SIZE:values_at]
        indices.write(index_format, parameter, sent.raw_indices, stream.blocks, section)
    Header(
        tag,
        stream.dtype,
        index_format,
        values.RAW if quantizer is None else quantizer.wire_format,
        stream.blocks if whole is None else whole,
        stream.block,
        sent.nnz,
        index_bytes,
        stream.is_dense,
    ).write(message)
    if quantizer is not None:
        return message, decode(message, stream.fill, blocks=stream.blocks)[1]
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


def _cheapest(
    stream: Stream, quantizer: Quantizer | None
) -> tuple[Stream, tuple[int, int, int]]:
    """The form and the index format with the fewest bytes: (stream, format)."""

    def value_bytes(entries: int) -> int:
        return values.nbytes(entries * stream.block, stream.dtype, quantizer)

    dense_bytes = value_bytes(stream.blocks)
    sparse = stream
    if stream.is_dense:
        # Counting first is one fast pass; most dense vectors are really dense.
        nnz = kernels.count(stream.raw_values, stream.fill, stream.block, bitwise=True)
        bitmap = indices.bitmap_nbytes(stream.blocks) if nnz else 0
        if value_bytes(nnz) + bitmap < dense_bytes:
            sparse = _without_fill(stream, nnz)
    if sparse.raw_indices is not None:
        index_format = indices.cheapest(sparse.raw_indices, stream.blocks)
        if index_format[1] + value_bytes(sparse.nnz) < dense_bytes:
            return sparse, index_format
    return densify(stream), (indices.DENSE, 0, 0)


def _without_fill(stream: Stream, nnz: int) -> Stream:
    """A dense stream as its nnz pairs that are not fill.

    What is left out must be bit for bit what the receiver fills in.
    """
    raw, fill, block = stream.raw_values, stream.fill, stream.block
    pairs = kernels.compact(raw, fill, block, bitwise=True, limit=nnz)
    assert pairs is not None
    return Stream.trusted(stream.size, *pairs, block, fill)


def message_length(message: NDArray[np.uint8]) -> int:
    """How long the message is that these bytes begin with."""
    return _length(Header.read(message), message)


def _length(header: Header, message: NDArray[np.uint8]) -> int:
    values_at = SIZE + header.index_bytes
    if header.value_format == values.ABSENT:
        return values_at
    quantizer = values.quantizer_of(header.value_format, message[values_at:])
    return values_at + values.nbytes(header.nnz * header.block, header.dtype, quantizer)


def verify(message: NDArray[np.uint8]) -> Header:
    """The header of one whole message, after checking its length and its checksum."""
    header = Header.read(message)
    due = _length(header, message)
    if len(message) != due:
        raise WireError(f"message has {len(message)} bytes, its header says {due}")
    (stored,) = message[SIZE - 4 : SIZE].view("<u4")
    if stored != checksum(message):
        raise WireError("checksum does not match: bytes were changed on the way")
    return header


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
    if _address(message) % 8:  # cut out of a bundle of messages
        message = message.copy()
    header = verify(message)
    stream = _stream(header, message, fill, header.blocks if blocks is None else blocks)
    if as_held and header.held_dense:
        try:
            stream = densify(stream)
        except (MemoryError, ValueError) as error:
            raise WireError(f"no room for the vector that was sent: {error}") from None
    return header, stream


def _stream(header: Header, message: NDArray[np.uint8], fill: float, blocks: int) -> Stream:
    if header.value_format == values.ABSENT:
        raise WireError("a bare header where a stream was due")
    if header.nnz > blocks:
        raise WireError(f"{header.nnz} entries in a range of {blocks} blocks: impossible")
    if header.index_bytes % 8:
        raise WireError(f"index section of {header.index_bytes} bytes is not padded to 8")
    values_at = SIZE + header.index_bytes
    coded, count = message[values_at:], header.nnz * header.block
    quantizer = values.quantizer_of(header.value_format, coded)
    found = values.read(coded, count, header.dtype, quantizer)
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
