"""`sparcml demo`: both kinds of sums agree, a table that fits, and what is missing is said."""

import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import sparcml
from sparcml.cli.console import StatusLine
from sparcml.cli.demo.command import check_equal, compare
from sparcml.cli.demo.spam import TOLERANCE, Run, compare_runs, difference
from sparcml.cli.launch.launcher import find_mpiexec
from sparcml.errors import SparcmlError
from sparcml.linear import SGD, Constant
from sparcml.linear.data.bundled import Split
from sparcml.linear.training.history import EpochRecord, History

from ..linear.problems import problem
from .inside import called

SOLVER = SGD("logistic", learning_rate=Constant(0.05), batch_size=20, momentum=0.9)


def mails(comm):
    """Some that are quickly read; a rank's share."""
    rows = problem(120, dtype=np.float32)
    train, held_out = rows.take(0, 100), rows.take(100, 120)
    whole = replace(train, total=100), replace(held_out, first=0, total=20)
    return Split(*(each.part(comm.rank, comm.size) for each in whole))


def few_mails(comm=None):
    return None if comm is None else mails(comm)


def test_sparse_and_dense_sums_agree():
    passes = {"sparse": 3, "dense": 2}
    said: list[list[str]] = [[], [], []]

    def work(comm):
        return compare_runs(comm, mails(comm), SOLVER, passes, said[comm.rank].append)

    for sparse, dense in sparcml.launch(work, 3):
        assert [len(run.history.epochs) for run in (sparse, dense)] == [3, 2]
        assert sparse.same
        assert dense.same
        assert 0 < difference([sparse, dense]) < TOLERANCE
        judged = [
            [each.validation_loss for each in run.history.epochs] for run in (sparse, dense)
        ]
        np.testing.assert_allclose(judged[0][:2], judged[1], rtol=1e-4)
        assert judged[0][0] > judged[0][2]
        assert dense.history.bytes >= dense.history.dense_bytes
    assert said[2] == [
        *(f"sparse: epoch {i} of 3" for i in (1, 2, 3)),
        *(f"dense: epoch {i} of 2" for i in (1, 2)),
    ]


def test_what_does_not_agree_is_an_error():
    def run(kind, weights, same=True):
        one = EpochRecord(0.5, 0.5, 1.0, 0.5, 10, 100.0)
        return Run(kind, History([one]), 0.9, np.array(weights), same)

    good = run("sparse", [1.0, 2.0])
    check_equal([good, run("dense", [1.0, 2.00001])])
    with pytest.raises(SparcmlError, match=r"differ by 5\.0e-01 of the largest"):
        check_equal([good, run("dense", [1.0, 1.0])])
    with pytest.raises(SparcmlError, match="differ by nan"):
        check_equal([good, run("dense", [1.0, np.nan])])
    with pytest.raises(SparcmlError, match="different weights with dense allreduces"):
        check_equal([good, run("dense", [1.0, 2.0], same=False)])


def test_a_table_and_a_picture(tmp_path, monkeypatch, capfd):
    image = pytest.importorskip("matplotlib.image")
    monkeypatch.setenv("COLUMNS", "80")
    out = tmp_path / "race.png"
    passes = {"sparse": 2, "dense": 1}

    def work(comm):
        quiet = StatusLine(False)
        compare(comm, mails(comm), SOLVER, passes, "somewhere", "in memory", out, quiet)

    sparcml.launch(work, 2)
    text = capfd.readouterr().out
    assert all(len(line) <= 80 for line in text.splitlines() if str(out) not in line)
    assert re.search(r"^sparse +2 .*%", text, re.MULTILINE)
    assert re.search(r"^dense +1 .*%", text, re.MULTILINE)
    assert re.search(r"^dense / sparse .*x", text, re.MULTILINE)
    for word in ("somewhere", "the same bits", str(out)):
        assert word in text
    assert image.imread(out).shape[2] == 4


REFUSED = {
    "network": (("--network", "fast"), "fast"),
    "passes": (("--dense-epochs", "0"), "dense-epochs must be at least 1, got 0"),
    "folder": (("--out", "none/p.png"), "no folder at 'none'"),
}


@pytest.mark.parametrize("mistake", REFUSED)
def test_mistakes_are_one_line(mistake, monkeypatch, capfd):
    options, message = REFUSED[mistake]
    code, out, err = called(monkeypatch, capfd, "demo", *options)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err


@pytest.mark.parametrize("missing", ["mpi4py", "mpiexec"])
def test_without_mpi_ranks_are_threads(missing, monkeypatch, capfd, tmp_path):
    if missing == "mpi4py":
        monkeypatch.setattr("sparcml.cli.launch.start.find_spec", lambda name: None)
    else:
        pytest.importorskip("mpi4py")
        monkeypatch.setattr("sparcml.cli.launch.start.find_launcher", lambda: None)
    monkeypatch.setattr("sparcml.cli.demo.command.spam", few_mails)
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))  # the font cache is to be built
    out = tmp_path / "plot.png"
    options = ("--sparse-epochs", "1", "--dense-epochs", "1", "--out", str(out))
    code, text, err = called(monkeypatch, capfd, "demo", *options)
    assert (code, err) == (0, "")
    first, *_, last = text.splitlines()
    assert first.startswith("No MPI here, using threads")
    for line in (first, last):
        assert "pip install '.[mpich]' in the clone" in line
    assert "4 ranks train a spam classifier on 100 e-mails" in text
    assert "the same bits" in text
    assert "docs/" not in text


START = """
import sys
from sparcml.cli import main
from sparcml.cli.demo import command
from sparcml.cli.launch import emulate
command.RANKS = 2
class Refused:
    def __init__(self, *_): raise OSError("cannot emulate a network: not here")
emulate.EmulatedCluster = Refused
sys.argv = ["sparcml", "demo", "--sparse-epochs", "1", "--dense-epochs", "1"]
sys.argv += ["--batch-size", "3000"]
main()
"""


@pytest.mark.mpi
@pytest.mark.slow
@pytest.mark.skipif(find_mpiexec() is None, reason="no mpiexec here")
def test_real_mails_on_plain_mpi_where_links_cannot_be_emulated(tmp_path):
    pytest.importorskip("mpi4py")
    done = subprocess.run(
        [sys.executable, "-c", START], cwd=tmp_path, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    reason = "No emulated network here, using plain MPI: cannot emulate a network: not here"
    assert done.stdout.startswith(reason)
    assert (
        "2 ranks train a spam classifier on 2,419 e-mails of 16,609,143 features"
        in done.stdout
    )
    assert "the same bits" in done.stdout
    assert "sparcml fit" in done.stdout
    assert "docs/" not in done.stdout
