"""Parameters that a coarse quantizer cannot represent, and finer sums without error feedback."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Adaptive, Compressed, OneBit, TernGrad, TopK
from sparcml.aggregate import fence, reshard

SHAPES = {"even": (40, 128), "rows": (40, 128), "bias": (9,)}
METHODS = {
    "onebit": Compressed(quantize=OneBit(bucket=128), fence=8.0, dense_below=100),
    "terngrad": Compressed(
        quantize=TernGrad(), error_feedback=False, fence=8.0, dense_below=100
    ),
    "momentum": Compressed(
        quantize=OneBit(bucket=128), fence=8.0, momentum=0.5, clip=9.0, dense_below=100
    ),
}


def gradient(rank, step):
    """One layer of equal rows, and one with a row that is 100 times as large as the others."""
    rng = np.random.default_rng((rank, step))
    g = {n: rng.standard_normal(s).astype(np.float32) for n, s in SHAPES.items()}
    g["rows"][1:] *= 0.01
    return g


def steps(comm, method, state, numbers):
    applied = {n: np.zeros(s) for n, s in SHAPES.items()}
    for step in numbers:
        mean, state = method.aggregate(comm, gradient(comm.rank, step), state)
        applied = {n: applied[n] + mean[n] for n in SHAPES}
    return applied, state


def run(method, ranks, count):
    return sparcml.launch(
        lambda comm: steps(comm, method, method.init(SHAPES), range(count)), ranks
    )


def test_dispersion_ignores_zeros():
    assert fence.dispersion(np.array([0, 3, -4, 0], np.float32)) == pytest.approx(
        4 / math.sqrt(12.5)
    )
    assert fence.dispersion(np.zeros(5)) == 0.0
    assert fence.dispersion(np.full(5, np.nan)) == 0.0
    for size in (10, 1000):
        one = np.ones(size)
        one[0] = 1e3
        assert fence.dispersion(one) == pytest.approx(math.sqrt(size), rel=0.01)


@pytest.mark.parametrize("name", METHODS)
def test_only_the_uneven_layer_is_sent_by_the_finer_quantizer(name, caplog):
    method = METHODS[name]
    with caplog.at_level(logging.WARNING, "sparcml"):
        results = run(method, 3, 2)
    (message,) = (r.getMessage() for r in caplog.records if "instead" in r.getMessage())
    assert "'rows'" in message
    assert "'even'" not in message
    for applied, state in results:
        assert fence.fenced_names(state) == ["rows"]
        assert method.describe(state) == {"rows": 4.0}
        for parameter in SHAPES:
            np.testing.assert_array_equal(applied[parameter], results[0][0][parameter])


def error_of_small_rows(method):
    ((applied, _), _) = run(method, 2, 1)
    exact = (gradient(0, 0)["rows"] + gradient(1, 0)["rows"])[1:] / 2
    off = applied["rows"][1:] - exact
    return float(np.sum(off * off) / np.sum(exact * exact))


@pytest.mark.parametrize("quantize", [OneBit(bucket=1024), TernGrad()])
def test_small_rows_are_not_drowned(quantize):
    """TernGrad and OneBit leave noise many times as large as the small rows."""
    plain = Compressed(quantize=quantize, dense_below=100)
    fenced = Compressed(quantize=quantize, fence=8.0, dense_below=100)
    assert error_of_small_rows(plain) > 2
    assert error_of_small_rows(fenced) < 0.2


@pytest.mark.parametrize("ranks", [1, 2, 5])
def test_nothing_is_lost_and_decisions_survive(ranks, tmp_path):
    """Across a checkpoint, another world size, and a method without a fence."""
    method = METHODS["onebit"]
    before = run(method, 4, 3)
    for rank, state in enumerate(reshard([s for _, s in before], ranks)):
        np.savez(tmp_path / f"{rank}.npz", **state)  # type: ignore[arg-type]

    def resume(comm):
        with np.load(tmp_path / f"{comm.rank}.npz", allow_pickle=False) as saved:
            state = method.init(SHAPES, dict(saved))
        assert fence.fenced_names(state) == ["rows"]
        applied, state = steps(comm, method, state, range(3, 5))
        last = Compressed(TopK(0.1), dense_below=100)
        more, state = steps(comm, last, last.init(SHAPES, state), range(5, 6))
        return {n: applied[n] + more[n] for n in SHAPES}, state

    after = sparcml.launch(resume, ranks)
    for name, shape in SHAPES.items():
        due = sum(gradient(r, s)[name] / 4 for r in range(4) for s in range(3))
        due = due + sum(
            gradient(r, s)[name] / ranks for r in range(ranks) for s in (3, 4, 5)
        )
        zero = np.zeros(shape)
        pending = [s.get(f"residual/{name}", zero).reshape(shape) for _, s in after]
        total = before[0][0][name] + after[0][0][name] + np.mean(pending, axis=0)
        np.testing.assert_allclose(total, due, atol=2e-4)


def test_a_decision_is_made_again_after_100_steps():
    method, sizes = METHODS["terngrad"], {"w": (20, 10)}
    uneven = np.full((20, 10), 0.01, np.float32)
    uneven[0, 0] = 1.0
    comm, state = sparcml.world(), METHODS["terngrad"].init(sizes)
    _, state = method.aggregate(comm, {"w": uneven}, state)
    assert fence.fenced_names(state) == ["w"]
    for step, expected in ((5, ["w"]), (100, [])):
        state["step"] = np.array(step)
        _, state = method.aggregate(comm, {"w": np.ones((20, 10), np.float32)}, state)
        assert fence.fenced_names(state) == expected


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        (Compressed, {"quantize": OneBit(), "fence": 0.0}),
        (Compressed, {"sparsify": TopK(0.1), "fence": 5.0}),
        (Adaptive, {"quantize": QSGD(4), "fence": 5.0}),
    ],
)
def test_bad_fences_are_named(kind, settings):
    with pytest.raises(ValueError, match=rf"{kind.__name__}: fence must be"):
        kind(**settings)
