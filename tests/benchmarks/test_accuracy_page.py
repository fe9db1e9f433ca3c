"""The section on accuracy shows complete results only, one figure per network."""

import json
from dataclasses import replace

import pytest

pytest.importorskip("torch")

from accuracy import evidence, jobs, page
from accuracy.figures import figure, plotted
from accuracy.roster import ROSTER, Setting, build
from accuracy.summary import by_optimizer, delay, recommended
from accuracy.texts import described
from accuracy.workloads import WORKLOADS

from sparcml import Compressed
from sparcml.aggregate.evidence import Result, measured_methods, recommended_method


def runs(method, score, *, network="gpt", ranks=2, multiple=1.0, seeds=3):
    """Return rows with equal scores."""
    rate = jobs.rounded(multiple * WORKLOADS[network].learning_rate)
    row = {"score": score, "scores": [score], "marks": [400], "steps": 400}
    row |= {"values": 1000, "sent": 16e4 if ranks > 1 else 0.0, "seconds": 1.0}
    found = [jobs.Job(network, method, ranks, rate, seed) for seed in range(seeds)]
    return [job.about | row for job in found]


DENSE = runs("dense", 2.0, ranks=1)


def test_results_of_few_seeds_are_not_shown():
    rows = DENSE + runs("qsgd4", 2.02) + runs("topk1", 2.3, seeds=2)
    text = page.section(rows)
    assert "| QSGD 4 bit | 2 | 2.020 | -1.00 ± 0.00 | yes | -1.0% | 10.0x | 3 |" in text
    assert "| TopK 1 %" not in text
    assert "![character GPT on Moby-Dick](figures/accuracy-gpt.svg)" in text
    assert "accuracy-spam" not in text
    assert "What a delay costs" not in text
    assert "## Accuracy" in page.section([])


def test_the_recommended_methods_come_first():
    rows = DENSE + runs("recommended", 1.98) + runs("recommended", 3.0, multiple=2.0)
    text = recommended(rows)
    assert (
        "- SGD: `TopK` from 25 % to 3 % of the entries, `QSGD(bits=4)`, a ratio per" in text
    )
    line = "| AdamW | character GPT on Moby-Dick | 2 | +1.00 ± 0.00 % | 2 % | yes | 10.0x |"
    assert line in text
    assert text.count("character GPT on Moby-Dick") == 1  # at the dense rate only
    assert text.count("not complete yet") == len(WORKLOADS) - 1
    assert page.section(rows).index("### Recommended") < page.section(rows).index(
        "### Char"
    )


def test_methods_are_described_by_their_parts():
    work = WORKLOADS["fashion-mnist"]
    setting = Setting(work, 2, 0, work.learning_rate)
    assert described(build("qsgd4", setting)) == "`QSGD(bits=4)`, no error feedback"
    assert described(build("topk1", setting)) == "`TopK(ratio=0.01)`, error feedback"
    assert described(build("powersgd4", setting)).startswith("`PowerSGD(")


def test_a_delay_is_compared_with_dense():
    assert delay(DENSE) == ""
    text = delay(DENSE + runs("late", 2.2, ranks=1))
    assert "| AdamW | 2.000 | 2.200 | -10.00 ± 0.00 % | 2 % | no | 3 |" in text
    assert "| diverged | diverged | 2 % | no |" in delay(
        DENSE + runs("late", None, ranks=1)
    )


def test_results_that_have_too_few_seeds_are_listed():
    text = page.missing(DENSE + runs("qsgd4", 2.02) + runs("topk1", 2.3, seeds=2))
    (line,) = [line for line in text.splitlines() if "GPT" in line]
    assert "recommended, x2 (2 ranks)" in line
    assert "; TopK 1 % (2 ranks)" in line
    assert "; QSGD 4 bit (2 ranks)" not in line


def test_methods_by_optimizer():
    assert by_optimizer([]) == ""
    text = by_optimizer(DENSE + runs("qsgd4", 2.02) + runs("topk1", 2.2))
    assert "Under SGD" not in text
    assert "| QSGD 4 bit | **-1.00 ± 0.00 %, 10x** |  |" in text
    assert "| TopK 1 % | -10.00 ± 0.00 %, 10x |  |" in text


def test_a_figure_has_a_point_per_method_and_world_size():
    pytest.importorskip("matplotlib")
    rows = DENSE + runs("qsgd4", 2.02) + runs("qsgd4", 2.01, ranks=8)
    rows += runs("topk1", 3.0) + runs("onebit", None) + runs("qsgd4", 2.5, multiple=2.0)
    assert len(plotted(rows, "gpt")) == 4  # not at twice the learning rate
    canvas = figure(rows, "gpt")
    (ax,), (legend,) = canvas.axes, canvas.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert names == [
        "QSGD 4 bit",
        "TopK 1 %: -50.00 ± 0.00",
        "OneBit, error feedback, fence: diverged",
        "dense",
    ]
    low, high = ax.get_ylim()
    assert -10 < low < -2 < 0 < high
    assert set(page.figures(rows)) == {"accuracy-gpt"}


@pytest.mark.parametrize("network", WORKLOADS)
def test_the_evidence_is_of_the_methods_that_were_run(network):
    """The table that `recommended` and `sparcml plan` read names what the roster builds."""
    work = WORKLOADS[network]
    for name, method in measured_methods(work.optimizer).items():
        if work.optimizer not in ROSTER[name].optimizers:
            continue
        ran = build(name, Setting(work, 2, 0, work.learning_rate))
        if name == "recommended":
            assert ran == recommended_method(work.optimizer, work.steps)
        elif isinstance(method, Compressed):
            assert ran == replace(method, dense_below=ran.dense_below)
        else:
            assert ran == method


def test_the_evidence_has_complete_results_at_the_dense_rate():
    rows = DENSE + runs("qsgd4", 2.05) + runs("topk1", 2.3, seeds=2)
    rows += runs("recommended", 2.0, multiple=2.0) + runs("nuqsgd4", 2.0)
    (row,) = json.loads(evidence.table(rows))
    assert Result(**row) == Result(
        "qsgd4", "adamw", "character GPT on Moby-Dick", 2, "-2.50 ± 0.00 %", "2 %", 1.25
    )
