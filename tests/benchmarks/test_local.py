"""Local training of the benchmark, and its page."""

import sys

import local_page
import pytest
from accuracy.workloads import WORKLOADS
from local import forms, page

DENSE = {name: page.synchronous(name) for name in ("gpt", "moby-dick")}
needs_rows = pytest.mark.skipif(not all(DENSE.values()), reason="no results")


def row(network, form, score, seed=0, synchronous=0):
    metric = "loss per character" if network == "gpt" else "perplexity"
    return {
        "network": network, "form": form, "every": 30, "workers": 4, "seed": seed,
        "metric": metric, "score": score, "sent": 2e6, "synchronous": synchronous,
    }  # fmt: skip


@needs_rows
def test_losses_are_compared_as_perplexities():
    dense = sum(DENSE["gpt"]) / len(DENSE["gpt"])
    start = WORKLOADS["gpt"].steps // 4
    rows = [
        row("gpt", "DiLoCo", dense + x, seed, start) for seed, x in enumerate((0, 0.02))
    ]
    text = page.loss_table([*rows, row("moby-dick", "BMUF", None)])
    assert (
        f"| | DiLoCo | 30 | 4 | 25% | 2 | {dense + 0.01:.3f} | perplexity +1.0% | 2.00"
        in text
    )
    assert "| | BMUF | 30 | 4 | 0% | 1 | diverged |  | 2.00 |" in text


def test_jobs_are_known_and_different():
    made = list(forms.jobs())
    assert len(set(made)) == len(made)
    assert {job.form for job in made} <= forms.FORMS.keys()


def test_page_is_up_to_date(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["local_page.py", "--check"])
    local_page.main()
