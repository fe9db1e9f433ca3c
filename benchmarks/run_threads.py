"""Measure what further threads of one process gain, on all cores of this machine.

    python benchmarks/run_threads.py --json FILE [--rows 8000]

Webspam-like rows: an epoch of SGD in batches of 1,000, and a prediction. Selection and quantization
of 16 M values. One thread and all take turns; times are medians. Results must have the same bits.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from sparcml import buffer_pool
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.kernels import linear, selection
from sparcml.kernels.threads import default_threads, using_threads
from sparcml.linear import SGD, Constant
from sparcml.linear.data import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml.linear import Rows

RUNS = 5
VALUES = 1 << 24


def tasks(rows: Rows) -> dict[str, Callable[[], Any]]:
    """Return what is measured; each task returns an array to compare."""
    values = np.random.default_rng(0).standard_normal(VALUES, np.float32)
    weights = np.random.default_rng(1).standard_normal(rows.features, np.float32)
    csr = linear.Csr(rows.indptr, rows.indices, rows.values, rows.labels)
    sgd = SGD(learning_rate=Constant(0.1), batch_size=1000, epochs=1)
    quantizer, comm = sparcml.QSGD(bits=4), sparcml.world()
    code = quantizer.encode(values)
    residual = np.roll(values, 1)
    return {
        "SGD epoch, batches of 1,000": lambda: sgd.run(comm, rows).weights,
        "prediction": lambda: linear.margins(csr, weights),
        "TopK 1 % of 16 M": lambda: selection.top_k(values, VALUES // 100)[0],
        "TopK 4 of 512 with residual, 16 M": lambda: _with_residual(values, residual),
        "QSGD 4 bit, encode 16 M": lambda: quantizer.encode(values).data,
        "QSGD 4 bit, decode 16 M": lambda: quantizer.decode(code),
    }


def _with_residual(values: Any, residual: Any) -> Any:
    out = buffer_pool.empty(values.size, values.dtype)
    selection.bucket_top_k_with_residual(residual, values, 4, 512, out)
    return out


def main() -> None:
    """Run each task on one thread and on all."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--rows", type=int, default=8000)
    chosen = options.parse_args()
    most, found = default_threads(), []
    for name, task in tasks(synthetic.webspam_like(chosen.rows)).items():
        times: dict[int, list[float]] = {1: [], most: []}
        results: list[Any] = []
        for _ in range(RUNS):
            for threads, spent in times.items():
                with using_threads(threads):
                    start = time.perf_counter()
                    result = task()
                    spent.append(time.perf_counter() - start)
                results.append(np.array(result))
        wrong = sum(not np.array_equal(r, results[0]) for r in results)
        one, all_ = median(times[1]), median(times[most])
        row = {"task": name, "threads": most, "one": one, "all": all_}
        found.append({**row, "speedup": one / all_, "wrong": wrong})
        print(found[-1])
    if chosen.json:
        write_json(chosen.json, describe(f"--rows {chosen.rows}", 0), found)


if __name__ == "__main__":
    main()
