"""Stream -> message, by the cheapest format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..stream.densify import densify
from ..stream.ranges import without_fill
from . import indices, values
from .decoding import address, decode
from .header import SIZE, Header, Tag

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..quantize import Quantizer
    from ..stream import Stream

# From this density on, the Golomb-Rice code has r = 0 (see `_is_crowded`).
CROWDED = 0.4


def encode(
    stream: Stream,
    tag: Tag,
    quantizer: Quantizer | None = None,
    *,
    whole: int | None = None,
    seed: int = 0,
    see: bool = True,
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
        see: Whether to find out what readers will see of values that are coded.
    """
    sent, nnz, (index_format, index_bytes, parameter) = _cheapest(stream, quantizer)
    values_at = SIZE + index_bytes
    message = _home(sent) if quantizer is None and index_format == indices.DENSE else None
    if message is None:
        nbytes = values.nbytes(nnz * stream.block, stream.dtype, quantizer)
        message = buffer_pool.empty(values_at + nbytes, np.uint8)
        plane, rest = message[SIZE:values_at], message[values_at:]
        if sent.raw_indices is None and index_format == indices.BITMAP:
            used = _squeeze(sent, nnz, quantizer, seed, plane, rest)
        else:
            used = values.write(sent.raw_values, quantizer, seed, rest)
        message = message[: values_at + used]
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
        nnz,
        index_bytes,
        stream.is_dense,
    ).write(message)
    if quantizer is not None and see:
        return message, decode(message, stream.fill, blocks=stream.blocks)
    return message, sent if sent.is_dense else stream


def _squeeze(
    sent: Stream,
    nnz: int,
    quantizer: Quantizer | None,
    seed: int,
    plane: NDArray[np.uint8],
    rest: NDArray[np.uint8],
) -> int:
    """Write a crowded dense vector without its gaps: both sections in one pass."""
    found = (
        rest.view(sent.dtype) if quantizer is None else buffer_pool.empty(nnz, sent.dtype)
    )
    kernels.bitmap_compact(sent.raw_values, sent.fill, plane, found)
    if quantizer is None:
        return rest.size
    return values.write(found, quantizer, seed, rest)


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
    if not found.nbytes or address(found) != address(home) + SIZE:
        return None
    stream.read_only()
    return home


def _cheapest(
    stream: Stream, quantizer: Quantizer | None
) -> tuple[Stream, int, tuple[int, int, int]]:
    """The form, its entries, and the index format with the fewest bytes."""

    def value_bytes(entries: int) -> int:
        return values.nbytes(entries * stream.block, stream.dtype, quantizer)

    if quantizer is not None and not quantizer.preserves_zero:
        return _as_held(stream)
    dense_bytes = value_bytes(stream.blocks)
    sparse = stream
    if stream.is_dense:
        # Counting first is one fast pass; most dense vectors are really dense. What is
        # left out must be bit for bit what the receiver fills in.
        nnz = kernels.count_nonfill(
            stream.raw_values, stream.fill, stream.block, bitwise=True
        )
        bitmap = indices.bitmap_nbytes(stream.blocks) if nnz else 0
        if value_bytes(nnz) + bitmap < dense_bytes:
            if _is_crowded(stream, nnz):
                return stream, nnz, (indices.BITMAP, bitmap, 0)
            sparse = without_fill(stream, nnz)
    if sparse.raw_indices is not None:
        index_format = indices.cheapest(sparse.raw_indices, stream.blocks)
        if index_format[1] + value_bytes(sparse.nnz) < dense_bytes:
            return sparse, sparse.nnz, index_format
    return densify(stream), stream.blocks, (indices.DENSE, 0, 0)


def _as_held(stream: Stream) -> tuple[Stream, int, tuple[int, int, int]]:
    """The same for codes in which a zero is not zero: exactly what is stored goes out."""
    if stream.raw_indices is None or stream.nnz == stream.blocks:
        return densify(stream), stream.blocks, (indices.DENSE, 0, 0)
    return stream, stream.nnz, indices.cheapest(stream.raw_indices, stream.blocks)


def _is_crowded(stream: Stream, nnz: int) -> bool:
    """Whether a plane is certainly the smallest index format of a dense vector.

    A Golomb-Rice code of crowded indices is that plane up to its last entry, and a head of
    8 bytes: not smaller if the plane's last word has an entry. Up to two indices as they
    are take no more than a word.
    """
    if stream.block > 1 or nnz < max(3, CROWDED * stream.blocks):
        return False
    last_word = stream.raw_values[(stream.blocks - 1) // 64 * 64 :]
    return kernels.count_nonfill(last_word, stream.fill, bitwise=True) > 0


def header_only(
    stream: Stream, tag: Tag, auxiliary: NDArray[Any] | None = None
) -> NDArray[np.uint8]:
    """A message that only says what the stream is: no indices, no values.

    In their place a collective may send numbers of its own.
    """
    carried = 0 if auxiliary is None else auxiliary.nbytes
    message = np.zeros(SIZE + indices.padded(carried), np.uint8)
    if auxiliary is not None:
        message[SIZE : SIZE + carried] = auxiliary.view(np.uint8)
    Header(
        tag,
        stream.dtype,
        indices.DENSE,
        values.ABSENT,
        stream.blocks,
        stream.block,
        stream.nnz,
        len(message) - SIZE,
    ).write(message)
    return message
