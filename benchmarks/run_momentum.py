"""Time steps with momentum in the method beside plain ones, on one core, in turns.

    python benchmarks/run_momentum.py --json FILE

One rank: the selection is timed, and no message. States are overwritten, as under DDP. The first
steps, in which the momentum grows, are not timed.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from harness.command import SEED, main

import sparcml
from sparcml import DGC, QSGD, Compressed, OneBit, Threshold, TopK
from sparcml.bench.results import quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from harness.stopwatch import Stopwatch

    from sparcml import Method
    from sparcml.bench.results import Row

LIMIT = 1.3  # times the plain step
GROWING = 40  # steps
M = 0.9
FAMILIES: dict[str, tuple[Method, ...]] = {
    "TopK 1 %": (
        Compressed(TopK(0.01)),
        Compressed(TopK(0.01), momentum=M),
        Compressed(TopK(0.01), momentum=M, nesterov=True),
        DGC(0.01),
    ),
    "TopK 4 of 512": (
        Compressed(TopK(k=4, bucket=512)),
        Compressed(TopK(k=4, bucket=512), momentum=M),
    ),
    "Threshold 1 %": (
        Compressed(Threshold(ratio=0.01)),
        Compressed(Threshold(ratio=0.01), momentum=M),
    ),
    "QSGD 4 bit": (Compressed(quantize=QSGD(4)), Compressed(quantize=QSGD(4), momentum=M)),
    "OneBit": (Compressed(quantize=OneBit()), Compressed(quantize=OneBit(), momentum=M)),
}


def measure_all(size: int, stopwatch: Stopwatch) -> list[Row]:
    """Measure and print all rows."""
    rng = np.random.default_rng(SEED)
    gradients = [rng.standard_normal((8, size // 8)).astype(np.float32) for _ in range(4)]
    rows: list[Row] = []
    for family, methods in FAMILIES.items():
        times = stopwatch.time(*(_stepper(method, gradients) for method in methods))
        plain = quantile(times[0], 0.5)
        for method, elapsed in zip(methods, times, strict=True):
            median = quantile(elapsed, 0.5)
            rows.append(
                {
                    "family": family,
                    "method": str(method),
                    "size": size,
                    "median": median,
                    "q1": quantile(elapsed, 0.25),
                    "q3": quantile(elapsed, 0.75),
                    "ratio": median / plain,
                }
            )
            print(f"{median / plain:5.2f}x {1e3 * median / size:7.3f} ns/value  {method}")
    return rows


def _stepper(method: Method, gradients: list[Any]) -> Callable[[], object]:
    """Return a function that makes a step, after those in which the momentum grows."""
    comm, made = sparcml.world(), 0
    state = method.init(gradients[0].shape)

    def step() -> None:
        nonlocal state, made
        gradient = gradients[made % len(gradients)]
        _, state = method.aggregate(comm, gradient, state, overwrite_state=True)
        made += 1

    for _ in range(GROWING):
        step()
    return step


def verdict(rows: list[Row]) -> int:
    """Print the rows above the limit, and return 1 if there are any."""
    missed = [row for row in rows if row["ratio"] > LIMIT]
    for row in missed:
        print(f"# missed: {row['ratio']:.2f}x, limit {LIMIT}: {row['method']}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(__doc__.partition("\n")[0], measure_all, verdict, min_size="4K"))
