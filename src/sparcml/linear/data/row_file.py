"""Rows in a binary file, which is loaded by mapping it: nothing is read before it is used.

Little-endian: a header of 96 bytes, then indptr (int64), labels and weights (float64),
indices (uint32) and values (float32 or float64), each starting at a multiple of 64 bytes. The
header: magic, version, bytes of a value, flags (1: there are weights; 2: indices started at 0 in
the text; 4: at 1), rows, entries, features, a fingerprint of what the rows were made of (32
bytes), zeros, and the CRC-32 of all before it.
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

from ...communicator.collective_errors import gather, together
from ...errors import DataError
from .rows import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

MAGIC = b"SPARROWS"
VERSION = 2
HEADER = struct.Struct("<8sIHHQQQ32s20x")  # and its checksum
CHECKSUM = struct.Struct("<I")
ALIGNED = 64
NO_MARK = bytes(32)
WEIGHTED = 1
ZERO_BASED, ONE_BASED = 2, 4  # where indices started
BASES = {None: 0, True: ZERO_BASED, False: ONE_BASED}


@dataclass(frozen=True)
class Layout:
    """What is where."""

    value_bytes: int
    flags: int
    rows: int
    entries: int
    features: int
    mark: bytes

    @property
    def zero_based(self) -> bool | None:
        """As `Rows` has it."""
        known = self.flags & (ZERO_BASED | ONE_BASED)
        return known == ZERO_BASED if known else None

    def sections(self) -> dict[str, tuple[int, int, np.dtype[Any]]]:
        """(offset, items, dtype) of each array, and of the end."""
        sizes = (
            ("indptr", self.rows + 1, np.dtype("<i8")),
            ("labels", self.rows, np.dtype("<f8")),
            ("weights", self.rows if self.flags & WEIGHTED else 0, np.dtype("<f8")),
            ("indices", self.entries, np.dtype("<u4")),
            ("values", self.entries, np.dtype(f"<f{self.value_bytes}")),
            ("end", 0, np.dtype("u1")),
        )
        found, at = {}, HEADER.size + CHECKSUM.size
        for name, count, dtype in sizes:
            at = -(-at // ALIGNED) * ALIGNED
            found[name] = (at, count, dtype)
            at += count * dtype.itemsize
        return found

    @property
    def nbytes(self) -> int:
        """Of the whole file."""
        return self.sections()["end"][0]

    def header(self) -> bytes:
        """The first bytes of the file."""
        kind = (self.value_bytes, self.flags)
        sizes = (self.rows, self.entries, self.features)
        head = HEADER.pack(MAGIC, VERSION, *kind, *sizes, self.mark)
        return head + CHECKSUM.pack(zlib.crc32(head))


def save_rows(
    path: str | os.PathLike[str],
    rows: Rows,
    comm: Communicator | None = None,
    mark: bytes = NO_MARK,
) -> None:
    """Write rows, each rank those it has, to a file on a disk that all ranks share.

    A file of that name is replaced once the new one is complete; if the disk is full, it
    stays as it was.

    Args:
        path: Of the file.
        rows: Of this rank.
        comm: The ranks whose rows belong together, in their order.
        mark: A fingerprint, 32 bytes, of what they were made of.
    """
    target, rank = Path(path), comm.rank if comm else 0
    told = gather(comm, rows.nnz, secrets.randbits(32))
    unfinished = target.with_name(f".{target.name}.{int(told[0, 1]):08x}")
    before = int(told[:rank, 0].sum())
    layout = Layout(
        rows.values.itemsize,
        (rows.weights is not None) * WEIGHTED | BASES[rows.zero_based],
        rows.total,
        int(told[:, 0].sum()),
        rows.features,
        mark,
    )
    try:
        together(comm, lambda: _create(unfinished, layout) if rank == 0 else None)
        together(comm, lambda: _write(unfinished, layout, rows, before))
        together(comm, lambda: unfinished.replace(target) if rank == 0 else None)
    except BaseException:
        if rank == 0:
            with suppress(OSError):
                unfinished.unlink()
        raise


def _create(path: Path, layout: Layout) -> None:
    with path.open("xb") as file:
        try:
            os.posix_fallocate(file.fileno(), 0, layout.nbytes)  # a full disk shows here
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(path)) from error
        file.write(layout.header())


def _write(path: Path, layout: Layout, rows: Rows, before: int) -> None:
    """This rank's part of each section; `before` entries are those of lower ranks."""
    low = rows.indptr[0]
    with path.open("r+b") as file:
        for name, (at, count, dtype) in layout.sections().items():
            array = getattr(rows, name, None)
            if array is None or not count:
                continue
            skipped = rows.first
            if name in ("indices", "values"):
                array, skipped = array[low : rows.indptr[-1]], before
            elif name == "indptr":
                array = array - low + before
            file.seek(at + skipped * dtype.itemsize)
            file.write(np.ascontiguousarray(array, dtype).data)
        file.flush()
        os.fsync(file.fileno())


def load_rows(
    path: str | os.PathLike[str],
    comm: Communicator | None = None,
    mark: bytes | None = None,
) -> Rows:
    """The rows of a file, or a rank's share of them: as many as the others', or one less.

    Args:
        path: Of a file that `save_rows` has written; its header is checked, its data are
            trusted.
        comm: The ranks that share the rows.
        mark: What the rows must have been made of.

    Raises:
        DataError: If the file is none, is damaged, or was made of something else.
    """
    rows = together(comm, lambda: _mapped(Path(path), mark))
    return rows.part(comm.rank, comm.size) if comm else rows


def _mapped(path: Path, mark: bytes | None) -> Rows:
    layout = _layout(path)
    if mark is not None and layout.mark != mark:
        raise DataError(f"{path}: it was made of other data")
    whole = np.memmap(path, np.uint8, "r")
    if whole.size != layout.nbytes:
        raise DataError(f"{path}: {whole.size} bytes, but it should have {layout.nbytes}")
    found: dict[str, NDArray[Any]] = {}
    for name, (at, count, dtype) in layout.sections().items():
        section = whole[at : at + count * dtype.itemsize]
        found[name] = section.view(np.ndarray).view(dtype)
    indptr = found["indptr"]
    if indptr[0] != 0 or indptr[-1] != layout.entries or (np.diff(indptr) < 0).any():
        raise DataError(f"{path}: rows do not follow each other; write it anew")
    return Rows(
        indptr,
        found["indices"],
        found["values"],
        found["labels"],
        layout.features,
        weights=found["weights"] if layout.flags & WEIGHTED else None,
        zero_based=layout.zero_based,
    )


def _layout(path: Path) -> Layout:
    with path.open("rb") as file:
        head = file.read(HEADER.size + CHECKSUM.size)
    if len(head) < HEADER.size + CHECKSUM.size or not head.startswith(MAGIC):
        raise DataError(f"{path}: these are no rows that were saved")
    _, version, *numbers, mark = HEADER.unpack_from(head)
    if version != VERSION:
        raise DataError(f"{path}: version {version} of the format, not {VERSION}")
    if zlib.crc32(head[: HEADER.size]) != CHECKSUM.unpack_from(head, HEADER.size)[0]:
        raise DataError(f"{path}: its header is damaged; write it anew")
    value_bytes, flags, rows, entries, features = numbers
    return Layout(value_bytes, flags, rows, entries, features, mark)
