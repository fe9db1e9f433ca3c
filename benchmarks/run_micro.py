"""Time allreduces of streams with random indices on ranks with slow links.

    sparcml run -n 8 --network 1gbit benchmarks/run_micro.py --network 1gbit --json FILE

Each algorithm reduces the same 5 data sets 10 times; the slowest rank of each run counts. Dense
allreduces use one data set, since their time does not depend on the indices. Rows replace those
of the same case in FILE, so that a long measurement can be split.
"""

from __future__ import annotations

import argparse
import json
import time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from micro.rows import DENSE, SPARSE, Case, Row
from micro.vectors import RUNS, SETS, SIZE, vector

import sparcml
from sparcml import Stream
from sparcml.bench.baselines import BASELINES, close
from sparcml.bench.results import write_json
from sparcml.costs import Workload
from sparcml.costs.lower_bound import lower_bound
from sparcml.environment import describe
from sparcml.network.presets import link_bandwidth
from sparcml.units import parse_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


class Bench:
    """Timing on one rank."""

    def __init__(self, comm: sparcml.Communicator, network: str, size: int) -> None:
        self.comm, self.network, self.size = comm, network, size
        self.seconds_per_byte = 8 / link_bandwidth(network)

    def measure(
        self, density: float, algorithms: list[str], sets: int, runs: int
    ) -> list[Row]:
        """Return rows of all algorithms, set by set, so that slow changes affect all."""
        found: dict[str, list[tuple[list[float], int | None, int]]] = {}
        filled = []
        for data in range(sets):
            x = vector(self.size, density, self.comm.rank, data)
            want = _dense(BASELINES["mpi_allreduce"](self.comm, x.to_dense()).run())
            filled.append(int(np.count_nonzero(want)))
            for name in algorithms:
                found.setdefault(name, []).append(self._times(name, x, want, runs))
        return [self._row(density, name, found[name], filled) for name in algorithms]

    def _times(
        self, name: str, x: Stream, want: NDArray[np.float32], runs: int
    ) -> tuple[list[float], int | None, int]:
        """Return the seconds of each run, bytes of the busiest rank, and wrong entries."""
        comm, (prepare, run) = self.comm, self._job(name, x)
        prepare()
        wrong = int(np.count_nonzero(_dense(run()) != want))
        comm.stats.reset()
        prepare()
        run()
        counts = np.array([comm.stats.bytes, wrong], np.float64)
        times = np.array([self._once(prepare, run) for _ in range(runs)])
        sent, wrong = map(int, np.max(comm.allgather(counts), axis=0))
        slowest = np.max(comm.allgather(times), axis=0)
        return list(slowest), None if name in BASELINES else sent, wrong

    def _job(
        self, name: str, x: Stream
    ) -> tuple[Callable[[], None], Callable[[], Stream | NDArray[np.float32]]]:
        if name in BASELINES:
            peer = BASELINES[name](self.comm, x.to_dense())
            return peer.prepare, peer.run
        return lambda: None, lambda: self.comm.allreduce(x, algorithm=name)

    def _once(self, prepare: Callable[[], None], run: Callable[[], object]) -> float:
        prepare()
        self.comm.barrier()
        start = time.perf_counter()
        result = run()
        spent = time.perf_counter() - start
        del result  # giving the memory back is not part of the sum
        return spent

    def _row(
        self,
        density: float,
        name: str,
        found: list[tuple[list[float], int | None, int]],
        filled: list[int],
    ) -> Row:
        times, wires, wrong = zip(*found, strict=True)
        P, K = self.comm.size, float(np.mean(filled))
        case = Case("emulated", self.network, P, self.size, density, name)
        least = lower_bound(Workload(self.size, 4, (case.stored,) * P), result_nnz=K)
        return case.row(
            [second for some in times for second in some],
            sets=len(found),
            wire=None if wires[0] is None else max(wires),
            filled=K,
            least=least.nbytes * self.seconds_per_byte,
            wrong=max(wrong),
        )


def _dense(x: Stream | NDArray[np.float32]) -> NDArray[np.float32]:
    return x.to_dense() if isinstance(x, Stream) else x


def keep(path: Path, facts: dict[str, str], rows: list[Row]) -> None:
    """Write the rows to the file, replacing those of the same cases."""

    def case(row: Row) -> tuple[object, ...]:
        keys = ("network", "ranks", "size", "density", "algorithm")
        return tuple(f"{row[k]:.6g}" if k == "density" else row[k] for k in keys)

    old = json.loads(path.read_text())["rows"] if path.exists() else []
    new = {case(row) for row in rows}
    write_json(path, facts, [*(row for row in old if case(row) not in new), *rows])


def main() -> None:
    """Run on each rank; the first one reports."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--network", required=True, help="bandwidth of the links")
    options.add_argument(
        "--density", default="", help="densities of sparse allreduces, such as 0.001,4/512"
    )
    options.add_argument("--algorithms", default=",".join(SPARSE))
    options.add_argument("--dense", default="", help="dense algorithms to compare with")
    options.add_argument("--size", default=str(SIZE), type=parse_size)
    options.add_argument("--sets", default=SETS, type=int)
    options.add_argument("--runs", default=RUNS, type=int)
    options.add_argument("--json", type=Path)
    said = options.parse_args()
    sparse, dense = (
        [name for name in text.split(",") if name] for text in (said.algorithms, said.dense)
    )
    if wrong := [n for n in (*sparse, *dense) if n not in (*SPARSE, *DENSE)]:
        options.error(
            f"algorithm must be one of {', '.join(SPARSE + DENSE)}, got {wrong[0]!r}"
        )
    with sparcml.world() as comm:
        bench = Bench(comm, said.network, said.size)
        facts = describe(f"-n {comm.size} --network {said.network}", 0)
        parts = [(1.0, dense, 1)] if dense else []
        densities = [float(Fraction(text)) for text in said.density.split(",") if text]
        parts += [(density, sparse, said.sets) for density in densities]
        for density, names, sets in parts:
            rows = bench.measure(density, names, sets, said.runs)
            if comm.rank == 0:
                _show(rows)
                if said.json:
                    keep(said.json, facts, rows)
        close()


def _show(rows: list[Row]) -> None:
    for row in rows:
        print(
            f"{row['algorithm']:22} {row['density']:8.5f} {row['p50'] / 1e3:9.2f} ms "
            f"{row['percent']:5.1f} % of the lower bound, {row['wrong']} wrong",
            flush=True,
        )


if __name__ == "__main__":
    main()
