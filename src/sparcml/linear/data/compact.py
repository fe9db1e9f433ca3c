"""Rows of ones, scaled to length 1, in as few bytes as independent columns allow.

Columns are sorted by how many rows have them, in classes of about the same number. A class
is two Golomb-Rice sections (see docs/wire-format.md): its columns, ascending, and the places
of its entries, the number of the column in the class times the rows plus the row. Places of
rare columns are far apart and those of frequent ones near, so each class has a parameter of
its own, which is what the code needs to come close to the entropy.

Little-endian: magic, version, rows, features, classes; the labels, a byte each; for each
class its columns, entries and the bytes of both sections; all sections; the CRC-32C of all.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import numpy as np

from ...errors import DataError
from ...kernels import crc32c, gap_decode, gap_encode
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

MAGIC = b"SPARONES"
VERSION = 1
HEADER = struct.Struct("<8sIIII")
CLASS = np.dtype([(name, "<u4") for name in ("columns", "entries", "first", "second")])
CHECKSUM = struct.Struct("<I")
STEPS = 8  # classes to a doubling


def pack(rows: Rows) -> bytes:
    """The code of rows whose labels are whole numbers from -128 to 127.

    Values are not looked at: they are ones, scaled.
    """
    if not np.array_equal(rows.labels, rows.labels.astype(np.int8)):
        raise ValueError("pack: labels must be whole numbers from -128 to 127")
    columns, which, times = np.unique(rows.indices, return_inverse=True, return_counts=True)
    row = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    classes, sections = [], []
    for members in _classes(times, len(rows)):
        number = np.full(columns.size, -1)
        number[members] = np.arange(members.size)
        inside = number[which] >= 0
        places = np.sort(number[which[inside]] * len(rows) + row[inside])
        coded = [gap_encode(columns[members]), gap_encode(places.astype(np.uint32))]
        classes.append((members.size, places.size, coded[0].size, coded[1].size))
        sections += coded
    head = HEADER.pack(MAGIC, VERSION, len(rows), rows.features, len(classes))
    labels = rows.labels.astype(np.int8).tobytes()
    table = np.array(classes, CLASS).tobytes()
    body = b"".join([head, labels, table, *(section.tobytes() for section in sections)])
    return body + CHECKSUM.pack(crc32c(np.frombuffer(body, np.uint8)))


def _classes(times: NDArray[np.int64], rows: int) -> Iterator[NDArray[np.int64]]:
    """Columns, ascending, that about as many rows have; places must fit in 32 bits."""
    kind = (STEPS * np.log2(times)).astype(np.int64)
    most = (2**32 - 2) // rows if rows else 1
    for each in np.unique(kind):
        members = np.flatnonzero(kind == each)
        yield from np.split(members, range(most, members.size, most))


def unpack(data: bytes) -> Rows:
    """The rows that a code is of.

    Raises:
        DataError: If it is none.
    """
    whole = np.frombuffer(data, np.uint8)
    body = whole[: -CHECKSUM.size]
    if len(data) < HEADER.size + CHECKSUM.size or not data.startswith(MAGIC):
        raise DataError("these are no packed rows")
    _, version, count, features, classes = HEADER.unpack_from(data)
    if version != VERSION:
        raise DataError(f"version {version} of packed rows, not {VERSION}")
    if crc32c(body) != CHECKSUM.unpack(data[-CHECKSUM.size :])[0]:
        raise DataError("packed rows are damaged: the checksum differs")
    labels = body[HEADER.size : HEADER.size + count].view(np.int8).astype(np.float64)
    at = HEADER.size + count
    table = np.frombuffer(data, CLASS, classes, at)
    found, at = [], at + table.nbytes
    for columns, entries, first, second in table.tolist():
        members = gap_decode(body[at : at + first], columns, features)
        at += first
        places = gap_decode(body[at : at + second], entries, columns * count)
        at += second
        found.append((places % count).astype(np.uint64) << 32 | members[places // count])
    return _rows(np.concatenate([np.empty(0, np.uint64), *found]), labels, features)


def _rows(keys: NDArray[np.uint64], labels: NDArray[np.float64], features: int) -> Rows:
    """Of entries in any order, the row in the upper half of each."""
    keys.sort()
    lengths = np.bincount((keys >> 32).astype(np.int64), minlength=labels.size)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    scale = (1 / np.sqrt(np.maximum(lengths, 1))).astype(np.float32)
    indices = keys.astype(np.uint32)  # the lower half
    return Rows(indptr, indices, np.repeat(scale, lengths), labels, features)
