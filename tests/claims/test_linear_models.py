"""Table 2 of the paper: its own numbers, what is noted of a run, and small simulations."""

from typing import cast

import numpy as np
import pytest
from claims import step_sizes
from table2 import pages
from table2.paper import FEATURES, TABLE, dense_bytes
from table2.simulated import measure
from table2.timed import FIELDS, Summary, Timed

import sparcml
from sparcml import Communicator
from sparcml.linear import SGD, Constant, Rows


def test_the_paper_agrees_with_itself():
    """But for the last row, 13.0 by its own seconds; dense sums were far above the wire."""
    for row in TABLE[:-1]:
        assert row.dense[0] / row.sparse[0] == pytest.approx(row.ratio[0], abs=0.01)
    gige = [row.above_bound for row in TABLE if row.network == "gige"]
    assert gige == pytest.approx([18.7, 18.5], abs=0.1)
    assert dense_bytes(16_609_143, 8) == 1.75 * 4 * 16_609_143


def test_communication_begins_when_the_last_comes_and_ends_when_the_last_leaves():
    two_ranks = np.zeros((2, 2, len(FIELDS)))
    two_ranks[..., 0] = [[0.0, 10.0], [3.0, 11.0]]  # came
    two_ranks[..., 1] = [[5.0, 12.0], [4.0, 14.0]]  # left
    two_ranks[..., 2] = 1.0  # processor
    two_ranks[..., 3] = [[7, 7], [1, 1]]  # sent
    two_ranks[..., 4] = [[1, 1], [8, 8]]  # received
    found = Summary.of(two_ranks)
    assert (found.calls, found.communicating, found.nbytes) == (2, 5.0, 16.0)
    assert found.processors in (2.0, 4.0)  # by the cores that are there


def test_a_run_is_timed_and_not_changed():
    rng = np.random.default_rng(0)
    dense = rng.random((40, 30)) * (rng.random((40, 30)) < 0.2)
    rows = Rows.of(dense.astype(np.float32), np.where(rng.random(40) < 0.5, 1.0, -1.0))
    solver = SGD(learning_rate=Constant(0.5), batch_size=10, epochs=2)

    def work(comm):
        mine = rows.part(comm.rank, comm.size)
        timed = Timed(comm, rows.features + 1)
        found = solver.run(cast("Communicator", timed), mine).weights
        return found, solver.run(comm, mine).weights, timed.summary()

    for timed, plain, summary in sparcml.launch(work, 2):
        np.testing.assert_array_equal(timed, plain)
        assert summary.calls == 8
        assert summary.result >= summary.given > 0
        assert summary.communicating > 0
        assert summary.nbytes > 0


@pytest.mark.slow
def test_simulated_rows_of_few_nodes():
    found = measure("url", ranks=8)
    assert {row["network"] for row in found} == {"aries", "ib-fdr"}
    at = {(row["network"], row["sums"]): row for row in found}
    for network in ("aries", "ib-fdr"):
        dense, sparse = (at[network, sums] for sums in ("dense", "sparse"))
        assert dense["result"] == FEATURES["URL"] + 1
        assert sparse["given"] < sparse["result"] < 8 * sparse["given"]
        assert 10 * sparse["bytes"] < dense["bytes"]
        assert 0 < sparse["communicating"] < dense["communicating"]
        assert at[network, "auto"]["algorithm"] == "ssar_split_allgather"
    table = pages.others(found)
    assert table.count("simulated") == 2
    assert table.count("\n") == 4  # the head, its rule and two rows


def test_floors_are_met_or_not():
    made = {"data": "spam", "loss": "logistic", "communicating": 0.15, "bound": 0.1}
    rows = [made | {"sums": "sparse", "step": 0.2}, made | {"sums": "dense", "step": 1.6}]
    (line,) = [text for text in pages.floors(rows).splitlines() if "spam" in text]
    assert line == "| spam | 7x | 8.0x | yes | 1.6 | 1.50 | yes |"
    assert pages.floors(rows[:1]) == ""
    rows[1]["step"] = 1.2
    assert "| 6.0x | no |" in pages.floors(rows)


def test_the_gap_after_some_evaluations_is_the_last_one_seen():
    rows = [{"kind": "batch", "evaluations": n, "gap": 1 / n} for n in (10, 20)]
    assert step_sizes.at(rows, "batch", 9) is None
    assert step_sizes.at(rows, "batch", 19) == 0.1
    assert step_sizes.at(rows, "batch", 20) == 0.05
