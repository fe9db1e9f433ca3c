"""The real data that come with the package."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, NamedTuple

from .compact import unpack

if TYPE_CHECKING:
    from ...communicator.communicator import Communicator
    from .rows import Rows

HELD_OUT = 5  # one row of so many, at the end


class Split(NamedTuple):
    """Rows to learn from, and rows to be judged by."""

    train: Rows
    held_out: Rows


def spam(comm: Communicator | None = None) -> Split:
    """3,023 mails of the SpamAssassin corpus, hashed to 16,609,143 features, 31 % spam (1).

    Words, triples of words and triples of characters of the bodies, in random order; rows
    have length 1, and about 1,610 entries. `benchmarks/build_spam.py` has made them.

    Args:
        comm: Ranks that share the rows; each gets its part of both.
    """
    rows = _rows()
    start = len(rows) - len(rows) // HELD_OUT
    train = replace(rows.take(0, start), total=start)
    held_out = replace(rows.take(start, len(rows)), first=0, total=len(rows) - start)
    if comm is None:
        return Split(train, held_out)
    return Split(train.part(comm.rank, comm.size), held_out.part(comm.rank, comm.size))


@cache
def _rows() -> Rows:
    return unpack(resources.files(__package__).joinpath("spam.bin").read_bytes())
