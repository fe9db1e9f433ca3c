"""Text in the SVMlight or LIBSVM format; each rank reads its own part."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...communicator.collective_errors import (
    allgather_numbers,
    allgather_text,
    run_collectively,
)
from ...errors import DataError
from ...files import replacing
from .._core import SVMLIGHT_PADDING as PADDING  # bytes after the text that are read
from .._core import (
    SvmlightParser32,
    SvmlightParser64,
    svmlight_format,
    svmlight_row_bytes,
)
from .row_cache import BESIDE, USER, cached_rows
from .rows import MAX_FEATURES, Rows
from .sources import Piece, find_sources, split_text

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator
    from io import BufferedIOBase

    from numpy.typing import DTypeLike, NDArray

    from ...communicator.communicator import Communicator
    from .sources import PathLike, Source

NEWLINE, SPACE = 10, 32
BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # which some editors write before UTF-8 text
BLOCK = 1 << 22  # long enough to be divided among threads
WRITE_BLOCK = 1 << 22

Parser = SvmlightParser32 | SvmlightParser64


def read_svmlight(
    paths: PathLike | Iterable[PathLike],
    comm: Communicator | None = None,
    features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float32,
    cache: Literal["beside", "user"] | None = None,
) -> Rows:
    """Read the rows of a file, several files, or the files of a folder. Collective.

    A line is a label and index:value pairs with ascending indices; a qid and comments after #
    are ignored. Labels are numbers, or all of them words (`Rows.label_names`). Files may be
    compressed with gzip, bz2, xz or zstd, and one process may read pipes. Each rank gets the
    lines of its part of the text.

    Args:
        paths: Files and folders.
        comm: Ranks that share the rows; by default, this process reads all of them.
        features: Number of columns; by default, from the largest index.
        zero_based: Whether indices start at 0; "auto": they do if one of them is 0. The rows
            have the result as their `zero_based`.
        dtype: dtype of the values: float32 or float64.
        cache: Cache the rows in a binary file beside the text ("beside") or in the user's
            cache folder ("user"). Later calls map that file until the text changes.

    Raises:
        DataError: On all ranks; names the rank, file, line, column and mistake.
    """
    _check(features, zero_based, cache)
    sources = find_sources(paths, comm)

    def read() -> Rows:
        return _read(sources, comm, features, zero_based, dtype)

    if cache is None:
        return read()
    settings = f"{features} {zero_based} {np.dtype(dtype)}"
    return cached_rows(sources, settings, cache, comm, read)


def _read(
    sources: tuple[Source, ...],
    comm: Communicator | None,
    features: int | None,
    zero_based: bool | Literal["auto"],
    dtype: DTypeLike,
) -> Rows:
    pieces = split_text(sources, comm)
    lowest, highest = _bounds(zero_based, features)
    parser = run_collectively(comm, lambda: _parse(pieces, lowest, highest, dtype))
    table = allgather_numbers(comm, parser.rows, parser.smallest, parser.largest)
    counts = table[:, 0].astype(np.int64)
    if not counts.sum():
        shown = ", ".join(str(source.path) for source in sources[:3])
        raise DataError(f"{shown}{', ...' if len(sources) > 3 else ''}: no rows")
    if zero_based == "auto":
        zero_based = bool((table[:, 1] == 0).any())
        lowest, limit = _bounds(zero_based, features)
        if table[:, 2].max() > limit:  # parse again for the line of the mistake
            run_collectively(comm, lambda: _parse(pieces, lowest, limit, dtype))
    names, codes = _label_names(comm, parser, counts)
    indptr, indices, values, labels = parser.take()
    if names is not None:
        labels = codes[labels.astype(np.int64)]
    if not zero_based:
        indices -= 1
    if features is None:
        features = int(table[:, 2].max()) + bool(zero_based)
    first, total = int(counts[: comm.rank].sum()) if comm else 0, int(counts.sum())
    return Rows(
        indptr,
        indices,
        values,
        labels,
        features,
        first,
        total,
        zero_based=zero_based,
        label_names=names,
    )


def _label_names(
    comm: Communicator | None, parser: Parser, counts: NDArray[np.int64]
) -> tuple[tuple[str, ...] | None, NDArray[np.float64]]:
    """Return the words that are labels on any rank, and the positions of this rank's."""
    words = [word.decode("utf-8", "backslashreplace") for word in parser.words]
    gathered = [json.loads(text) for text in allgather_text(comm, json.dumps(words))]
    if not any(gathered):
        return None, np.empty(0)
    if any(count and not found for count, found in zip(counts, gathered, strict=True)):
        raise DataError("labels must be all words or all numbers, got both")
    names = sorted({word for found in gathered for word in found})
    return tuple(names), np.searchsorted(names, words).astype(np.float64)


