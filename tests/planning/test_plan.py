"""Plans: formulas where there are some, and what must hold for all of them."""

import itertools
import json
import math

import numpy as np
import pytest

import sparcml
from sparcml.aggregate.planning import methods_to_plan, planned_methods
from sparcml.collectives import ALLREDUCES
from sparcml.costs import Workload
from sparcml.costs.network import cost_terms
from sparcml.network import Network
from sparcml.planning.candidates import Accuracy
from sparcml.planning.models import MODELS, Model, model, of_size
from sparcml.planning.plan import NEAR, dense_wins_from, scaling
from sparcml.planning.plan import plan as make_plan

SMALL = of_size("4M")
COUNTS = {  # as the networks' authors and the common libraries count them
    "alexnet": 61_100_840,
    "resnet50": 25_557_032,
    "resnet152": 60_192_808,
    "asr-lstm": 60_000_000,
    "bert-large": 335_141_888,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-3.2-1b": 1_235_814_400,
}


@pytest.mark.parametrize("name", COUNTS)
def test_models_have_as_many_parameters_as_published(name):
    assert model(name).parameters == COUNTS[name]


@pytest.mark.parametrize("name", MODELS)
def test_every_model_says_where_it_comes_from(name):
    found = model(name)
    assert found.source
    assert found.step is not None
    assert found.step > 0
    assert "assumed" in found.step_source
    large, small = sparcml.Compressed().planning(found.tensors).reductions
    assert large.size + small.size == found.parameters
    factors = sparcml.PowerSGD(rank=4).planning(found.tensors).reductions
    assert 0 < sum(r.size for r in factors) < found.parameters


def plan(*args, ratios=None, **keywords):
    return make_plan(*args, methods=planned_methods(ratios), **keywords)


def test_wide_networks_are_about_sixteen_times_as_large():
    assert model("4xresnet18").parameters == pytest.approx(16 * 11_689_512, rel=0.05)
    assert model("4xresnet34").parameters == pytest.approx(16 * 21_797_672, rel=0.05)


def test_factors_are_those_of_power_sgd():
    odd = Model("odd", ((100, 50), (3, 2), (7,)), "here")
    method = sparcml.PowerSGD(rank=4)
    assert [r.size for r in method.planning(odd.tensors).reductions] == [400, 200, 13]
    assert [method.compresses(shape) for shape in odd.tensors] == [True, False, False]


def test_small_tensors_are_those_that_compressed_sends_as_they_are():
    shapes = ((200, 100), (100, 100), (50_000,))
    method = sparcml.Compressed(sparcml.TopK(0.01))
    large = [s for s in shapes if method.compresses_shape("name", s)]
    assert method.planning(shapes).reductions[0].size == sum(map(math.prod, large))


@pytest.mark.parametrize("ranks", [2, 3, 8, 64])
def test_a_dense_ring_takes_its_formula(ranks):
    n, alpha, beta = 1 << 20, 1e-4, 1e-9
    bare = Network(alpha, 0, beta, 0, 0, 0)
    steps = 2 * (ranks - 1)
    formula = steps * alpha + steps / ranks * 4 * n * beta
    found = cost_terms(ALLREDUCES["ring"], ranks, n, n, 4.0, bare).seconds(bare)
    # Headers, and ranges that differ by a value.
    assert formula <= found <= formula + steps * (5 * 32 + 4) * beta


def test_terms_are_the_declared_cost():
    network = Network()
    for name in ("native", "ssar_split_allgather", "ssar_recursive_double"):
        workload = Workload(1 << 20, 4, (1000,) * 8)
        rounds = ALLREDUCES[name].rounds(0, workload)
        found = cost_terms(ALLREDUCES[name], 8, 1 << 20, 1000, 4.0, network).seconds(
            network
        )
        assert found == pytest.approx(network.seconds(rounds, 4))


@pytest.mark.parametrize("overlap", [0.0, 0.5])
def test_a_slower_network_gives_a_larger_gain(overlap):
    rates = ["100gbit", "25gbit", "10gbit", "1gbit", "100mbit"]
    plans = [plan(SMALL, 16, f"{r},30us", 0.05, overlap=overlap) for r in rates]
    gains = [max(row.speedup for row in p.rows) for p in plans]
    assert all(b >= a for a, b in itertools.pairwise(gains))
    assert gains[-1] > gains[0]


def test_rows_add_up():
    p = plan(SMALL, 8, "1gbit", 0.1, overlap=0.3)
    for row in p.rows:
        assert row.step == pytest.approx(0.1 + row.work + row.exposed)
        assert row.exposed == pytest.approx(max(0, row.communication - 0.03))
        assert row.speedup == pytest.approx(p.dense.step / row.step)
        assert 0 < row.bound_percent <= 100
    assert p.dense.speedup == 1


