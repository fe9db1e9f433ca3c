"""Encoding of streams as messages; `cpp/messages/encode.h` chooses the smallest format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels import _core
from ..quantize.base import SEEDS
from .decoding import address, allocate, decode
from .header import ABSENT, DENSE, RAW, SIZE, Header, Tag
from .sizes import bitmap_nbytes, padded

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..quantize import Quantizer
    from ..stream import Stream


class ValueSection:
    """Value section that a quantizer writes: its settings and a code."""

    def __init__(self, quantizer: Quantizer, dtype: np.dtype[Any], seed: int) -> None:
        self._quantizer = quantizer.propagating()  # callers have checked the values
        self._dtype, self._seed = dtype, seed
        self.preserves_zero = quantizer.preserves_zero

    def nbytes(self, count: int) -> int:
        """Return the bytes of the section, or the maximum if the length varies."""
        return len(self._quantizer.settings) + self._quantizer.nbytes(count)

    def write(self, values: memoryview, out: memoryview) -> int:
        """Write the section of these values and return its bytes."""
        section = np.frombuffer(out, np.uint8)
        at = self.write_settings(section)
        numbers = np.frombuffer(values, self._dtype)
        return at + self._quantizer.encode(numbers, self._seed, section[at:]).nbytes

    def write_settings(self, section: NDArray[np.uint8]) -> int:
        """Write the settings and return their bytes."""
        settings = self._quantizer.settings
        section[: len(settings)] = np.frombuffer(settings, np.uint8)
        return len(settings)


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
    blocks, dtype = stream.blocks, stream.dtype
    value_format = RAW if quantizer is None else quantizer.wire_format
    full = blocks if whole is None else whole
    home = _home(stream) if quantizer is None else None
    memory, nbytes, dense = _core.encode_message(
        Header(tag, dtype, DENSE, value_format, full, stream.block, 0, 0).pack(),
        blocks,
        stream.raw_indices,
        stream.raw_values,
        stream.fill,
        home,
        None if quantizer is None else ValueSection(quantizer, dtype, seed),
        bounded,
        allocate,
    )
    message = memory[:nbytes]
    if memory is home:
        stream.read_only()  # the message is in flight and must not be overwritten
    if quantizer is not None and see:
        return message, decode(message, stream.fill, blocks=blocks)
    if dense is not None:  # all ranks hold what is sent dense in this form
        stream = stream.like(None, dense[SIZE:].view(dtype), scratch=dense is not memory)
    return message, stream


def _home(stream: Stream) -> NDArray[np.uint8] | None:
    """Return the message that a dense stream was decoded from, if nothing else uses it."""
    values, home = stream.raw_values, stream.raw_values.base
    if not (stream.is_dense and stream.is_scratch and isinstance(home, np.ndarray)):
        return None
    if home.dtype != np.uint8 or home.shape != (SIZE + values.nbytes,):
        return None
    return home if values.nbytes and address(values) == address(home) + SIZE else None


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
    section, blocks = ValueSection(quantizer, stream.dtype, seed), stream.size
    message = allocate(SIZE + section.nbytes(blocks))
    code_at = SIZE + section.write_settings(message[SIZE:])
    nonzeros = write(seed % SEEDS, message[code_at:])
    bitmap = bitmap_nbytes(blocks) if nonzeros else 0
    if section.nbytes(nonzeros) + bitmap < section.nbytes(blocks):
        return None
    value_format = quantizer.wire_format
    header = Header(tag, stream.dtype, DENSE, value_format, blocks, 1, blocks, 0, True)
    header.write(message)
    return message


def header_only(
    stream: Stream, tag: Tag, auxiliary: NDArray[Any] | None = None
) -> NDArray[np.uint8]:
    """Return a message that describes a stream without its entries.

    A collective may send an auxiliary payload in place of the indices.
    """
    payload_bytes = 0 if auxiliary is None else auxiliary.nbytes
    message = np.zeros(SIZE + padded(payload_bytes), np.uint8)
    if auxiliary is not None:
        message[SIZE : SIZE + payload_bytes] = auxiliary.view(np.uint8)
    Header(
        tag,
        stream.dtype,
        DENSE,
        ABSENT,
        stream.blocks,
        stream.block,
        stream.nnz,
        len(message) - SIZE,
    ).write(message)
    return message