def _check(features: int | None, zero_based: bool | str, cache: str | None) -> None:
    if zero_based not in (True, False, "auto"):
        raise ValueError(
            f"read_svmlight: zero_based must be True, False or 'auto', got {zero_based!r}"
        )
    if cache not in (None, BESIDE, USER):
        raise ValueError(
            f"read_svmlight: cache must be {BESIDE!r}, {USER!r} or None, got {cache!r}"
        )
    if features is not None and not 0 < features <= MAX_FEATURES:
        raise ValueError(
            f"read_svmlight: features must be 1 to {MAX_FEATURES}, got {features}"
        )


def _bounds(zero_based: bool | str, features: int | None) -> tuple[int, int]:
    """Return the smallest and the largest index that the text may have."""
    limit = MAX_FEATURES if features is None else features
    return (1 if zero_based is False else 0), (limit - 1 if zero_based is True else limit)


def parser_of(lowest: int, highest: int, dtype: DTypeLike) -> Parser:
    """Return a parser of rows with indices from `lowest` to `highest`."""
    if np.dtype(dtype) == np.float32:
        return SvmlightParser32(lowest, highest)
    if np.dtype(dtype) == np.float64:
        return SvmlightParser64(lowest, highest)
    raise ValueError(
        f"read_svmlight: dtype must be float32 or float64, got {np.dtype(dtype)}"
    )


def _parse(pieces: list[Piece], lowest: int, highest: int, dtype: DTypeLike) -> Parser:
    parser = parser_of(lowest, highest, dtype)
    for piece in pieces:
        before = parser.lines
        with piece.source.text(max(piece.start - 1, 0)) as file:
            _feed(parser, file, piece)
        if parser.failure:
            line, column, mistake = parser.failure
            line += _lines_before(piece) - before
            text = mistake.decode("utf-8", "backslashreplace")
            if text.startswith("the label") and "," in text and text.endswith("a number"):
                text += "; the file must be LIBSVM text, and looks like CSV"
            raise DataError(f"{piece.source.path}, line {line}, column {column}: {text}")
    return parser


def _feed(parser: Parser, file: BufferedIOBase, piece: Piece) -> None:
    """Parse the lines that start in a piece, to their ends."""
    position = piece.start
    if position > 0:  # the file is one byte before it, which may be a newline
        position += len(file.readline()) - 1
    buffer, filled = np.empty(BLOCK + PADDING, np.uint8), 0
    while position < piece.stop:
        count = file.readinto(buffer.data[filled:-PADDING])
        if position == 0 and not filled and buffer[:3].tobytes() == BYTE_ORDER_MARK:
            buffer[:3] = SPACE
        filled += count
        if not count:
            if not filled:
                return
            buffer[filled] = NEWLINE  # the last line may lack it
            filled += 1
        parsed = parser.feed(buffer, filled, piece.stop - position)
        if parser.failure or not count:
            return
        position, filled = position + parsed, filled - parsed
        buffer[:filled] = buffer[parsed : parsed + filled]
        if filled == buffer.size - PADDING:  # a line longer than the buffer
            buffer = np.resize(buffer, 2 * filled + PADDING)


def _lines_before(piece: Piece) -> int:
    """Count the lines before a piece; needed for error messages only."""
    left, lines, last = piece.start, 0, NEWLINE
    with piece.source.text() as file:
        while left and (block := file.read(min(left, BLOCK))):
            lines, last, left = lines + block.count(b"\n"), block[-1], left - len(block)
    return lines + (last != NEWLINE)  # the line that another piece has started


def write_svmlight(
    path: str | os.PathLike[str], rows: Rows | Iterable[Rows], *, zero_based: bool = False
) -> None:
    """Write rows, or a stream of parts of them, so that reading gives the same numbers.

    Labels that are words are written as their positions in `label_names`. An existing file is
    replaced once the new one is complete.

    Raises:
        TypeError: If rows, or a part of them, are of another type.
    """
    if not isinstance(rows, Rows) and (
        hasattr(rows, "shape") or not hasattr(rows, "__iter__")
    ):
        raise _not_rows(rows)
    with replacing(Path(path)) as file:
        for part in [rows] if isinstance(rows, Rows) else rows:
            if not isinstance(part, Rows):
                raise _not_rows(part)
            for text in _format(part, base=0 if zero_based else 1):
                file.write(text)


def _not_rows(given: object) -> TypeError:
    return TypeError(
        f"write_svmlight: rows must be Rows or an iterable of them, got "
        f"{type(given).__name__}; convert a matrix X and labels y with Rows.of(X, y)"
    )


def _format(rows: Rows, base: int) -> Iterator[memoryview]:
    longest = int(np.diff(rows.indptr).max(initial=0))
    out = np.empty(max(WRITE_BLOCK, svmlight_row_bytes(longest)), np.uint8)
    row = 0
    while row < len(rows):
        written, row = svmlight_format(
            rows.indptr, rows.indices, rows.values, rows.labels, row, base, out
        )
        yield out.data[:written]
