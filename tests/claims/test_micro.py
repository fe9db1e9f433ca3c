"""The micro-benchmarks, small: what they sum, count and bound, and how it is judged."""

import json

import numpy as np
import pytest
from claims import fill_in, lower_bound
from micro.rows import SPARSE, Case, first
from micro.simulated import LINKS, measure
from micro.vectors import total, vector
from run_micro import Bench, keep

import sparcml
from sparcml.costs import Workload
from sparcml.costs.workload import union

# Percent of the sum that is stored, with k of 512 on P ranks: computed by others.
FIGURE_1 = {
    1: (0.39, 0.78, 1.55, 3.08, 6.06, 11.76, 22.14, 39.38),
    2: (0.78, 1.55, 3.08, 6.07, 11.77, 22.16, 39.41, 63.28),
    4: (1.56, 3.09, 6.08, 11.79, 22.20, 39.47, 63.36, 86.57),
    8: (3.10, 6.11, 11.84, 22.27, 39.59, 63.50, 86.68, 98.23),
    16: (6.15, 11.93, 22.43, 39.83, 63.79, 86.89, 98.28, 99.97),
}


def test_the_sum_is_expected_to_fill_in_as_published():
    for k, percents in FIGURE_1.items():
        got = [100 * fill_in.expected(k, ranks) / 512 for ranks in fill_in.RANKS]
        np.testing.assert_allclose(got, percents, atol=0.0051)
    assert [fill_in.half_full(k) for k in (1, 4, 8, 16)] == [355, 89, 45, 22]


@pytest.mark.parametrize("k", fill_in.KEPT)
@pytest.mark.parametrize("ranks", [2, 16])
def test_counted_sums_are_within_five_standard_deviations(k, ranks):
    (row,) = fill_in.uniform(k, ranks, buckets=64, seed=7)
    assert fill_in.off(row) <= fill_in.SIGMAS
    wrong = row | {"expected": row["expected"] * 1.2}
    assert fill_in.off(wrong) > fill_in.SIGMAS


def test_the_variance_is_that_of_many_draws():
    k, ranks, size = 5, 6, 32
    rng = np.random.default_rng(1)
    hits = np.zeros((4000, size), bool)
    for _ in range(ranks):
        places = np.argpartition(rng.random(hits.shape), k)[:, :k]
        np.put_along_axis(hits, places, True, axis=1)
    counts = hits.sum(axis=1)
    assert counts.mean() == pytest.approx(fill_in.expected(k, ranks, size), rel=0.01)
    assert counts.var() == pytest.approx(fill_in.variance(k, ranks, size), rel=0.1)


def test_collectives_reckon_with_the_same_growth():
    load = union(Workload(512, 4, (4,) * 32), range(32), 512)
    assert load.expected == pytest.approx(fill_in.expected(4, 32))


def test_every_rank_has_k_of_each_bucket():
    x = fill_in.vector(8, 3, 10, 0)
    assert list(np.bincount(x.indices // 512)) == [8] * 10
    assert x.indices.tolist() != fill_in.vector(8, 4, 10, 0).indices.tolist()


def test_vectors_are_others_on_every_rank_and_in_every_set():
    seen = {vector(1000, 0.05, r, d).indices.tobytes() for r in range(3) for d in range(3)}
    assert len(seen) == 9
    assert total([vector(100, 1.0, r, 0) for r in range(3)]).min() >= 3


def test_simulated_rows_are_right_and_above_the_bound():
    rows = measure("gige", 8, 1 << 14, 0.02, SPARSE, sets=2)
    assert [row["algorithm"] for row in rows] == [*SPARSE]
    for row in rows:
        assert row["wrong"] == 0
        assert row["runs"] == row["sets"] == 2
        assert row["p25"] <= row["p50"] <= row["p75"]
        assert 0 < row["percent"] < 100
        assert row["wire"] > row["stored"] * 4


def test_without_processors_links_are_left():
    def seconds(network):
        return measure(network, 8, 1 << 14, 0.1, SPARSE[:1], 1)[0]["p50"]

    assert seconds("aries" + LINKS) < 0.5 * seconds("aries")


def test_pairs_of_eight_bytes_keep_the_bound_and_the_ceiling():
    """Exactly: entries to other owners, and each owner's sum to all others."""
    rows = {row["format"]: row for row in lower_bound.measure(16, 0.6)}
    assert all(row["wrong"] == 0 for row in rows.values())
    pairs, ours = rows["u32 + f32"], rows["ours"]
    assert pairs["least_bytes"] < ours["bytes"] < pairs["bytes"]
    gathered = 15 * 4 * lower_bound.SIZE / 16  # whole ranges: more than half is stored
    split = pairs["bytes"] - gathered
    assert split == pytest.approx(8 * pairs["stored"] * 15 / 16, rel=0.02)
    assert lower_bound.gain(pairs) < 2 < lower_bound.gain(ours) < lower_bound.CEILING
    assert lower_bound.gain(rows["ours, 8 bits"]) > lower_bound.CEILING


def test_a_part_measured_anew_replaces_its_rows(tmp_path):
    def rows(time, names):
        cases = [Case("emulated", "1gbit", 2, 64, 1 / 3, name) for name in names]
        return [
            case.row([time], sets=1, wire=1, filled=1.0, least=0.5, wrong=0)
            for case in cases
        ]

    file = tmp_path / "rows.json"
    keep(file, {}, rows(1.0, ["ring", "native"]))
    keep(file, {}, rows(2.0, ["native"]))
    found = json.loads(file.read_text())["rows"]
    assert [(r["algorithm"], r["p50"]) for r in found] == [("ring", 1e6), ("native", 2e6)]
    assert first(found, ("ring", "native")) == "ring"


@pytest.mark.mpi
def test_ranks_time_what_they_sum():
    pytest.importorskip("mpi4py")
    with sparcml.world() as comm:  # of one: the sum is what it brings
        rows = Bench(comm, "1gbit", 4096).measure(
            0.01, ["ssar_ring", "mpi_allreduce"], 2, 3
        )
    assert [row["runs"] for row in rows] == [6, 6]
    assert all(row["wrong"] == 0 and row["filled"] == 41 for row in rows)
    assert rows[1]["wire"] is None
