"""Local training of the benchmark, and its page."""

import math
import sys

import pytest

pytest.importorskip("torch")

import local_page
from local import forms, losses, page, pilots
from local.workloads import WORKLOADS

DENSE = {name: losses.synchronous(name) for name in ("gpt", "moby-dick", "fashion-mnist")}
needs_rows = pytest.mark.skipif(not all(DENSE.values()), reason="no results")


def row(network, form, score, seed=0, synchronous=0):
    return {
        "network": network, "form": form, "every": 30, "workers": 4, "seed": seed,
        "metric": "", "score": score, "sent": 2e6, "synchronous": synchronous,
    }  # fmt: skip


@needs_rows
def test_each_seed_is_compared_with_its_own_synchronous_run():
    start = WORKLOADS["gpt"].steps // 4
    rows = [
        row("gpt", "DiLoCo", DENSE["gpt"][seed] + math.log(1 + x), seed, start)
        for seed, x in enumerate((0.01, 0.03))
    ]
    (case,) = losses.cases(rows)
    assert case.difference == pytest.approx(0.02)
    assert case.error == pytest.approx(0.01)
    assert "| | DiLoCo | 30 | 4 | 25% | 2 | " in page.loss_table(rows)
    assert " | +2.0 ± 1.0 % | 2.00 |" in page.loss_table(rows)


@needs_rows
def test_perplexities_are_compared_by_their_ratio_and_accuracies_in_points():
    dense = DENSE["moby-dick"][1]
    (case,) = losses.cases([row("moby-dick", "BMUF", 1.1 * dense, seed=1)])
    assert (case.text(), case.error) == ("+10.0 %", None)
    (case,) = losses.cases([row("fashion-mnist", "BMUF", DENSE["fashion-mnist"][0] - 0.5)])
    assert case.text() == "-0.50 points"


@needs_rows
def test_diverged_runs_have_no_score():
    rows = [row("moby-dick", "BMUF", None), row("moby-dick", "BMUF", 80.0, seed=1)]
    assert "| | BMUF | 30 | 4 | 0% | 2 |  | diverged | 2.00 |" in page.loss_table(rows)


def test_synchronous_runs_of_other_batches_are_among_the_rows():
    rows = [row("gpt-large-batch", forms.SYNCHRONOUS, 1.9, seed=2)]
    assert losses.synchronous("gpt-large-batch", rows) == {2: 1.9}


@pytest.mark.parametrize("source", [forms, pilots])
def test_jobs_are_known_and_different(source):
    made = list(source.jobs())
    assert len(set(made)) == len(made)
    assert {job.form for job in made} <= pilots.PILOTS.keys()
    assert {job.network for job in made} <= WORKLOADS.keys()


def test_pilots_have_seeds_of_their_own():
    assert not set(pilots.SEEDS) & set(forms.SEEDS)


def test_page_is_up_to_date(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["local_page.py", "--check"])
    local_page.main()


def test_the_utilization_table_has_the_planned_bandwidths():
    """DiLoCo of 1 B parameters at 50 %: 14.4 Gbit in 100 steps of 0.1 s, of which 2/3 hides."""
    from local.utilization import utilization_table

    lines = utilization_table().splitlines()
    assert len(lines) == 2 + 3 * 5
    (line,) = (x for x in lines if x.startswith("| 1 B | 0.1 | DiLoCo, H = 100 |"))
    assert line.split(" | ")[3] == f"{14.4 / ((100 + 2 / 3) * 0.1):.1f}"
