"""Results stay the same bits: on threads, on MPI, in the simulator and without AVX2."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import sparcml

from ..mpi.jobs import MPIEXEC
from ..once import once
from . import cases, record

# Two epochs are too few to converge.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

GOLDEN = json.loads(record.FILE.read_text())
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def results(shared_folder):
    """Return a function that runs all cases in one way: on threads, for example."""

    @cache
    def results(way, *arguments):
        name = "-".join(("golden", way.__name__, *map(str, arguments)))
        return once(shared_folder / f"{name}.json", lambda: way(*arguments))

    return results


def on_threads(ranks):
    return sparcml.launch(record.on_ranks, ranks)[0]


def simulated(ranks):
    return sparcml.simulate(record.on_ranks, ranks=ranks, network="1gbit").results[0]


def printed(*command, **environment):
    done = subprocess.run(
        [*command, sys.executable, "-m", "tests.golden.record", "--print"],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def on_mpi(ranks):
    return printed(MPIEXEC, "-n", str(ranks))[str(ranks)]


def scalar():
    """Return the results on an old processor, also for NumPy and its BLAS."""
    return printed(
        SPARCML_ISA="scalar",
        NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR",
        OPENBLAS_CORETYPE="Prescott",
    )


@pytest.mark.parametrize("group", ["quantizers", "sparsifiers", "messages"])
def test_single_rank_results(group):
    assert getattr(cases, group)() == GOLDEN["single"][group]


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted(GOLDEN["4"]))
@pytest.mark.parametrize("ranks", cases.RANKS)
def test_on_threads(ranks, group, results):
    assert results(on_threads, ranks)[group] == GOLDEN[str(ranks)][group]


# These use the engine's own allreduce, or depend on which ranks share a node.
BY_ENGINE = {
    "aggregate Dense",
    "aggregate Compressed RandomK shared",
    "allreduce hierarchical",
}


@pytest.mark.slow
@pytest.mark.parametrize("group", sorted(GOLDEN["4"].keys() - BY_ENGINE))
@pytest.mark.parametrize("ranks", [3, 4])
def test_simulated(ranks, group, results):
    assert results(simulated, ranks)[group] == GOLDEN[str(ranks)][group]


@pytest.mark.mpi
@pytest.mark.parametrize("group", sorted(GOLDEN["4"]))
@pytest.mark.parametrize("ranks", [3, 4])
def test_on_mpi(ranks, group, results):
    assert results(on_mpi, ranks)[group] == GOLDEN[str(ranks)][group]


@pytest.mark.parametrize("group", [*GOLDEN["single"], *GOLDEN["1"]])
def test_scalar_kernels(group, results):
    part = "single" if group in GOLDEN["single"] else "1"
    assert results(scalar)[part][group] == GOLDEN[part][group]
