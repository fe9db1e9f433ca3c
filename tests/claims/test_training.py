"""What is made of the rows of trainings: medians, gains, and verdicts by hand."""

import json

import pytest
from claims import deep_compression, lstm_training, quantized_training, residual_network
from training import pages
from training.judge import curve, goal, scores, steps_at, until
from training.kept import LEAST, keep
from training.roster import NETWORKS, TRAINED, WIDE


def trained(network, method, seed, *, score, sent=1e6):
    return {
        "part": "accuracy",
        "network": network,
        "method": method,
        "ranks": 4,
        "seed": seed,
        "metric": "score",
        "steps_made": 100,
        "scores": [score / 2, score],
        "score": score,
        "sent": sent,
    }


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


def test_scores_are_compared_seed_by_seed():
    rows = [trained("fashion-mnist", "dense", seed, score=80 + seed) for seed in (0, 1)]
    rows += [trained("fashion-mnist", "dgc", 0, score=79.8, sent=4e3)]
    found = scores(rows, "fashion-mnist")["dgc"]
    assert found.apart == pytest.approx(-0.2)
    assert found.within
    assert found.fewer == 250
    assert goal("fashion-mnist", scores(rows, "fashion-mnist")["dense"]) == 80
    assert scores(rows[2:], "fashion-mnist") == {}


def test_less_is_better_where_it_is():
    rows = [trained("moby-dick", "dense", 0, score=100.0)]
    rows += [trained("moby-dick", "topk1", 0, score=102.0)]
    found = scores(rows, "moby-dick")["topk1"]
    assert found.apart == pytest.approx(-0.02)  # a part of it
    assert not found.within
    assert goal("moby-dick", scores(rows, "moby-dick")["dense"]) == 101


def test_steps_until_a_goal():
    rows = [trained("fashion-mnist", "dense", 0, score=80.0)]
    points = curve(rows, "fashion-mnist", "dense")
    assert points == [(50, 40), (100, 80)]
    assert until(points, 60, higher=True) == 100
    assert until(points, 60, higher=False) == 50
    assert until(points, 90, higher=True) is None


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


def test_claims_follow_the_rows():
    dense = [trained(n, "dense", 0, score=80.0, sent=1e6) for n in NETWORKS]
    good = [
        trained(n, m, 0, score=80.0, sent=4e3) for n in NETWORKS for m in TRAINED[n][1:]
    ]
    links = [stepped("dense", link, 10.0) for link in pages.LINKS]
    links += [stepped(m, "100mbit", 1.2) for m in ("topk", "qsgd")]
    for claim in (deep_compression, lstm_training, quantized_training, residual_network):
        assert claim.answer(dense + good + links).hit
        bad = [row | {"score": 70.0 if row["network"] != "atis" else 90.0} for row in good]
        bad = [
            row | {"score": 90.0} if row["network"] == "moby-dick" else row for row in bad
        ]
        assert not claim.answer(dense + bad + links).hit


def test_an_epoch_behind_links_is_compared_with_both():
    one = trained("moby-dick", "dense", 0, score=100.0) | {"losses": [5.12345, 4.0]}
    step = stepped("dense", "1gbit", 0.5, ranks=2) | {"network": "moby-dick"}
    row = {"network": "moby-dick", "method": "dense", "link": "1gbit", "steps_made": 100}
    row |= {"seconds": 55.0, "loss": 5.12345, "score": 50.0}
    assert "| 50.0 | 55.0 | 1.10 | the same |" in pages.checked([row], [one], [step])
    other = row | {"loss": 5.12355}
    assert "| 1.10 | differ |" in pages.checked([other], [one], [step])
