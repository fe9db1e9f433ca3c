"""Encoding of streams as messages, in the smallest format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..quantize.base import SEEDS
from ..stream.densify import densify
from ..stream.ranges import without_fill
from . import indices, values
from .decoding import MAX_EXPANSION, address, decode
from .header import RAW, SIZE, Header, Tag

if TYPE_CHECKING:
    from collections.abc import Callable

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
    bounded: bool = False,
) -> tuple[NDArray[np.uint8], Stream]:
    """Return a message in the smallest format, and the stream that its readers decode.

    A sender that continues to compute with a stream must use the second result: then all ranks
    hold the same bits in the same form.

    Args:
        stream: Stream to send.
        tag: Call and round of the message.
        quantizer: Quantizer of the values; None sends them as they are.
        whole: Number of blocks of the full vector, if the stream is one range of it.
        seed: Random seed of the quantizer.
        see: Whether to decode quantized values for the second result.
        bounded: Whether the dense vector must be at most `MAX_EXPANSION` times the message,
            for receivers that do not know its length. Values must not be quantized.
    """
    sent, nnz, form = _cheapest(stream, quantizer)
    if bounded:
        sent, nnz, form = _bounded(stream, sent, nnz, form)
    index_format, index_bytes, parameter = form
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
        RAW if quantizer is None else quantizer.wire_format,
        stream.blocks if whole is None else whole,
        stream.block,
        nnz,
        index_bytes,
        stream.is_dense,
    ).write(message)
    if quantizer is not None and see:
        return message, decode(message, stream.fill, blocks=stream.blocks)
    return message, sent if sent.is_dense else stream


def encode_code(
    stream: Stream,
    tag: Tag,
    quantizer: Quantizer,
    seed: int,
    write: Callable[[int, NDArray[np.uint8]], int],
) -> NDArray[np.uint8] | None:
    """Return the message of a dense vector whose code another function writes.

    Args:
        stream: Vector whose shape the message has; its values are not read.
        tag: Call and round of the message.
        quantizer: Quantizer of the values, with codes of one length.
        seed: Random seed of the quantizer.
        write: Writes the code of the values, given a seed and an array, and returns the number
            of values other than +0.0.

    Returns:
        The message that `encode` returns for these values, or None if `encode` may find a
        smaller format.
    """
    settings = np.frombuffer(quantizer.settings, np.uint8)
    dense_bytes = values.nbytes(stream.size, stream.dtype, quantizer)
    message = buffer_pool.empty(SIZE + dense_bytes, np.uint8)
    code_at = SIZE + settings.size
    message[SIZE:code_at] = settings
    nonzeros = write(seed % SEEDS, message[code_at:])
    bitmap = indices.bitmap_nbytes(stream.size) if nonzeros else 0
    if values.nbytes(nonzeros, stream.dtype, quantizer) + bitmap < dense_bytes:
        return None
    blocks, value_format = stream.size, quantizer.wire_format
    Header(
        tag,
        stream.dtype,
        indices.DENSE,
        value_format,
        blocks,
        1,
        blocks,
        0,
        held_dense=True,
    ).write(message)
    return message


def _squeeze(
    sent: Stream,
    nnz: int,
    quantizer: Quantizer | None,
    seed: int,
    plane: NDArray[np.uint8],
    rest: NDArray[np.uint8],
) -> int:
    """Write a nearly full dense vector without absent entries: both sections in one pass."""
    stored = (
        rest.view(sent.dtype) if quantizer is None else buffer_pool.empty(nnz, sent.dtype)
    )
    kernels.bitmap_compact(sent.raw_values, sent.fill, plane, stored)
    if quantizer is None:
        return rest.size
    return values.write(stored, quantizer, seed, rest)


def _home(stream: Stream) -> NDArray[np.uint8] | None:
    """Return the message that a dense stream was decoded from, if nothing else uses it.

    A sum formed in place is sent without a copy: it only gets a new header. It is in flight from
    then on and must not be overwritten.
    """
    values_in, home = stream.raw_values, stream.raw_values.base
    if not (stream.is_dense and stream.is_scratch and isinstance(home, np.ndarray)):
        return None
    if home.dtype != np.uint8 or home.shape != (SIZE + values_in.nbytes,):
        return None
    if not values_in.nbytes or address(values_in) != address(home) + SIZE:
        return None
    stream.read_only()
    return home


def _cheapest(
    stream: Stream, quantizer: Quantizer | None
) -> tuple[Stream, int, tuple[int, int, int]]:
    """Return the smallest form, its nnz and its index format (format, bytes, parameter)."""

    def value_bytes(entries: int) -> int:
        return values.nbytes(entries * stream.block, stream.dtype, quantizer)

    if quantizer is not None and not quantizer.preserves_zero:
        return _as_held(stream)
    dense_bytes = value_bytes(stream.blocks)
    sparse = stream
    if stream.is_dense:
        # Counting first costs one fast pass; most dense vectors have few absent entries. Entries
        # left out must be bitwise equal to the fill of the receiver.
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


def _bounded(
    stream: Stream, sent: Stream, nnz: int, form: tuple[int, int, int]
) -> tuple[Stream, int, tuple[int, int, int]]:
    """Return the smallest form from which receivers restore a dense vector without its length."""
    entry_bytes = stream.block * stream.dtype.itemsize
    min_bytes = stream.blocks * entry_bytes / MAX_EXPANSION - SIZE - nnz * entry_bytes
    if not stream.is_dense or form[1] >= min_bytes:
        return sent, nnz, form
    bitmap = indices.bitmap_nbytes(stream.blocks)
    if bitmap >= min_bytes:
        return sent, nnz, (indices.BITMAP, bitmap, 0)
    return densify(stream), stream.blocks, (indices.DENSE, 0, 0)


def _as_held(stream: Stream) -> tuple[Stream, int, tuple[int, int, int]]:
    """Return the form in which the stream is held, for codes that do not preserve zero."""
    if stream.raw_indices is None or stream.nnz == stream.blocks:
        return densify(stream), stream.blocks, (indices.DENSE, 0, 0)
    return stream, stream.nnz, indices.cheapest(stream.raw_indices, stream.blocks)


def _is_crowded(stream: Stream, nnz: int) -> bool:
    """Return whether a bitmap is certainly the smallest index format of a dense vector.

    At this density a Golomb-Rice code is the bitmap up to its last entry and a head of 8 bytes,
    so it is not smaller if the last word of the bitmap has an entry. Up to two u32 indices fit in
    one word.
    """
    if stream.block > 1 or nnz < max(3, CROWDED * stream.blocks):
        return False
    last_word = stream.raw_values[(stream.blocks - 1) // 64 * 64 :]
    return kernels.count_nonfill(last_word, stream.fill, bitwise=True) > 0


def header_only(
    stream: Stream, tag: Tag, auxiliary: NDArray[Any] | None = None
) -> NDArray[np.uint8]:
    """Return a message that describes a stream without its entries.

    A collective may send an auxiliary payload in place of the indices.
    """
    payload_bytes = 0 if auxiliary is None else auxiliary.nbytes
    message = np.zeros(SIZE + indices.padded(payload_bytes), np.uint8)
    if auxiliary is not None:
        message[SIZE : SIZE + payload_bytes] = auxiliary.view(np.uint8)
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
