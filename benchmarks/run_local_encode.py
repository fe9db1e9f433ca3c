"""Measure the encoding of SparseLoCo: 64 of 4096 values in two bits, with their indices.

    python benchmarks/run_local_encode.py --json benchmarks/results/DATE-local-encode.json

One core. Selection, residual and message are timed together and apart, with a copy of the vector
as the unit.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml import TopK, wire
from sparcml.aggregate.error_feedback import update_residual
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.quantize import Codebook

if TYPE_CHECKING:
    from collections.abc import Callable

SIZE = 2**24
TAG = wire.Tag(call=3 << 3, sequence=7, round=1)


def main() -> None:
    """Print the times and save them."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--runs", type=int, default=15)
    chosen = options.parse_args()
    rng = np.random.default_rng(0)
    residual, change = rng.standard_normal((2, SIZE), np.float32)
    copy, out = np.empty_like(change), np.empty_like(change)
    sparsifier, quantizer = TopK(k=64, bucket=4096), Codebook()
    stream = sparsifier.select_with_residual(residual, change, scale=0.95).sent
    message, _ = wire.encode(stream, TAG, quantizer)

    def select() -> None:
        sparsifier.select_with_residual(residual, change, scale=0.95, out=out)

    def encode() -> None:
        wire.encode(stream, TAG, quantizer)

    def everything() -> None:
        selection = sparsifier.select_with_residual(residual, change, scale=0.95, out=out)
        _, seen = wire.encode(selection.sent, TAG, quantizer, see=True)
        update_residual(selection, seen)

    works: dict[str, Callable[[], None]] = {
        "copy": lambda: np.copyto(copy, change),
        "selection and residual": select,
        "message": encode,
        "selection, message and residual": everything,
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(chosen.runs):
        for name, work in works.items():
            start = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - start)
    unit = float(np.median(times["copy"]))
    rows: list[dict[str, Any]] = [
        {
            "work": name,
            "seconds": float(np.median(seconds)),
            "copies": float(np.median(seconds)) / unit,
            "values": SIZE,
            "bytes": len(message),
            "ratio": 4 * SIZE / len(message),
        }
        for name, seconds in times.items()
    ]
    for row in rows:
        print(f"{row['work']}: {row['seconds'] * 1e3:.1f} ms, {row['copies']:.2f} copies")
    print(f"{rows[0]['bytes']:,} bytes, {rows[0]['ratio']:.1f} times fewer than float32")
    if chosen.json is not None:
        write_json(chosen.json, describe("", 0), rows)


if __name__ == "__main__":
    main()
