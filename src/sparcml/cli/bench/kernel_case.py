"""A kernel on one input: what to run, what it must give, and whom it is up against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sparcml.cli.bench.vectors import different

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Arrays = tuple[NDArray[Any], ...]


class Floor(NamedTuple):
    """What a kernel must reach on the best instruction set: one of the two."""

    rate: float | None = None  # at least, in the case's own unit
    over_peer: float | None = None  # at most, in the peer's time

    def met(self, rate: float, over_peer: float | None) -> bool:
        """Whether it is reached."""
        if self.rate is not None:
            return rate >= self.rate
        assert self.over_peer is not None
        return over_peer is not None and over_peer <= self.over_peer

    def __str__(self) -> str:
        return f"<= {self.over_peer}x" if self.rate is None else f">= {self.rate:g}"


@dataclass(frozen=True)
class Case:
    """One line of the table, for each instruction set.

    Attributes:
        what: The kernel and its input, in words.
        size: Entries or values that go in.
        run: The kernel on prepared arrays; gives its output.
        want: The same from the NumPy reference.
        work: What `rate` counts, in one run: entries or bytes.
        peer: Whose time ours is compared with; `run_peer` is None if it is not here.
        output: What is checked, where it is not simply what `run` gives.
    """

    what: str
    size: int
    run: Callable[[], Arrays]
    want: Arrays
    work: float
    unit: str
    peer: str
    run_peer: Callable[[], object] | None
    floor: Floor | None = None
    entry_bytes: float | None = None
    output: Callable[[], Arrays] | None = None

    def wrong(self) -> int:
        """Entries of the output that differ from the reference."""
        got = (self.output or self.run)()
        return max(different(a, b) for a, b in zip(got, self.want, strict=True))


def copy_of(array: NDArray[Any]) -> Callable[[], object]:
    """One copy of the array into memory that has been touched: memcpy."""
    target = array.copy()
    return lambda: np.copyto(target, array)
