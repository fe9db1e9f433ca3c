"""Messages, as docs/wire-format.md defines them."""

import struct

import numpy as np

from sparcml.quantize import Quantizer
from sparcml.stream import Stream
from sparcml.wire import Tag
from tests.kernels.reference import coding, reduction

DTYPES = ("float32", "float64", "int32", "int64")  # from 1 on
DENSE, U32, GAP, BITMAP = range(4)
HELD_DENSE = 0x80


def encode(x: Stream, tag: Tag, quantizer: Quantizer | None = None, seed: int = 0) -> bytes:
    """Return the message with the smallest index format."""

    def value_bytes(count: int) -> int:
        if quantizer is None:
            return count * x.dtype.itemsize
        return len(quantizer.settings) + quantizer.nbytes(count)

    may_omit = quantizer is None or quantizer.preserves_zero
    entries = None if x.raw_indices is None else (x.raw_indices, x.raw_values)
    if entries is None and may_omit:
        entries = reduction.compact(x.raw_values, x.fill, x.block, bitwise=True)
    form, section, nnz, values = DENSE, b"", x.blocks, x.to_dense()
    if entries is not None:
        indices, stored = entries
        nbytes, smallest = min(
            ((4 * indices.size + 7) // 8 * 8, U32),
            (coding.gap_plan(indices)[1], GAP),
            ((x.blocks + 63) // 64 * 8, BITMAP),
        )
        shorter = nbytes + value_bytes(stored.size) < value_bytes(x.size)
        if shorter if may_omit else indices.size < x.blocks:
            form, nnz, values = smallest, indices.size, stored
            section = {
                U32: lambda: indices.tobytes().ljust(nbytes, b"\0"),
                GAP: lambda: coding.gap_encode(indices).tobytes(),
                BITMAP: lambda: coding.bitmap_encode(indices, x.blocks).tobytes(),
            }[form]()
    if quantizer is None:
        body = section + values.tobytes()
    else:
        code = quantizer.propagating().encode(values, seed)
        body = section + quantizer.settings + bytes(code)
    head = struct.pack(
        "<HBBIBBBBIIII",
        0x5053,
        1,
        tag.call,
        tag.sequence,
        DTYPES.index(x.dtype.name) + 1,
        form | (HELD_DENSE if x.is_dense else 0),
        0 if quantizer is None else quantizer.wire_format,
        tag.round,
        x.blocks,
        x.block,
        nnz,
        len(section),
    )
    crc = coding.crc32c(np.frombuffer(head + body, np.uint8))
    return head + struct.pack("<I", crc) + body