@pytest.mark.parametrize("name", ["alexnet", "resnet50"])
@pytest.mark.parametrize("ranks", [2, 16, 64])
def test_no_sum_is_faster_than_its_bound(name, ranks):
    for row in plan(model(name), ranks, "10gbit", 0.1).rows:
        assert row.bound_percent <= 100, row


def test_every_line_makes_the_method_it_names():
    for row in make_plan(SMALL, 8, "1gbit", 0.1, methods=methods_to_plan()).rows:
        method = eval(row.line, {"sparcml": sparcml})
        assert isinstance(method, sparcml.Method)
        if row.collective != "native":
            assert getattr(method, "algorithm", None) == row.collective


@pytest.mark.parametrize(
    "row",
    make_plan(of_size("3k"), 3, "1gbit", 0.1, methods=methods_to_plan()).rows,
    ids=lambda r: f"{r.method}-{r.collective}",
)
def test_every_line_aggregates(row):
    method = eval(row.line, {"sparcml": sparcml})

    def body(comm):
        state = method.init((60, 50))
        gradient = np.arange(3000, dtype=np.float32).reshape(60, 50)
        return method.aggregate(comm, gradient, state)[0]

    first, *others = sparcml.launch(body, 3)
    assert first.shape == (60, 50)
    assert all((first == other).all() for other in others)


def test_the_mildest_of_the_fast_is_recommended():
    p = plan(SMALL, 16, "1gbit", 0.05)
    fastest = min(row.step for row in p.rows)
    assert p.recommended.step <= NEAR * fastest
    order = [row.method for row in p.bests]
    for row in p.bests[: order.index(p.recommended.method)]:
        assert row.step > NEAR * fastest


def test_only_kept_accuracy_is_recommended():
    """Whatever is faster: the plan compares the candidates that may be recommended."""
    kept = {"dense", "float16", "PowerSGD rank 4"}

    def accuracy(method, optimizer):
        assert optimizer == "any"
        label = method.planning(SMALL.tensors).label
        return Accuracy("kept" if label in kept else "not measured", "", f"of {label}")

    def planned():
        return plan(SMALL, 16, "1gbit", 0.05, optimizer="any", accuracy=accuracy)

    p = planned()
    assert p.recommended.method == "PowerSGD rank 4"
    assert p.why.endswith("; measured: of PowerSGD rank 4")
    assert {row.accuracy for row in p.rows} == {"kept", "not measured"}
    faster = [row.method for row in p.bests if row.step < p.recommended.step]
    assert [row.method for row in p.faster("not measured")] == faster
    assert "TopK 0.1 %, 8 bits" in faster
    kept.clear()
    kept.add("dense")
    p = planned()
    assert p.recommended.method == "dense"
    assert p.why == "dense: no other method was measured with this optimizer"


def test_a_schedule_is_planned_with_its_mean_ratio():
    falling = sparcml.Schedule(((0, sparcml.TopK(0.5)), (10, sparcml.TopK(0.1))))
    method = sparcml.Compressed(falling, steps=40)
    assert falling.mean(40) == sparcml.TopK(0.2)
    assert falling.mean(10) == sparcml.TopK(0.5)
    uniform = sparcml.Compressed(sparcml.TopK(0.2)).planning(SMALL.tensors)
    found = method.planning(SMALL.tensors)
    assert (found.reductions, found.ratio) == (uniform.reductions, None)
    assert found.label == "TopK 50-10 %"
    endless = sparcml.Compressed(falling).planning(SMALL.tensors)  # the last stage
    last = sparcml.Compressed(sparcml.TopK(0.1)).planning(SMALL.tensors)
    assert endless.reductions == last.reductions


def test_a_coder_is_planned_with_the_bytes_that_it_needs():
    """About those of the character GPT: 35.8 times fewer than dense (docs/training.md)."""
    coded = sparcml.QSGD(2, bucket=1024, coder="rice", reduced_bits=3)
    large = sparcml.Compressed(quantize=coded, error_feedback=False).planning(SMALL.tensors)
    assert 4 / large.reductions[0].value_bytes == pytest.approx(35.8, rel=0.15)


def test_dense_is_recommended_where_nothing_pays():
    p = plan(of_size("100k"), 4, "100gbit", 0.5)
    assert p.recommended.method == "dense"
    assert p.recommended.line == "sparcml.Dense()"
    assert p.why.startswith("dense: no method")
    assert "PowerSGD rank 4" in p.slower


