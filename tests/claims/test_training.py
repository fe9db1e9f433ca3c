"""Rows of steps and of accuracy: medians, speedups, and verdicts by hand."""

import json

import pytest
from training import pages
from training.judge import steps_at
from training.kept import LEAST, keep
from training.roster import WIDE

pytest.importorskip("torch")

from accuracy import jobs
from accuracy.workloads import WORKLOADS
from claims import (
    deep_compression,
    lstm_training,
    quantized_training,
    residual_network,
)

SCORES = {"gpt": 2.0, "fashion-mnist": 87.0, "moby-dick": 70.0, "atis": 2.0, "spam": 99.0}


def trained(network, method, *, worse=0.0, ratio=250.0, multiple=1.0, ranks=2, seeds=3):
    """Return rows of accuracy that are worse than dense by a multiple of the tolerance."""
    work, dense = WORKLOADS[network], SCORES[network]
    apart = worse * work.tolerance * (dense if work.relative else 1)
    score = dense - apart if work.higher_is_better else dense + apart
    rate = jobs.rounded(multiple * work.learning_rate)
    curve = {"score": score, "scores": [score], "marks": [400], "steps": 400}
    sizes = {"values": 1000, "sent": 4 * 1000 * 400 / ratio, "seconds": 1.0}
    return [
        jobs.Job(network, method, ranks, rate, seed).about
        | {"part": "accuracy"}
        | curve
        | sizes
        for seed in range(seeds)
    ]


def dense():
    return [row for n in WORKLOADS for row in trained(n, "dense", ranks=1, ratio=1.0)]


def stepped(method, link, seconds, *, alone=1.0, ranks=4):
    return {
        "part": "steps",
        "network": WIDE,
        "method": method,
        "ranks": ranks,
        "link": link,
        "steps": [seconds] * 3,
        "compute": [alone] * 3,
        "sent": 1e6,
    }


def test_what_a_step_exposes():
    rows = [stepped("dense", "1gbit", 3.0), stepped("topk", "1gbit", 1.25)]
    found = steps_at(rows, WIDE, 4, "1gbit")
    assert found["dense"].exposed / found["topk"].exposed == 8
    line = pages.steps(rows, WIDE).splitlines()[-1]
    assert "| 8.0x | 2.40x | 3.00x | 3 |" in line
    assert "| 1.4x | 2.40x | yes |" in pages.wanted(rows)
    assert "not measured yet" in pages.wanted(rows)


def test_rows_are_kept_and_short_ones_added_to(tmp_path):
    path = tmp_path / "rows.json"
    names = ("network", "method", "link")
    assert len(keep(path, stepped("dense", "1gbit", 3.0), names, "2.13")["steps"]) == 3
    assert len(keep(path, stepped("dense", "1gbit", 3.0), names, "2.13")["steps"]) == 6
    keep(path, stepped("topk", "1gbit", 3.0), names, "2.13")
    many = stepped("dense", "1gbit", 3.0) | {"steps": [1.0] * LEAST}
    assert len(keep(path, many, names, "2.13")["steps"]) == LEAST + 6
    assert len(keep(path, many, names, "2.13")["steps"]) == LEAST
    assert len(json.loads(path.read_text())["rows"]) == 2


def links(seconds=1.2):
    rows = [stepped("dense", link, 10.0) for link in pages.LINKS]
    return rows + [stepped(method, "100mbit", seconds) for method in ("topk", "qsgd")]


def test_four_bits_must_be_faster_and_within_tolerance():
    good = [row for n in WORKLOADS for row in trained(n, "qsgd4", worse=0.5)]
    answer = quantized_training.answer(dense() + good + links())
    assert answer.verdict == "hit"
    assert "8.33x at 100 Mbit/s" in answer.ours
    assert "QSGD 4 bit on moby-dick, 2 ranks: -0.50 ± 0.00 %, 250x, 3 seeds" in answer.ours
    assert quantized_training.answer(dense() + good + links(9.0)).verdict == "miss"
    many = trained("gpt", "qsgd4", worse=1.5, ranks=8)
    answer = quantized_training.answer(dense() + good + many + links())
    assert answer.verdict == "miss"
    assert "gpt on 8 ranks" in answer.why
    doubled = trained("gpt", "qsgd4", worse=1.5, multiple=2.0)  # not the dense rate
    assert quantized_training.answer(dense() + good + doubled + links()).hit


def test_deep_compression_takes_the_best_rate():
    good = [
        row
        for network in deep_compression.TOLERATED
        for multiple, worse in ((1.0, 9.0), (2.0, 3.0), (6.0, 1.5))
        for row in trained(network, "dgc0.1", worse=worse, multiple=multiple)
    ]
    answer = deep_compression.answer(dense() + good)
    assert answer.verdict == "hit"  # this claim tolerates more
    assert "DGC 0.1 %, x6 on moby-dick, 2 ranks: -1.50 ± 0.00 %" in answer.ours
    assert "DGC 0.1 %, x2" not in answer.ours
    few = [row | {"sent": 10 * row["sent"]} for row in good]
    answer = deep_compression.answer(dense() + few)
    assert answer.verdict == "miss"
    assert answer.why.startswith("fewer than 200x on")
    diverged = [
        row | {"score": None} if row["network"] == "moby-dick" else row for row in good
    ]
    answer = deep_compression.answer(dense() + diverged)
    assert answer.verdict == "miss"
    assert "on moby-dick, 2 ranks: diverged" in answer.ours
    other = trained("moby-dick", "recommended", worse=0.5, ratio=50.0)
    assert (
        "recommended on moby-dick" in deep_compression.answer(dense() + good + other).ours
    )


def test_both_densities_of_the_residual_network_count():
    found = [trained("fashion-mnist", m, worse=0.5) for m in residual_network.METHODS]
    assert residual_network.answer(dense() + found[0] + found[1]).verdict == "hit"
    bad = trained("fashion-mnist", "topk16of512-layers", worse=1.5)
    answer = residual_network.answer(dense() + found[0] + bad)
    assert answer.verdict == "miss"
    assert "topk16of512-layers on 2 ranks" in answer.why


def test_the_lstm_is_judged_by_speed():
    assert lstm_training.answer(dense() + links()).verdict == "hit"
    assert lstm_training.answer(dense() + links(2.0)).verdict == "miss"
    cited = trained("atis", "recommended", worse=0.5, ratio=10.0)
    answer = lstm_training.answer(dense() + links() + cited)
    assert "accuracy of another method: recommended on atis, 2 ranks: -0.15" in answer.ours


def test_claims_without_three_seeds_are_open():
    everything = [
        ("gpt", "qsgd4"),
        ("moby-dick", "dgc0.1"),
        ("fashion-mnist", "topk8of512-layers"),
    ]
    short = [row for job in everything for row in trained(*job, seeds=2)]
    no_rows = links()[:0]
    for rows in (dense() + short + links(), no_rows, links()):
        for claim in (quantized_training, deep_compression, residual_network):
            answer = claim.answer(rows)
            assert answer.verdict == "open"
            assert not answer.hit
            assert "fewer than 3 seeds of" in answer.why
            assert "2 seeds" not in answer.ours + answer.details
            assert "No result has enough seeds yet." in answer.details
    assert lstm_training.answer(no_rows).verdict == "miss"
