"""Large batches, small: what is made of rows, and what a run does."""

import json
import math
from itertools import islice, pairwise

import pytest
from batch_sizes import judge, plan
from batch_sizes.recipes import MIDDLE, RECIPES
from claims import CLAIMS, kept, large_batches
from claims.base import Answer, Claim
from rich.console import Console
from run_claims import RESULTS, measured


def row(case, seed, steps):
    rate = RECIPES[case.recipe].rate_at(case.batch) * case.multiple
    found = case._asdict() | {"seed": seed, "rate": rate, "steps": steps, "sent": 1}
    if case.part == "sharpness":
        found |= {"sharpness": 10.0 + seed, "gap": 9.0 + seed, "accuracy": 83.0}
    return found


def ideal(case):
    """Perfect scaling down to 80 steps; SGD fails early without warm-up."""
    if case.warm_up == 0 and case.batch > 1024:
        return None
    slow = 1 + (case.multiple != 1) + 0.5 * case.compressed
    return slow * max(80, 2560 * 16 / case.batch)


ROWS = [row(case, seed, ideal(case)) for case in plan.cases() for seed in plan.SEEDS]


def test_the_verdict_follows_the_rows():
    answer = large_batches.answer(ROWS)
    assert answer.hit
    assert "perfect scaling up to 512, and the last doubling saves 1.00x" in answer.ours
    assert "SGD (TopK 16 of 512) 1.50x to 1.50x" in answer.ours
    missed = [
        r | {"steps": None} if r["recipe"] == "lars" and r["batch"] == 8192 else r
        for r in ROWS
    ]
    answer = large_batches.answer(missed)
    assert not answer.hit
    assert "LARS did not reach the target at 8,192" in answer.why


def test_missing_cases_leave_the_claim_open():
    for rows in ([], ROWS[:30], ROWS[3:]):
        answer = large_batches.answer(rows)
        assert answer.verdict == "open"
        assert "cases are missing" in answer.why


def test_perfect_scaling_ends_where_images_are_wasted():
    points = judge.curve(ROWS, "sgd")
    assert judge.perfect_to(points) == 512
    assert judge.last_gain(points) == 1
    assert judge.reach(judge.curve(ROWS, "sgd", warm_up=0)) == 1024
    del points[16]
    assert judge.perfect_to(points) == 16
    assert judge.last_gain({}) == math.inf


def test_a_seed_that_misses_the_target_makes_a_miss():
    found = judge.averaged([1.0, 2.0, 3.0])
    assert found is not None
    assert found == pytest.approx((2, 3**-0.5))
    assert judge.averaged([1.0, 2.0, None]) is None
    assert judge.averaged([1.0, 2.0]) is None


def test_the_smallest_of_equally_good_rates_is_chosen():
    at = {0.25: (300, 300, 300), 0.5: (100, 105, 110), 1.0: (90, 105, 105), 2.0: (200,) * 3}
    rows = [
        row(plan.Case("steps", "sgd", MIDDLE, m), seed, steps)
        for m, each in at.items()
        for seed, steps in enumerate(each)
    ]
    assert judge.chosen_rate(rows, "sgd") == RECIPES["sgd"].rate / 2


def test_the_rates_are_those_that_the_saved_runs_choose():
    found = kept(large_batches.CLAIM, RESULTS)
    if isinstance(found, str):
        pytest.skip(f"no results; run {found}")
    for name, recipe in RECIPES.items():
        assert judge.chosen_rate(found["rows"], name) == pytest.approx(recipe.rate)


def test_learning_rates_grow_with_the_batch():
    for recipe in RECIPES.values():
        assert recipe.rate_at(MIDDLE) == recipe.rate
        grown = recipe.rate_at(4 * MIDDLE) / recipe.rate
        assert grown == pytest.approx(4**recipe.power)


