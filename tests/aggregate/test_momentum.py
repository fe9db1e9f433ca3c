"""Momentum, masking and warm-up of Compressed; DGC is an instance of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import DGC, QSGD, BlockTopK, Compressed, Schedule, Threshold, TopK
from sparcml.aggregate.momentum import kept_share

SIZE = 300


@pytest.mark.parametrize(
    ("every", "share"), [(1, 0.1), (2, 0.145), (10, 0.41), (50, 0.82), (100, 0.91)]
)
def test_masking_keeps_this_share_of_a_gradient(every, share):
    # One of `every` entries is sent in each step: the largest that waits, in turn.
    assert kept_share(0.9, every) == pytest.approx(share, abs=0.006)
    method, size = Compressed(TopK(k=1), momentum=0.9, masking=True), every
    state, applied, steps = method.init(size), np.zeros(size), 20 * every
    with sparcml.world() as comm:
        for _ in range(steps):
            mean, state = method.aggregate(comm, np.ones(size, np.float64), state)
            applied += mean
    dense = steps / (1 - 0.9)  # what dense momentum makes of it, in the end
    later = applied[-1] / dense  # the last entry waited for every sending
    assert later == pytest.approx(share, rel=0.08)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("masking", [False, True])
def test_sending_everything_is_dense_momentum_or_none(masking, nesterov):
    """Density 1 in float64: dense momentum to rounding; masked, the gradients themselves."""
    method = Compressed(TopK(1.0), momentum=0.9, nesterov=nesterov, masking=masking)

    def work(comm):
        state, u = method.init(SIZE), np.zeros(SIZE)
        state = {k: v.astype(np.float64) if k != "step" else v for k, v in state.items()}
        for step in range(50):
            parts = [np.random.default_rng((r, step)).standard_normal(SIZE) for r in (0, 1)]
            mean, state = method.aggregate(comm, parts[comm.rank], state)
            g, before = np.mean(parts, axis=0), 0.0 if masking else u
            u = 0.9 * (before + g) if nesterov else 0.9 * before + g
            np.testing.assert_allclose(mean, u + g if nesterov else u, rtol=0, atol=1e-12)
            assert not state["residual"].any()

    sparcml.launch(work, 2)


def test_dgc_is_an_instance():
    options: dict[str, Any] = {
        "momentum": 0.8,
        "nesterov": True,
        "clip": 1.0,
        "dense_below": 10,
    }
    dgc = DGC(ratio=0.05, warm_up=4, quantize=QSGD(8), **options)
    same = Compressed(TopK(0.05), QSGD(8), warm_up=4, masking=True, **options)

    def work(comm):
        states = [method.init({"w": (20, 15), "b": (5,)}) for method in (dgc, same)]
        for step in range(6):
            rng = np.random.default_rng((comm.rank, step))
            g = {"w": rng.standard_normal((20, 15)), "b": rng.standard_normal(5)}
            results = [
                method.aggregate(comm, g, state)
                for method, state in zip((dgc, same), states, strict=True)
            ]
            states = [state for _, state in results]
            for name in g:
                np.testing.assert_array_equal(results[0][0][name], results[1][0][name])
            assert states[0].keys() == states[1].keys()

    sparcml.launch(work, 2)


def test_uncompressed_parameters_get_the_momentum_of_their_mean():
    method = Compressed(TopK(0.1), momentum=0.5)
    with sparcml.world() as comm:
        state = method.init({"bias": (3,)})
        for expected in (1.0, 1.5, 1.75):
            mean, state = method.aggregate(comm, {"bias": np.ones(3)}, state)
            np.testing.assert_array_equal(mean["bias"], np.full(3, expected))


def test_a_mean_is_not_the_momentum_of_the_state():
    method = Compressed(TopK(0.1), momentum=0.5)
    with sparcml.world() as comm:
        mean, state = method.aggregate(comm, {"b": np.ones(3)}, method.init({"b": (3,)}))
        mean["b"][:] = 9
        np.testing.assert_array_equal(state["momentum/b"], np.ones(3))


def test_masking_clears_the_blocks_that_were_sent():
    method = Compressed(BlockTopK(k=1, block=4), momentum=0.5, masking=True)
    g = np.array([1.0] * 4 + [5.0] * 4 + [2.0] * 4)
    with sparcml.world() as comm:
        _, state = method.aggregate(comm, g, method.init(12))
    np.testing.assert_array_equal(state["momentum"], [1.0] * 4 + [0.0] * 4 + [2.0] * 4)


@pytest.mark.parametrize("nesterov", [False, True])
def test_a_momentum_that_is_not_finite_is_refused(nesterov):
    method = Compressed(TopK(k=2), momentum=0.9, nesterov=nesterov)
    state = method.init(5)
    entry = next(k for k in state if k.startswith("momentum"))
    state[entry] = np.array([0, np.inf, 0, 0, 0])
    with sparcml.world() as comm, pytest.raises(ValueError, match="index 1"):
        method.aggregate(comm, np.ones(5), state)


@pytest.mark.parametrize(
    ("sparsifier", "densities"),
    [
        (TopK(0.01), (0.25, 0.0625, 0.015625, 0.01, 0.01)),
        (TopK(k=8, bucket=512), (0.25, 0.0625, 0.015625, 0.015625, 0.015625)),
        (BlockTopK(0.01, block=4), (0.25, 0.0625, 0.015625, 0.01, 0.01)),
    ],
)
def test_warm_up_lowers_the_density_in_stages(sparsifier, densities):
    size = 512 * 100
    method = Compressed(sparsifier, warm_up=0.5, steps=8)
    state = method.init(size)
    with sparcml.world() as comm:
        for step in range(5):
            g = np.random.default_rng(step).standard_normal(size).astype(np.float32)
            mean, state = method.aggregate(comm, g, state)
            assert np.count_nonzero(mean) / size == pytest.approx(densities[step], rel=0.01)


def test_a_number_of_steps_is_the_same_as_a_fraction():
    for method in (Compressed(TopK(0.01), warm_up=20), DGC(0.01, warm_up=0.2, steps=100)):
        inner = method if isinstance(method, Compressed) else method._inner()
        expected = Schedule.warm_up(0.01, 20)
        assert [inner.sparsifier_at(s) for s in range(30)] == [
            expected.at(s) for s in range(30)
        ]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"momentum": 1.0}, "momentum must be in"),
        ({"momentum": -0.1}, "momentum must be in"),
        ({"masking": True}, "momentum must be positive with nesterov or masking"),
        ({"nesterov": True}, "momentum must be positive with nesterov or masking"),
        ({"clip": 0.0}, "clip must be positive"),
        ({"sparsify": TopK(0.1), "warm_up": -1}, "warm_up must be at least 0"),
        ({"sparsify": TopK(0.1), "warm_up": 0.5}, "steps must be the number of steps"),
        ({"warm_up": 5}, "sparsify must be a sparsifier"),
        ({"sparsify": Threshold(0.1), "warm_up": 5}, "must have a ratio"),
        ({"sparsify": TopK(k=10), "warm_up": 5}, "must have a ratio"),
    ],
)
def test_bad_settings_are_named(settings, message):
    with pytest.raises(ValueError, match=message):
        Compressed(**settings)


def test_momentum_of_sparse_gradients_is_refused():
    method = Compressed(TopK(0.1), momentum=0.9)
    stream = sparcml.Stream(10, [1], np.ones(1, np.float32))
    with sparcml.world() as comm, pytest.raises(TypeError, match="must be dense"):
        method.aggregate(comm, {"table": stream}, method.init({"table": (10,)}))