def test_dense_wins_from_the_rate_it_says():
    p = plan(model("resnet50"), 64, "10gbit", 0.25)
    for candidate in p.candidates[1:]:
        rate = dense_wins_from(p, candidate)
        if not rate:
            continue
        for factor, pays in ((0.9, True), (1.1, False)):
            at = plan(p.model, 64, f"{rate * factor:.0f}bit,30us", 0.25)
            assert (at.best(candidate.name).speedup > 1) is pays


def test_scaling_has_the_plan_itself():
    p = plan(SMALL, 48, "10gbit", 0.1)
    rows = scaling(p)
    assert {row["ranks"] for row in rows} >= {48, 4, 256}
    for row in rows:
        assert 0 < row["efficiency"] < 1
        if row["ranks"] == 48:
            assert row["step"] == p.best(row["method"]).step


def test_json_has_everything():
    p = plan(SMALL, 8, "ec2", 0.1, ratios=(0.01,))
    data = json.loads(json.dumps(p.as_dict()))
    assert set(data) == {
        "kind", "model", "network", "ranks", "compute", "overlap", "optimizer", "rows",
        "dense_wins_against", "dense_wins_from", "scaling", "recommended",
    }  # fmt: skip
    assert data["kind"] == "estimate"
    assert data["model"]["parameters"] == 4_000_000
    assert data["network"]["latency"] == pytest.approx(100e-6)
    pairs = [(c.name, name) for c in p.candidates for name in c.algorithms]
    assert [(row["method"], row["collective"]) for row in data["rows"]] == pairs
    assert data["recommended"]["line"] == p.recommended.line


def test_lines_build_the_methods():
    for row in plan(SMALL, 8, "1gbit", 0.1, ratios=(0.01,)).rows:
        method = eval(row.line, {"sparcml": sparcml})
        assert isinstance(method, sparcml.Method)
        assert getattr(method, "algorithm", "native") == row.collective


def test_a_plan_needs_a_baseline():
    with pytest.raises(ValueError, match="exact"):
        make_plan(SMALL, 8, "1gbit", 0.1, methods=[sparcml.PowerSGD()])


def test_models_from_files(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"a": [100, 200], "b": [7], "c": 12}))
    assert model(str(path)).tensors == ((100, 200), (7,), (12,))
    path.write_text("[[3, 4], 5]")
    assert model(str(path)).parameters == 17
    for text in ("{", "[]", "7", '{"a": [0]}', '{"a": "b"}', '{"a": [1.5]}', "[[]]"):
        path.write_text(text)
        with pytest.raises(ValueError, match="model file"):
            model(str(path))


@pytest.mark.parametrize(
    ("text", "count"), [("25.6M", 25_600_000), ("7B", 7 * 10**9), ("12k", 12_000), ("5", 5)]
)
def test_sizes(text, count):
    found = of_size(text)
    assert found.parameters == count


@pytest.mark.parametrize("text", ["", "-3M", "0", "M", "1.2.3M", "1e99", "nan", "10x"])
def test_sizes_that_are_none(text):
    with pytest.raises(ValueError, match="params"):
        of_size(text)


@pytest.mark.parametrize(
    "change",
    [
        {"ranks": 1},
        {"ranks": 10**6},
        {"compute": 0.0},
        {"compute": math.nan},
        {"overlap": 1.5},
        {"ratios": (0.0,)},
        {"network": "nonsense"},
    ],
)
def test_impossible_numbers_are_refused(change):
    usual = {"model": SMALL, "ranks": 8, "network": "1gbit", "compute": 0.1}
    with pytest.raises(ValueError, match=r".") as caught:
        plan(**(usual | change))
    assert "\n" not in str(caught.value)


def test_unknown_models_list_the_known():
    with pytest.raises(ValueError, match="resnet50, resnet152") as caught:
        model("resnet51")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ranks", [12, 100, 112])
@pytest.mark.parametrize("name", ["halving_doubling", "ssar_recursive_double"])
def test_ranks_that_are_no_power_of_two_cost_what_the_busiest_one_does(name, ranks):
    """Rank 0 only sends its vector to rank 1, which takes part for both."""
    from sparcml.costs.estimate import estimate

    network, n = sparcml.network.network("gige"), 10_000
    workload = Workload(n, 4.0, (n,) * ranks)
    declared = estimate(ALLREDUCES[name], workload, network).seconds
    found = cost_terms(ALLREDUCES[name], ranks, n, n, 4.0, network).seconds(network)
    assert found == pytest.approx(declared, rel=0.01)
