"""Measure what further threads of one process gain, on all cores of this machine.

    python benchmarks/run_threads.py --json FILE [--rows 8000]

Webspam-like rows: an epoch of SGD in batches of 1,000 after the first one, a prediction, and
reading 1,000 rows of LIBSVM text. Selection, quantization and sums of 16 M values, and a copy of
them: what the memory allows. One thread and all take turns; times are medians. Results must have
the same bits.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from sparcml import buffer_pool
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.kernels import reduction, selection
from sparcml.kernels.threads import default_threads, threads, using_threads
from sparcml.linear import SGD, Constant, loops, read_svmlight, write_svmlight
from sparcml.linear.data import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml.linear import Rows, SGDState

RUNS = 5
VALUES = 1 << 24
TEXT_ROWS = 1000


def tasks(rows: Rows, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return what is measured; each task returns an array to compare."""
    values = np.random.default_rng(0).standard_normal(VALUES, np.float32)
    weights = np.random.default_rng(1).standard_normal(rows.features, np.float32)
    csr = loops.Csr(rows.indptr, rows.indices, rows.values, rows.labels)
    sgd = SGD(learning_rate=Constant(0.1), batch_size=1000, epochs=1)
    # Calls on one thread and on all alternate; each continues its own training.
    states = cycle([sgd.run(sparcml.world(), rows) for _ in range(2)])
    copies = np.empty_like(values)
    quantizer = sparcml.QSGD(bits=4)
    code = quantizer.encode(values)
    residual = np.roll(values, 1)
    text = folder / "rows.svm"
    write_svmlight(text, rows.take(0, TEXT_ROWS))
    pair = [entries(seed, VALUES // 16) for seed in range(2)]
    eight = [entries(seed, VALUES // 100) for seed in range(8)]
    blocks = [entries(seed, VALUES // 256, block=16) for seed in range(2)]
    return {
        "copy of 16 M values": lambda: _copy(values, copies),
        "SGD epoch, batches of 1,000": lambda: _epoch(sgd, rows, next(states)),
        "prediction": lambda: loops.margins(csr, weights),
        "LIBSVM reading": lambda: read_svmlight(text, features=rows.features).values,
        "TopK 1 % of 16 M": lambda: selection.top_k(values, VALUES // 100)[0],
        "TopK 4 of 512 with residual, 16 M": lambda: _with_residual(values, residual),
        "QSGD 4 bit, encode 16 M": lambda: quantizer.encode(values).data,
        "QSGD 4 bit, decode 16 M": lambda: quantizer.decode(code),
        "sum of 2 vectors, 1 M entries each": lambda: _sum(pair),
        "sum of 2 vectors, 64 k blocks of 16": lambda: _sum(blocks, 16),
        "sum of 8 vectors, 168 k entries each": lambda: _sum(eight),
        "dense sum of 16 M": lambda: reduction.combine_dense("sum", values, residual),
    }


def entries(seed: int, nnz: int, block: int = 1) -> tuple[Any, Any]:
    """Return about nnz random entries of a vector of 16 M values."""
    rng = np.random.default_rng(seed)
    indices = np.unique(rng.integers(0, VALUES // block, nnz, np.uint32))
    return indices, rng.standard_normal(indices.size * block, np.float32)


def _epoch(sgd: SGD, rows: Rows, state: SGDState) -> Any:
    sgd.run_epoch(sparcml.world(), rows, state)
    return state.model.coefficients  # of the active columns; all weights would be 66 MB


def _copy(values: Any, out: Any) -> Any:
    count = threads()
    parts = zip(np.array_split(values, count), np.array_split(out, count), strict=True)
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(lambda pair: np.copyto(pair[1], pair[0]), parts))
    return out


def _sum(parts: list[Any], block: int = 1) -> Any:
    if len(parts) == 2:
        (ai, av), (bi, bv) = parts
        return reduction.merge("sum", ai, av, bi, bv, block)[1]
    return reduction.merge_many("sum", parts, block)[1]


def _with_residual(values: Any, residual: Any) -> Any:
    out = buffer_pool.empty(values.size, values.dtype)
    selection.bucket_top_k_with_residual(residual, values, 4, 512, out)
    return out


def measure(name: str, task: Callable[[], Any]) -> dict[str, Any]:
    """Run a task on one thread and on all in turn."""
    most = default_threads()
    times: dict[int, list[float]] = {1: [], most: []}
    results: list[Any] = []
    for _ in range(RUNS):
        for count, spent in times.items():
            with using_threads(count):
                start = time.perf_counter()
                result = task()
                spent.append(time.perf_counter() - start)
            results.append(np.array(result))
    pairs = zip(results[::2], results[1::2], strict=True)
    wrong = sum(not np.array_equal(*pair) for pair in pairs)
    one, all_ = median(times[1]), median(times[most])
    row = {"task": name, "threads": most, "one": one, "all": all_}
    row |= {"speedup": one / all_, "wrong": wrong}
    print(row)
    return row


def main() -> None:
    """Run each task on one thread and on all."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--rows", type=int, default=8000)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = tasks(synthetic.webspam_like(chosen.rows), Path(folder))
        found = [measure(name, task) for name, task in rows.items()]
    if chosen.json:
        write_json(chosen.json, describe(f"--rows {chosen.rows}", 0), found)


if __name__ == "__main__":
    main()
