"""Measure the time and memory of reading LIBSVM text.

    python benchmarks/run_reading.py --json FILE [--scale 1]

Generated data, written as text, on one thread, with the file in the page cache, all in one run:
ours, scikit-learn's reader, a plain read of the file and a copy of the text in memory; then ours
on all threads. Every result is compared with the written rows. Memory is measured in a separate
process.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.kernels.threads import default_threads, using_threads
from sparcml.linear import Rows, read_svmlight, write_svmlight
from sparcml.linear.data import synthetic

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 3
REPEATS = 100  # of the same rows, in the large file


def best(job: Callable[[], Any], runs: int = RUNS) -> tuple[float, Any]:
    """Return the shortest time, and the last result."""
    times, result = [], None
    for _ in range(runs):
        del result  # its memory is the next run's
        start = time.perf_counter()
        result = job()
        times.append(time.perf_counter() - start)
    return min(times), result


def same(found: Rows, wanted: Rows) -> bool:
    """Return whether all numbers equal those that were written."""
    arrays = ("indptr", "indices", "values", "labels")
    return all(np.array_equal(getattr(found, a), getattr(wanted, a)) for a in arrays)


def by_scikit_learn(path: Path, features: int) -> Rows:
    """Read with scikit-learn, to float32 values."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(str(path), n_features=features, dtype=np.float32)
    return Rows.of(X, y)


def compare(name: str, wanted: Rows, folder: Path) -> list[dict[str, Any]]:
    """Return one row per reader."""
    path = folder / "text.svm"
    write_svmlight(path, wanted)
    text = np.frombuffer(path.read_bytes(), np.uint8)
    room = np.empty_like(text)
    squeezed = folder / "text.svm.gz"
    with gzip.open(squeezed, "wb", 1) as file:
        file.write(text.data)
    features = wanted.features
    read_svmlight(path, features=features, cache="beside")
    jobs: dict[str, tuple[int, Callable[[], Any]]] = {
        "copy in memory": (RUNS, lambda: np.copyto(room, text)),
        "plain read": (RUNS, path.read_bytes),
        "read_svmlight": (RUNS, lambda: read_svmlight(path, features=features)),
        f"read_svmlight, {default_threads()} threads": (
            RUNS,
            lambda: threaded(path, features),
        ),
        "read_svmlight, gzip": (1, lambda: read_svmlight(squeezed, features=features)),
        "read_svmlight, cached": (RUNS, lambda: cached(path, features)),
        "scikit-learn": (1, lambda: by_scikit_learn(path, features)),
    }
    import sklearn.datasets  # noqa: F401  # not to be timed

    rows = []
    for reader, (runs, job) in jobs.items():
        with using_threads(1):
            seconds, result = best(job, runs)
        wrong = isinstance(result, Rows) and not same(result, wanted)
        rows.append(
            {
                "data": name,
                "reader": reader,
                "bytes": text.size,
                "seconds": seconds,
                "rate": text.size / seconds / 1e6,
                "memory": None,
                "wrong": int(wrong),
            }
        )
    return rows


def threaded(path: Path, features: int) -> Rows:
    """Read on all threads."""
    with using_threads(None):
        return read_svmlight(path, features=features)


def cached(path: Path, features: int) -> Rows:
    """Map the cache, and read all of it."""
    rows = read_svmlight(path, features=features, cache="beside")
    rows.indices.max(), rows.values.max()
    return rows


def peak() -> int:
    """Return the peak memory of this process in bytes; ru_maxrss includes the parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def memory(path: Path, part: Rows) -> dict[str, Any]:
    """Return the peak memory of reading a large file, in its own process."""
    before, start = peak(), time.perf_counter()
    with using_threads(1):
        rows = read_svmlight(path, features=part.features)
    seconds, taken = time.perf_counter() - start, peak() - before
    count = len(part)
    wrong = len(rows) != REPEATS * count or not all(
        np.array_equal(rows.take(i * count, (i + 1) * count).values, part.values)
        for i in range(REPEATS)
    )
    return {
        "data": f"{len(rows):,} rows x {rows.nnz // len(rows)}",
        "reader": "read_svmlight",
        "bytes": path.stat().st_size,
        "seconds": seconds,
        "rate": path.stat().st_size / seconds / 1e6,
        "memory": taken / rows.nbytes,
        "wrong": int(wrong),
    }


def uniform(count: int) -> Rows:
    """Write rows of 100 entries with values of four decimals."""
    rng = np.random.default_rng(0)
    gaps = rng.integers(1, 20_000, (count, 100))
    indices = np.cumsum(gaps, axis=1).astype(np.uint32).ravel()
    values = (rng.integers(1, 10_000, indices.size) / 10_000).astype(np.float32)
    labels = rng.choice([-1.0, 1.0], count)
    return Rows(np.arange(count + 1) * 100, indices, values, labels, 2_000_000)


def main() -> None:
    """Run all readers."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument(
        "--scale", type=float, default=1.0, help="multiple of the number of rows"
    )
    chosen = options.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        rows = compare("URL-like", synthetic.url_like(int(100_000 * chosen.scale)), folder)
        webspam = synthetic.webspam_like(int(2_000 * chosen.scale))
        rows += compare("Webspam-like", webspam, folder)
        part = uniform(int(10_000 * chosen.scale))
        large = folder / "large.svm"
        write_svmlight(large, [part] * REPEATS)
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
            rows.append(fresh.submit(memory, large, part).result())
    finally:
        shutil.rmtree(folder)
    for row in rows:
        print({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})
    if chosen.json:
        write_json(chosen.json, describe("", 0), rows)


if __name__ == "__main__":
    main()
