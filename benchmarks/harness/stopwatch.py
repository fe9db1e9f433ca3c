"""Timing of functions in turns."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Stopwatch:
    """A minimum duration and a minimum number of runs per function."""

    seconds: float = 0.25
    runs: int = 7

    def time(self, *functions: Callable[[], object]) -> list[list[float]]:
        """Return the seconds of each function's runs.

        The functions run in turns, so that a disturbance affects all of them.
        """
        for function in functions:
            function()  # warm-up: first touch of memory, caches, branch history
        times: list[list[float]] = [[] for _ in functions]
        start, duration = time.perf_counter(), self.seconds * len(functions)
        while len(times[0]) < self.runs or time.perf_counter() - start < duration:
            for function, elapsed in zip(functions, times, strict=True):
                begin = time.perf_counter()
                function()
                elapsed.append(time.perf_counter() - begin)
        return times


QUICK = Stopwatch(0.005, 3)


def copy_of(array: NDArray[Any]) -> Callable[[], object]:
    """Return a function that copies the array into memory in use: memcpy."""
    target = array.copy()
    return lambda: np.copyto(target, array)
