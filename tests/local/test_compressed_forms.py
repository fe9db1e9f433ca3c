"""SparseLoCo, DeMo and SPARTA: their equations, and what they degenerate to."""

import numpy as np
import pytest

from sparcml import local
from sparcml.sparsify.dct_topk import DCTTopK

from .training import flat, inner_step, model, run, same_bits, simulate

STEPS = 12


def shared(method, ranks=3, steps=STEPS):
    return run(method, steps, ranks)[0][1]["shared"]


def test_density_one_without_code_is_diloco_without_momentum():
    for mean in ("all", "senders"):
        m = local.SparseLoCo(4, k=32, chunk=32, quantize=None, mean=mean, outer_lr=0.7)
        results = run(m, STEPS, 3)
        plain = shared(local.DiLoCo(4, outer_lr=0.7, outer_momentum=0))
        np.testing.assert_allclose(results[0][1]["shared"], plain, atol=1e-6)
        for _, state in results:
            assert not state["aggregate/0/residual"].any()


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_density_one_is_diloco_bit_for_bit_on_exact_data(ranks):
    """Sums of small integers, divided by a power of two, have no rounding."""
    start = np.random.default_rng(3).integers(-50, 50, 96).astype(np.float32)

    def body(comm):
        ends = []
        for m in (
            local.SparseLoCo(2, k=32, chunk=32, quantize=None, mean="all", outer_lr=0.5),
            local.SparseLoCo(2, k=32, chunk=32, quantize=None, outer_lr=0.5),
            local.DiLoCo(2, outer_lr=0.5, outer_momentum=0),
        ):
            x, state = start, m.init(start)
            for step in range(6):
                rng = np.random.default_rng([comm.rank, step])
                x = x - rng.integers(1, 9, 96).astype(np.float32)  # no change is zero
                x, state = m.step(comm, x, state)
            ends.append({"x": x, "shared": state["shared"]})
        same_bits(ends[0], ends[2])
        same_bits(ends[1], ends[2])

    simulate(body, ranks)


def test_without_error_feedback_and_with_momentum_it_is_diloco():
    m = local.SparseLoCo(
        4,
        k=32,
        chunk=32,
        quantize=None,
        error_feedback=False,
        outer_lr=0.7,
        outer_momentum=0.9,
    )
    np.testing.assert_allclose(shared(m), shared(local.DiLoCo(4)), atol=1e-5)


def test_nothing_sent_leaves_the_buffer_of_heavy_ball_momentum():
    m = local.SparseLoCo(2, k=0, decay=0.9)
    x = np.zeros(10)
    (_, state), *_ = run(m, 8, 2, x)
    buffer = np.zeros(10)
    for block in range(4):
        change = -sum(inner_step(x, 0, 2 * block + i) for i in range(2))
        buffer = 0.9 * buffer + change
    np.testing.assert_allclose(state["aggregate/0/residual"], buffer, atol=1e-12)
    assert not state["shared"].any()


@pytest.mark.parametrize("mean", ["all", "senders"])
def test_sent_plus_residual_is_all_change_without_decay(mean):
    """The mean over all ranks moves the shared model by what the residuals do not hold."""
    m = local.SparseLoCo(3, k=5, chunk=40, decay=1, mean=mean)
    results = run(m, STEPS, 4)
    if mean == "all":
        # Every round starts at the shared model, so the changes are the inner steps.
        start = flat(model())
        zero = {n: np.zeros_like(v) for n, v in model().items()}
        changes = [flat(inner_step(zero, r, s)) for r in range(4) for s in range(STEPS)]
        left = np.mean([s["aggregate/0/residual"] for _, s in results], axis=0)
        applied = results[0][1]["shared"] - start
        np.testing.assert_allclose(applied - left, np.sum(changes, axis=0) / 4, atol=2e-6)
    assert all(s["aggregate/0/residual"].any() for _, s in results)


def test_senders_and_all_agree_on_equal_supports():
    def body(comm):
        states = []
        for mean in ("all", "senders"):
            m = local.SparseLoCo(1, k=2, chunk=10, quantize=None, mean=mean)
            x = np.zeros(10, np.float32)
            change = np.array([0, 8, 0, 0, 4, 0, 0, 0, 0, 0], np.float32) * (comm.rank + 1)
            states.append(m.step(comm, x - change, m.init(x))[1])
        same_bits(*states)

    simulate(body, 4)


