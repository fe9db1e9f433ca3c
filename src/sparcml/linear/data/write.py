"""Rows as text in the LIBSVM format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ...files import replacing
from ...kernels import svmlight_format, svmlight_row_bytes
from .rows import Rows

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

BLOCK = 1 << 22


def write_svmlight(
    path: str | os.PathLike[str], rows: Rows | Iterable[Rows], *, zero_based: bool = False
) -> None:
    """Write rows, or the rows of a stream of parts, so that reading gives the same numbers.

    A file of that name is replaced once the new one is complete.
    """
    with replacing(Path(path)) as file:
        for part in [rows] if isinstance(rows, Rows) else rows:
            for text in _blocks(part, base=0 if zero_based else 1):
                file.write(text)


def _blocks(rows: Rows, base: int) -> Iterator[memoryview]:
    longest = int(np.diff(rows.indptr).max(initial=0))
    out = np.empty(max(BLOCK, svmlight_row_bytes(longest)), np.uint8)
    row = 0
    while row < len(rows):
        written, row = svmlight_format(
            rows.indptr, rows.indices, rows.values, rows.labels, row, base, out
        )
        yield out.data[:written]
