"""Binary files of rows, which are memory-mapped: nothing is read before it is used.

Layout, little-endian: a header of 96 bytes, then indptr (int64), labels and weights (float64),
indices (uint32) and values (float32 or float64), each aligned to 64 bytes. The header holds the
magic, the version, the bytes per value, flags (1: has weights; 2: indices started at 0 in the
text; 4: at 1), rows, entries, features, a fingerprint of the source (32 bytes), zeros, and the
CRC-32 of all of it.
"""

from __future__ import annotations

import os
import secrets
import struct
import zlib
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ...communicator.collective_errors import allgather_numbers, run_collectively
from ...errors import DataError
from ...files import unfinished_path
from .rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

MAGIC = b"SPARROWS"
VERSION = 2
HEADER = struct.Struct("<8sIHHQQQ32s20x")  # and its checksum
CHECKSUM = struct.Struct("<I")
ALIGNMENT = 64
NO_FINGERPRINT = bytes(32)
WEIGHTED = 1
ZERO_BASED, ONE_BASED = 2, 4  # first index in the text
BASES = {None: 0, True: ZERO_BASED, False: ONE_BASED}


@dataclass(frozen=True)
class Layout:
    """The contents of a header, and the sections that follow from it."""

    value_bytes: int
    flags: int
    rows: int
    entries: int
    features: int
    fingerprint: bytes

    @property
    def zero_based(self) -> bool | None:
        """The attribute of that name of `Rows`."""
        base = self.flags & (ZERO_BASED | ONE_BASED)
        return base == ZERO_BASED if base else None

    def sections(self) -> dict[str, tuple[int, int, np.dtype[Any]]]:
        """Return (offset, items, dtype) of each array, and of the end of the file."""
        arrays = (
            ("indptr", self.rows + 1, np.dtype("<i8")),
            ("labels", self.rows, np.dtype("<f8")),
            ("weights", self.rows if self.flags & WEIGHTED else 0, np.dtype("<f8")),
            ("indices", self.entries, np.dtype("<u4")),
            ("values", self.entries, np.dtype(f"<f{self.value_bytes}")),
            ("end", 0, np.dtype("u1")),
        )
        sections, offset = {}, HEADER.size + CHECKSUM.size
        for name, count, dtype in arrays:
            offset = -(-offset // ALIGNMENT) * ALIGNMENT
            sections[name] = (offset, count, dtype)
            offset += count * dtype.itemsize
        return sections

    @property
    def nbytes(self) -> int:
        """Size of the file."""
        return self.sections()["end"][0]

    def header(self) -> bytes:
        """Return the header with its checksum."""
        formats = (self.value_bytes, self.flags)
        sizes = (self.rows, self.entries, self.features)
        head = HEADER.pack(MAGIC, VERSION, *formats, *sizes, self.fingerprint)
        return head + CHECKSUM.pack(zlib.crc32(head))


def save_rows(
    path: str | os.PathLike[str],
    rows: Rows,
    comm: Communicator | None = None,
    fingerprint: bytes = NO_FINGERPRINT,
) -> None:
    """Write the rows of all ranks to one file on a shared disk. Collective.

    An existing file is replaced once the new one is complete; if the disk is full, it stays
    as it was.

    Args:
        path: File to write.
        rows: This rank's rows.
        comm: Ranks whose rows belong together, in their order.
        fingerprint: 32 bytes that identify the source of the rows.

    Raises:
        DataError: If labels are words, for which the format has no place.
    """
    if rows.label_names is not None:
        raise DataError(
            f"{path}: labels must be numbers, got words; save replace(rows, label_names=None) "
            f"and the names separately"
        )
    target, rank = Path(path), comm.rank if comm else 0
    table = allgather_numbers(comm, rows.nnz, secrets.randbits(32))
    unfinished = unfinished_path(target, f"{int(table[0, 1]):08x}")
    before = int(table[:rank, 0].sum())
    layout = Layout(
        rows.values.itemsize,
        (rows.weights is not None) * WEIGHTED | BASES[rows.zero_based],
        rows.total,
        int(table[:, 0].sum()),
        rows.features,
        fingerprint,
    )
    try:
        run_collectively(comm, lambda: _create(unfinished, layout) if rank == 0 else None)
        run_collectively(comm, lambda: _write(unfinished, layout, rows, before))
        run_collectively(comm, lambda: unfinished.replace(target) if rank == 0 else None)
    except BaseException:
        if rank == 0:
            with suppress(OSError):
                unfinished.unlink()
        raise


def _create(path: Path, layout: Layout) -> None:
    with path.open("xb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, layout.nbytes)  # a full disk fails here
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        file.write(layout.header())


def _write(path: Path, layout: Layout, rows: Rows, before: int) -> None:
    """Write this rank's part of each section, after `before` entries of lower ranks."""
    low = rows.indptr[0]
    with path.open("r+b") as file:
        for name, (offset, count, dtype) in layout.sections().items():
            array = getattr(rows, name, None)
            if array is None or not count:
                continue
            skipped = rows.first
            if name in ("indices", "values"):
                array, skipped = array[low : rows.indptr[-1]], before
            elif name == "indptr":
                array = array - low + before
            file.seek(offset + skipped * dtype.itemsize)
            file.write(np.ascontiguousarray(array, dtype).data)
        file.flush()
        os.fsync(file.fileno())


def load_rows(
    path: str | os.PathLike[str],
    comm: Communicator | None = None,
    fingerprint: bytes | None = None,
) -> Rows:
    """Map the rows of a file, or a rank's equal part of them. Collective.

    Args:
        path: File that `save_rows` wrote. Its header is checked, its data are trusted.
        comm: Ranks that share the rows.
        fingerprint: Fingerprint that the file must have.

    Raises:
        DataError: If the file is of another format, damaged, or has another fingerprint.
    """
    rows = run_collectively(comm, lambda: _map(Path(path), fingerprint))
    return rows.part(comm.rank, comm.size) if comm else rows


def _map(path: Path, fingerprint: bytes | None) -> Rows:
    layout = _read_layout(path)
    if fingerprint is not None and layout.fingerprint != fingerprint:
        raise DataError(f"{path}: the file was made from other data")
    data = np.memmap(path, np.uint8, "r")
    if data.size != layout.nbytes:
        raise DataError(
            f"{path}: the file must have {layout.nbytes} bytes, got {data.size}; write it "
            f"again"
        )
    arrays: dict[str, NDArray[Any]] = {}
    for name, (offset, count, dtype) in layout.sections().items():
        section = data[offset : offset + count * dtype.itemsize]
        arrays[name] = section.view(np.ndarray).view(dtype)
    indptr = arrays["indptr"]
    if indptr[0] != 0 or indptr[-1] != layout.entries or (np.diff(indptr) < 0).any():
        raise DataError(f"{path}: row offsets must ascend; write the file again")
    return Rows(
        indptr,
        arrays["indices"],
        arrays["values"],
        arrays["labels"],
        layout.features,
        weights=arrays["weights"] if layout.flags & WEIGHTED else None,
        zero_based=layout.zero_based,
    )


def _read_layout(path: Path) -> Layout:
    with path.open("rb") as file:
        head = file.read(HEADER.size + CHECKSUM.size)
    if len(head) < HEADER.size + CHECKSUM.size or not head.startswith(MAGIC):
        raise DataError(f"{path}: not a file of save_rows")
    _, version, *numbers, fingerprint = HEADER.unpack_from(head)
    if version != VERSION:
        raise DataError(
            f"{path}: the format must have version {VERSION}, got {version}; write it again"
        )
    if zlib.crc32(head[: HEADER.size]) != CHECKSUM.unpack_from(head, HEADER.size)[0]:
        raise DataError(f"{path}: the header is damaged; write the file again")
    value_bytes, flags, rows, entries, features = numbers
    return Layout(value_bytes, flags, rows, entries, features, fingerprint)