def test_senders_divide_by_those_that_sent():
    def body(comm):
        m = local.SparseLoCo(1, k=1, chunk=4, quantize=None, decay=1)
        x = np.zeros(4, np.float32)
        change = np.eye(4, dtype=np.float32)[comm.rank // 2] * (1 + comm.rank)
        y, _ = m.step(comm, x - change, m.init(x))
        np.testing.assert_array_equal(y, [-1.5, -3.0, 0, 0])  # (1 + 2) / 2 and 3 / 1

    simulate(body, 3)


@pytest.mark.parametrize(
    "shape", [(7,), (64,), (130,), (5, 9), (64, 64), (70, 129), (3, 4, 5), (1,)]
)
def test_the_cosine_transform_inverts_and_keeps_lengths(shape):
    x = np.random.default_rng(0).standard_normal(shape)
    for side in (8, 64):
        tiles = DCTTopK(side=side)
        coefficients = tiles.transform(x.ravel(), shape)
        np.testing.assert_allclose(
            tiles.inverse(coefficients, shape), x.ravel(), atol=1e-12
        )
        np.testing.assert_allclose(np.vdot(coefficients, coefficients), np.vdot(x, x))


def test_the_cosine_transform_is_that_of_the_definition():
    x = np.random.default_rng(0).standard_normal(4)
    expected = [
        (np.sqrt(1 / 4) if j == 0 else np.sqrt(2 / 4))
        * sum(x[i] * np.cos(np.pi * (2 * i + 1) * j / 8) for i in range(4))
        for j in range(4)
    ]
    np.testing.assert_allclose(DCTTopK().transform(x, (4,)), expected)
    stream = DCTTopK(k=2, side=2).select(
        DCTTopK(side=2).transform(np.arange(16.0), (4, 4)), (4, 4)
    )
    assert stream.nnz == 8  # 2 of each of 4 tiles


def test_demo_with_all_coefficients_on_one_rank_is_sign_sgd():
    m = local.DeMo(k=64, side=8, outer_lr=0.01, weight_decay=0.1)

    def body(comm):
        x = expected = np.linspace(-1, 1, 64).reshape(8, 8)
        state = m.init(x)
        for step in range(5):
            g = np.random.default_rng(step).standard_normal((8, 8))
            expected = expected * (1 - 0.001) - 0.01 * np.sign(g)
            x, state = m.step(comm, x - 0.5 * g, state)
        np.testing.assert_allclose(x, expected, atol=1e-12)
        np.testing.assert_allclose(state["aggregate/0/residual"], 0, atol=1e-12)

    simulate(body, 1)


def test_demo_keeps_what_it_does_not_send():
    m = local.DeMo(k=3, side=4, decay=0.9, outer_lr=0.01)
    start = np.zeros((8, 8))

    def body(comm):
        y = inner_step(start, comm.rank, 0)
        x, state = m.step(comm, y, m.init(start))
        tiles = DCTTopK(3, 4)
        coefficients = tiles.transform(-y.ravel(), (8, 8))
        own = tiles.inverse(tiles.select(coefficients, (8, 8)).to_dense(), (8, 8))
        np.testing.assert_allclose(
            state["aggregate/0/residual"], -y.ravel() - own, atol=1e-12
        )
        return x

    for x in simulate(body, 3):
        assert set(np.unique(np.abs(x))) <= {0.0, 0.01}


@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_sparta_keeps_the_mean_and_shrinks_the_spread(ratio):
    m = local.SPARTA(ratio=ratio)
    starts = np.random.default_rng(0).standard_normal((4, 2000))

    def body(comm):
        x = starts[comm.rank]
        state, seen = m.init(x), []
        for _ in range(10):
            x, state = m.step(comm, x, state)
            seen.append(x)
        return seen

    models = np.array(simulate(body, 4))
    np.testing.assert_allclose(models.mean(0), np.tile(starts.mean(0), (10, 1)), atol=1e-14)
    spread = ((models - models.mean(0)) ** 2).sum((0, 2))
    before = ((starts - starts.mean(0)) ** 2).sum()
    expected = (1 - ratio) ** np.arange(1, 11)
    np.testing.assert_allclose(spread / before, expected, atol=0.03)
    covered = np.mean(models[0, -1] != starts[0])
    assert covered == pytest.approx(1 - (1 - ratio) ** 10, abs=0.03)