def test_the_figures_show_each_recipe():
    pytest.importorskip("matplotlib")
    (claim,) = [claim for claim in CLAIMS if claim.number == 29]
    for draw in claim.figures.values():
        (*_, ax) = draw(ROWS).axes
        legend = ax.get_legend()
        assert legend is not None
        assert len(legend.get_texts()) > len(RECIPES)


def test_a_run_resumes(tmp_path):
    calls = []

    def measure(n):
        calls.append(n)
        if calls == [1, 2]:
            raise KeyboardInterrupt
        return [{"n": n}]

    def answer(rows):
        return Answer(True, "", "", "")

    claim = Claim(99, "", "", "", "", 0, [(1,), (2,), (3,)], measure, answer, {})
    file, console = tmp_path / "unfinished.json", Console(quiet=True)
    with pytest.raises(KeyboardInterrupt):
        measured(claim, file, console, resume=False)
    assert json.loads(file.read_text()) == {"(1,)": [{"n": 1}]}
    assert [r["n"] for r in measured(claim, file, console, resume=True)] == [1, 2, 3]
    assert calls == [1, 2, 2, 3]


class TestTraining:
    """Runs on random images."""

    @pytest.fixture
    def data(self):
        torch = pytest.importorskip("torch")
        pytest.importorskip("pytorch_optimizer")
        from batch_sizes.problem import PIXELS, Images

        draw = torch.Generator().manual_seed(0)
        labels = torch.randint(10, (64,), generator=draw)
        return Images(torch.randn(64, PIXELS, generator=draw), labels)

    @pytest.mark.parametrize("name", RECIPES)
    @pytest.mark.parametrize("compressed", [False, True])
    def test_each_recipe_fits_a_few_images(self, data, name, compressed):
        from batch_sizes.train import training

        recipe = RECIPES[name]
        settings = recipe, data, 32, recipe.rate / 4, 5, 0, compressed
        with training(*settings) as (run, _, aggregator):
            losses = [run.step() for _ in range(30)]
        assert losses[-1] < losses[0]
        assert aggregator.bytes_sent > 0
        assert run.steps == 30

    def test_sam_leaves_the_weights_where_sgd_does_if_rho_is_0(self, data):
        import torch
        from batch_sizes.train import training

        weights = []
        for name in ("sgd", "sam"):
            recipe = RECIPES[name]
            with training(recipe, data, 32, 0.1, 0, 0, False) as (run, model, _):
                for group in run._optimizer.param_groups:
                    group["rho"] = 0.0
                for _ in range(3):
                    run.step()
            weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
        torch.testing.assert_close(weights[0], weights[1])

    def test_a_diverged_run_ends(self, data):
        from batch_sizes.train import training

        recipe = RECIPES["sgd"]
        with training(recipe, data, 32, 1e4, 0, 0, False) as (run, _, _):
            assert run.until(lambda: False, 1000) is None
        assert run.steps < 200

    def test_sharpness_is_the_increase_in_a_box(self, data):
        import torch
        from batch_sizes.problem import network
        from batch_sizes.sharpness import sharpness

        model = network(0)
        before = [p.detach().clone() for p in model.parameters()]
        found = [sharpness(model, data, epsilon) for epsilon in (1e-6, 1e-4, 1e-3)]
        assert all(0 < less < more for less, more in pairwise(found))
        model.zero_grad()
        from batch_sizes.problem import loss

        value = loss(model, data, slice(None))
        value.backward()
        # The increase is linear in a tiny box, and largest in its corner.
        slope = sum(
            float((p.grad.abs() * (p.detach().abs() + 1)).sum()) for p in model.parameters()
        )
        expected = 100 * 1e-4 * slope / (1 + float(value.detach()))
        assert found[1] == pytest.approx(expected, rel=0.1)
        for p, w in zip(model.parameters(), before, strict=True):
            assert torch.equal(p, w)

    def test_batches_use_every_image_equally_often(self):
        pytest.importorskip("torch")
        from batch_sizes.problem import batches

        seen = [int(i) for rows in islice(batches(10, 4, 0), 5) for i in rows]
        assert sorted(seen) == sorted(2 * list(range(10)))
