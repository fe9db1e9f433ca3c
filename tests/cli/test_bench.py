"""`sparcml bench`: rows, columns, checks that really check, and what users mistype."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import sparcml
from sparcml import kernels
from sparcml.bench.trial import Trial, all_algorithms
from sparcml.bench.vectors import BenchCase, different, nonzero_integers, positions
from sparcml.cli.bench import parse_sizes
from sparcml.cli.launch.launcher import find_mpiexec
from sparcml.launchers import TORCH_NAMES

from .inside import called

needs_mpi = pytest.mark.skipif(find_mpiexec() is None, reason="no mpiexec here")


def bench(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "sparcml", "bench", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"COLUMNS": "80"},
    )


@pytest.mark.mpi
@needs_mpi
def test_allreduce_has_a_checked_row_for_each(tmp_path):
    pytest.importorskip("mpi4py")
    file = tmp_path / "allreduce.json"
    done = bench(
        *("allreduce", "-n", "3", "--sizes", "4K,16K", "--density", "0.01"),
        *("--dtype", "float64", "--block", "4", "--quick", "--runs", "3"),
        *("--json", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert [row["algorithm"] for row in found["rows"]] == [*all_algorithms()] * 2
    assert all(row["wrong"] == 0 for row in found["rows"])
    assert found["rows"][0]["size"] == 4096 * 8
    assert found["rows"][0]["nnz"] == 10
    ours = next(r for r in found["rows"] if r["algorithm"] == "ssar_split_allgather")
    assert ours["ratio"] == pytest.approx(4 / 3 * 4096 * 8 / ours["wire"], rel=1e-4)
    for word in ("wire", "ratio", "p50", "p99", "algbw", "busbw", "vs dense", "#wrong"):
        assert word in done.stdout
    assert "# passed" in done.stdout


@pytest.mark.torch
def test_gloo_is_the_baseline_under_torchrun(tmp_path):
    pytest.importorskip("torch")
    file = tmp_path / "allreduce.json"
    command = ["run", "--engine", "torch", "-n", "2", "-m", "sparcml", "bench", "allreduce"]
    options = ["--sizes", "1K", "--density", "0.1", "--algorithms", "ring", "--quick"]
    done = subprocess.run(
        [sys.executable, "-m", "sparcml", *command, *options, "--json", str(file)],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(file.read_text())["rows"]
    assert [row["algorithm"] for row in rows] == ["gloo_allreduce", "ring"]
    assert [row["wrong"] for row in rows] == [0, 0]


def test_mpi_is_no_baseline_under_torchrun(monkeypatch, capfd):
    for name, value in zip(TORCH_NAMES, ("0", "2", "localhost", "1"), strict=True):
        monkeypatch.setenv(name, value)
    options = ("allreduce", "--algorithms", "mpi_allreduce")
    code, _, err = called(monkeypatch, capfd, "bench", *options)
    assert code == 2
    assert "got 'mpi_allreduce'" in err


@pytest.mark.mpi
@needs_mpi
def test_coded_values_and_the_bound_of_a_link(tmp_path):
    pytest.importorskip("mpi4py")
    file = tmp_path / "allreduce.json"
    done = bench(
        *("allreduce", "-n", "2", "--sizes", "16K", "--density", "0.1,1"),
        *("--algorithms", "ring,dsar_split_allgather,auto", "--quantize", "none,qsgd:8"),
        *("--runs", "3", "--quick", "--link", "100mbit", "--json", str(file)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(file.read_text())["rows"]
    ours = ["ring", "dsar_split_allgather", "auto", "dsar_split_allgather", "auto"]
    assert [row["algorithm"] for row in rows] == ["mpi_allreduce", *ours] * 2
    assert [row["quantize"] for row in rows[:6]] == [None] * 4 + ["QSGD8"] * 2
    plain, coded = rows[2], rows[4]
    assert coded["wire"] < 0.6 * plain["wire"]
    assert plain["bound"] == pytest.approx(1e6 * plain["wire"] / 12.5e6, rel=1e-4)
    for row in rows:
        assert row["wrong"] == 0
        assert row["runs"] >= 3
        assert row["of_bound"] == pytest.approx(100 * row["bound"] / row["p50"], rel=1e-4)
        assert row["of_lower"] == pytest.approx(100 * row["lower"] / row["p50"], rel=1e-4)
        # Of two ranks' whole numbers some cancel, and zeros are not sent.
        assert row["quantize"] or 0 < row["lower"] <= 1.1 * row["bound"]


def test_a_wrong_sum_is_noticed_on_every_rank():
    def body(comm):
        trial = Trial(comm, BenchCase(5000, 0.1))
        right = trial.measure("ssar_recursive_double", seconds=0.0)
        if comm.rank == 1:
            trial.expected[[7, 70, 700]] += 1
        return right["wrong"], trial.measure("ssar_recursive_double", seconds=0.0)["wrong"]

    assert sparcml.launch(body, 3) == [(0, 3)] * 3


def test_missing_entries_are_wrong_entries():
    assert different(np.arange(5), np.arange(7)) == 2
    assert different(np.arange(5) + 1, np.arange(4)) == 5


@pytest.mark.parametrize("nnz", [0, 1, 30, 51, 99, 100])
def test_positions_are_a_subset(nnz):
    found = positions(np.random.default_rng(nnz), 100, nnz)
    assert found.dtype == np.uint32
    assert found.size == nnz
    assert kernels.ascending_prefix(found, 100) == nnz


def test_nonzero_integers_have_no_zero():
    numbers = nonzero_integers(np.random.default_rng(0), 1000)
    assert set(numbers.tolist()) == set(range(-8, 9)) - {0}


def test_sizes_go_up_by_four():
    assert parse_sizes("64K:16M,5") == [1 << 16, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 5]


@pytest.mark.parametrize(
    "arguments",
    [
        ("allreduce", "--sizes", "1X"),
        ("allreduce", "--sizes", "4M:1M"),
        ("allreduce", "--density", "1.5"),
        ("allreduce", "--density", "few"),
        ("allreduce", "--algorithms", "magic"),
        ("allreduce", "--dtype", "int8"),
        ("allreduce", "--block", "3"),
        ("allreduce", "--quantize", "nibble"),
        ("allreduce", "--link", "fast"),
        ("allreduce", "-n", "1"),
        ("allreduce", "--json", "no/such/folder/x.json"),
    ],
)
def test_mistakes_are_one_line(arguments, monkeypatch, capfd):
    code, _, err = called(monkeypatch, capfd, "bench", *arguments)
    assert code == 2
    assert err.count("\n") == 1
    assert arguments[-1] in err
