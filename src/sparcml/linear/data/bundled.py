"""The SpamAssassin mails that come with the package, and the format of their file.

The file holds rows of ones scaled to unit norm, in few bytes. Columns are grouped by their
number of rows, on a logarithmic scale. A group has two Golomb-Rice sections (see
docs/wire-format.md): its columns in ascending order, and the positions of its entries, where
the position of an entry is (number of its column in the group) * rows + row. Positions of rare
columns are far apart and those of frequent columns close, so each group has its own
Golomb-Rice parameter, which brings the code close to the entropy.

Layout, little-endian: magic, version, rows, features, groups; one byte per label; for each
group its columns, entries and the bytes of both sections; all sections; the CRC-32C of the rest.
"""

from __future__ import annotations

import struct
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...errors import DataError
from ...kernels import crc32c, gap_decode, gap_encode
from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

VALIDATION_SHARE = 5  # one row in five is in the validation set, the last ones
MAGIC = b"SPARONES"
VERSION = 1
HEADER = struct.Struct("<8sIIII")
GROUP = np.dtype([(name, "<u4") for name in ("columns", "entries", "first", "second")])
CHECKSUM = struct.Struct("<I")
GROUPS_PER_OCTAVE = 8


class Split(NamedTuple):
    """Training rows and validation rows."""

    train: Rows
    validation: Rows


def spam(comm: Communicator | None = None) -> Split:
    """Return 3,023 mails of the SpamAssassin corpus, 31 % of them spam (label 1).

    Words, word trigrams and character trigrams of the bodies are hashed to 16,609,143
    features. Rows are in random order, have unit norm and about 1,610 nonzeros.
    `benchmarks/build_spam.py` builds the file.

    Args:
        comm: Ranks that share the rows; each gets its part of both sets.
    """
    rows = _bundled_rows()
    start = len(rows) - len(rows) // VALIDATION_SHARE
    train = replace(rows.take(0, start), total=start)
    validation = replace(rows.take(start, len(rows)), first=0, total=len(rows) - start)
    if comm is None:
        return Split(train, validation)
    return Split(train.part(comm.rank, comm.size), validation.part(comm.rank, comm.size))


@cache
def _bundled_rows() -> Rows:
    return unpack(resources.files(__package__).joinpath("spam.bin").read_bytes())


def pack(rows: Rows) -> bytes:
    """Encode rows whose labels are integers from -128 to 127.

    Values are not stored: they are ones, scaled to unit norm.
    """
    if not np.array_equal(rows.labels, rows.labels.astype(np.int8)):
        raise ValueError("pack: labels must be integers from -128 to 127")
    columns, column, counts = np.unique(
        rows.indices, return_inverse=True, return_counts=True
    )
    row = np.repeat(np.arange(len(rows)), np.diff(rows.indptr))
    groups, sections = [], []
    for members in _groups(counts, len(rows)):
        number = np.full(columns.size, -1)
        number[members] = np.arange(members.size)
        inside = number[column] >= 0
        positions = np.sort(number[column[inside]] * len(rows) + row[inside])
        encoded = [gap_encode(columns[members]), gap_encode(positions.astype(np.uint32))]
        groups.append((members.size, positions.size, encoded[0].size, encoded[1].size))
        sections += encoded
    head = HEADER.pack(MAGIC, VERSION, len(rows), rows.features, len(groups))
    labels = rows.labels.astype(np.int8).tobytes()
    table = np.array(groups, GROUP).tobytes()
    body = b"".join([head, labels, table, *(section.tobytes() for section in sections)])
    return body + CHECKSUM.pack(crc32c(np.frombuffer(body, np.uint8)))


def _groups(counts: NDArray[np.int64], rows: int) -> Iterator[NDArray[np.int64]]:
    """Yield columns of about equal frequency; positions must fit in 32 bits."""
    octave = (GROUPS_PER_OCTAVE * np.log2(counts)).astype(np.int64)
    limit = (2**32 - 2) // rows if rows else 1
    for each in np.unique(octave):
        members = np.flatnonzero(octave == each)
        yield from np.split(members, range(limit, members.size, limit))


def unpack(data: bytes) -> Rows:
    """Decode the rows that `pack` encoded.

    Raises:
        DataError: If the data are malformed.
    """
    body = np.frombuffer(data, np.uint8)[: -CHECKSUM.size]
    if len(data) < HEADER.size + CHECKSUM.size or not data.startswith(MAGIC):
        raise DataError("packed rows must start with their magic; this is another format")
    _, version, count, features, groups = HEADER.unpack_from(data)
    if version != VERSION:
        raise DataError(f"packed rows must have version {VERSION}, got {version}")
    if crc32c(body) != CHECKSUM.unpack(data[-CHECKSUM.size :])[0]:
        raise DataError("packed rows are damaged: the checksum differs")
    labels = body[HEADER.size : HEADER.size + count].view(np.int8).astype(np.float64)
    offset = HEADER.size + count
    table = np.frombuffer(data, GROUP, groups, offset)
    keys, offset = [np.empty(0, np.uint64)], offset + table.nbytes
    for columns, entries, first, second in table.tolist():
        members = gap_decode(body[offset : offset + first], columns, features)
        offset += first
        positions = gap_decode(body[offset : offset + second], entries, columns * count)
        offset += second
        keys.append(
            (positions % count).astype(np.uint64) << 32 | members[positions // count]
        )
    return _rows_from_keys(np.concatenate(keys), labels, features)


def _rows_from_keys(
    keys: NDArray[np.uint64], labels: NDArray[np.float64], features: int
) -> Rows:
    """Build rows from entries in any order; a key holds the row above 32 bits of column."""
    keys.sort()
    lengths = np.bincount((keys >> 32).astype(np.int64), minlength=labels.size)
    indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
    scale = (1 / np.sqrt(np.maximum(lengths, 1))).astype(np.float32)
    indices = keys.astype(np.uint32)  # keeps the lower half
    return Rows(indptr, indices, np.repeat(scale, lengths), labels, features)
