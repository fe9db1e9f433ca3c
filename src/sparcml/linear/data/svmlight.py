"""Text in the SVMlight or LIBSVM format, each rank its own part of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np

from ...communicator.collective_errors import gather, together
from ...errors import DataError
from ...kernels import SVMLIGHT_PADDING as PADDING
from ...kernels import svmlight_parser
from .row_cache import BESIDE, USER, kept
from .rows import MAX_FEATURES, Rows
from .sources import BLOCK, Piece, pieces, sources

if TYPE_CHECKING:
    from collections.abc import Iterable
    from io import BufferedIOBase

    from numpy.typing import DTypeLike

    from ...communicator.communicator import Communicator
    from ...kernels import SvmlightParser
    from .sources import Place, Source

NEWLINE = 10


def read_svmlight(
    places: Place | Iterable[Place],
    comm: Communicator | None = None,
    features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float32,
    cache: Literal["beside", "user"] | None = None,
) -> Rows:
    """Rows of a file, several files, or the files of a directory.

    A line is a label and index:value pairs, whose indices ascend; a qid and what follows a
    # are ignored. Files may be compressed by gzip, bz2, xz or zstd. With a communicator, all
    its ranks call this, and each gets the lines of its part of the text.

    Args:
        places: Paths of files and directories.
        comm: The ranks that share the rows; by default this one reads them all.
        features: Columns; by default as many as the largest index asks for.
        zero_based: Whether indices start at 0; auto: they do if one of them is 0. The rows
            have what was found as their `zero_based`.
        dtype: Of the values: float32 or float64.
        cache: Keep the rows in a binary file, beside the text or in the user's cache, which
            later calls map instead of reading the text, until that changes.

    Raises:
        DataError: On all ranks; names the rank, file, line and column, and what is wrong.
    """
    _check(features, zero_based, cache)
    found = sources(places, comm)

    def make() -> Rows:
        return _read(found, comm, features, zero_based, dtype)

    if cache is None:
        return make()
    settings = f"{features} {zero_based} {np.dtype(dtype)}"
    return kept(found, settings, cache, comm, make)


def _read(
    found: tuple[Source, ...],
    comm: Communicator | None,
    features: int | None,
    zero_based: bool | Literal["auto"],
    dtype: DTypeLike,
) -> Rows:
    mine = pieces(found, comm)
    lowest, highest = _bounds(zero_based, features)
    parser = together(comm, lambda: _parse(mine, lowest, highest, dtype))
    seen = gather(comm, parser.rows, parser.smallest, parser.largest)
    counts = seen[:, 0].astype(np.int64)
    if not counts.sum():
        shown = ", ".join(str(source.path) for source in found[:3])
        raise DataError(f"{shown}{', ...' if len(found) > 3 else ''}: no rows in there")
    if zero_based == "auto":
        zero_based = bool((seen[:, 1] == 0).any())
        lowest, limit = _bounds(zero_based, features)
        if seen[:, 2].max() > limit:  # once more, to find the line
            together(comm, lambda: _parse(mine, lowest, limit, dtype))
    indptr, indices, values, labels = parser.take()
    if not zero_based:
        indices -= 1
    if features is None:
        features = int(seen[:, 2].max()) + bool(zero_based)
    first, total = int(counts[: comm.rank].sum()) if comm else 0, int(counts.sum())
    return Rows(
        indptr, indices, values, labels, features, first, total, zero_based=zero_based
    )


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
    """The smallest and the largest index that may be written in the text."""
    most = MAX_FEATURES if features is None else features
    return (1 if zero_based is False else 0), (most - 1 if zero_based is True else most)


def _parse(
    mine: list[Piece], lowest: int, highest: int, dtype: DTypeLike
) -> SvmlightParser:
    parser = svmlight_parser(lowest, highest, dtype)
    for piece in mine:
        before = parser.lines
        with piece.source.text(max(piece.start - 1, 0)) as file:
            _feed(parser, file, piece)
        if parser.failure:
            line, column, what = parser.failure
            line += _lines_before(piece) - before
            text = what.decode("utf-8", "backslashreplace")
            raise DataError(f"{piece.source.path}, line {line}, column {column}: {text}")
    return parser


def _feed(parser: SvmlightParser, file: BufferedIOBase, piece: Piece) -> None:
    """The lines of a piece: those that start in it, to their ends."""
    position = piece.start
    if position > 0:  # the file is one byte before it, which may end a line
        position += len(file.readline()) - 1
    buffer, held = np.empty(BLOCK + PADDING, np.uint8), 0
    while position < piece.stop:
        got = file.readinto(buffer.data[held:-PADDING])
        held += got
        if not got:
            if not held:
                return
            buffer[held] = NEWLINE  # the last line may lack it
            held += 1
        used = parser.feed(buffer, held, piece.stop - position)
        if parser.failure or not got:
            return
        position, held = position + used, held - used
        buffer[:held] = buffer[used : used + held]
        if held == buffer.size - PADDING:  # a line longer than the buffer
            buffer = np.resize(buffer, 2 * held + PADDING)


def _lines_before(piece: Piece) -> int:
    """Counted only when something is wrong."""
    left, lines, last = piece.start, 0, NEWLINE
    with piece.source.text() as file:
        while left and (block := file.read(min(left, BLOCK))):
            lines, last, left = lines + block.count(b"\n"), block[-1], left - len(block)
    return lines + (last != NEWLINE)  # the line that another piece has started
