"""Rounds equal what the papers say they equal: local SGD, BMUF, DiLoCo and streaming."""

import numpy as np
import pytest

from sparcml import local
from sparcml.local.streaming import merged_at, sent_at, stride

from .training import METHODS, flat, inner_step, model, run, same_bits, simulate

STEPS = 12


def shared_models(method, ranks=3, steps=STEPS, x=None):
    """Return the shared model after every step, of rank 0."""
    start = model() if x is None else x

    def body(comm):
        x, state = start, method.init(start)
        seen = []
        for step in range(steps):
            x, state = method.step(comm, inner_step(x, comm.rank, step), state)
            seen.append(state["shared"])
        return seen

    return np.array(simulate(body, ranks)[0])


@pytest.mark.parametrize("ranks", [1, 2, 4, 5])
def test_one_step_per_round_is_synchronous_sgd(ranks):
    x = flat(model())
    for m in (
        local.DiLoCo(1, outer_lr=1, outer_momentum=0),
        local.BMUF(1, block_momentum=0),
    ):
        expected = x.astype(np.float64)
        for step, shared in enumerate(shared_models(m, ranks, x=x)):
            zero = np.zeros_like(x)
            expected += np.mean([inner_step(zero, r, step) for r in range(ranks)], axis=0)
            np.testing.assert_allclose(shared, expected, atol=3e-6)


@pytest.mark.parametrize(
    "m",
    [
        local.LocalSGD(4),
        local.DiLoCo(4, outer_lr=1, outer_momentum=0),
        local.BMUF(4, block_momentum=0),
        local.BMUF(4, block_momentum=0, nesterov=False),
    ],
    ids=str,
)
def test_without_momentum_it_is_model_averaging(m):
    x = flat(model())
    models = [x] * 3
    for step in range(4):
        models = [inner_step(y, r, step) for r, y in enumerate(models)]
    shared = shared_models(m, 3, 4, x=x)[-1]
    np.testing.assert_allclose(shared, np.mean(models, axis=0, dtype=np.float64), atol=5e-7)


@pytest.mark.parametrize(
    "m",
    [
        local.LocalSGD(4),
        local.BMUF(4),
        local.DiLoCo(4, outer_lr=1, outer_momentum=0),
    ],
    ids=str,
)
def test_a_single_rank_trains_as_without_the_method(m):
    """Bit for bit, also where start - (start - end) is rounded; BMUF's momentum is then 0."""
    x = flat(model()) * 1e-3
    expected = x
    for step in range(STEPS):
        expected = inner_step(expected, 0, step, 10.0)
    (result, _), *_ = run(m, STEPS, 1, x, 10.0)
    np.testing.assert_array_equal(result, expected)


def test_a_constant_change_moves_the_model_by_the_published_factors():
    m = local.DiLoCo(1)

    def body(comm):
        x = np.zeros(1)
        state, moved = m.init(x), []
        for _ in range(200):
            before = x
            x, state = m.step(comm, x - 1.0, state)
            moved.append(float((before - x)[0]))
        return moved

    moved = simulate(body, 2)[0]
    np.testing.assert_allclose(moved[:3], [1.33, 1.897, 2.4073], atol=1e-12)
    np.testing.assert_allclose(moved[-1], 7, atol=1e-6)


def test_nesterov_block_momentum_is_diloco():
    bmuf = local.BMUF(3, block_momentum=0.8, block_lr=0.6)
    diloco = local.DiLoCo(3, outer_momentum=0.8, outer_lr=0.6)
    np.testing.assert_array_equal(shared_models(bmuf), shared_models(diloco))


@pytest.mark.parametrize("nesterov", [True, False])
def test_bmuf_follows_its_equations(nesterov):
    x = flat(model())
    shared = shared_models(local.BMUF(3, nesterov=nesterov, block_lr=0.9), 4, x=x)
    momentum, w, w_g, u = 0.75, x.astype(np.float64), x.astype(np.float64), 0.0
    for block in range(4):
        change = np.mean(
            [
                sum(inner_step(np.zeros_like(x), r, 3 * block + i) for i in range(3))
                for r in range(4)
            ],
            axis=0,
        )
        u = momentum * u + 0.9 * change
        w = w + u
        w_g = w + momentum * u if nesterov else w
        np.testing.assert_allclose(shared[3 * block + 2], w_g, atol=5e-6)


@pytest.mark.parametrize("name", ["diloco", "sparse_loco", "bmuf", "diloco topk"])
def test_one_fragment_without_delay_is_the_plain_method(name):
    m = METHODS[name]
    names = tuple(sorted(model()))
    as_stream = type(m)(**{**{f: getattr(m, f) for f in vars(m)}, "fragments": (names,)})
    for a, b in zip(run(m, STEPS, 3), run(as_stream, STEPS, 3), strict=True):
        same_bits(a[0], b[0])
        same_bits(a[1], b[1])


@pytest.mark.parametrize("mix", [0.0, 0.5, 1.0])
def test_streaming_follows_its_equations(mix):
    """A plain loop over fragments, with a dense mean, in float64."""
    H, P, delay, ranks = 6, 2, 2, 3
    m = local.DiLoCo(H, fragments=P, delay=delay, mix=mix, outer_lr=0.4)
    start = np.random.default_rng(2).standard_normal(10)
    halves = [slice(0, 5), slice(5, 10)]
    shared, momentum, models = start.copy(), np.zeros(10), [start] * ranks
    pending = {}
    for step in range(1, 19):
        models = [inner_step(y, r, step - 1) for r, y in enumerate(models)]
        for p, s in enumerate(halves):
            due = (p + 1) * H // P
            if (step + delay - due) % H == 0 and step + delay >= due:
                pending[p] = shared[s] - np.mean([y[s] for y in models], axis=0)
            if (step - due) % H == 0 and step >= due:
                change = pending.pop(p)
                momentum[s] = 0.9 * momentum[s] + change
                shared[s] -= 0.4 * (change + 0.9 * momentum[s])
                for y in models:
                    y[s] = mix * y[s] + (1 - mix) * shared[s]
    for (x, state), expected in zip(run(m, 18, ranks, start), models, strict=True):
        np.testing.assert_allclose(x, expected, atol=1e-12)
        np.testing.assert_allclose(state["shared"], shared, atol=1e-12)


@pytest.mark.parametrize(
    ("H", "P", "delay"), [(6, 1, 0), (6, 3, 1), (12, 4, 2), (8, 8, 0), (9, 3, 2)]
)
def test_each_fragment_is_sent_once_per_round_and_one_is_in_flight(H, P, delay):
    flying, merged = [], []
    for number in range(1, 5 * H + 1):
        sent = sent_at(number, H, P, delay)
        if sent is not None:
            flying.append(sent)
        assert len(flying) <= 1
        done = merged_at(number, H, P)
        if done is not None:
            assert flying.pop() == done
            merged.append((number, done))
    assert [p for _, p in merged] == list(range(P)) * 5
    assert [n for n, p in merged if p == 0] == [H // P + i * H for i in range(5)]


def test_layers_are_dealt_to_fragments_in_turn():
    blocks = [f"blocks.{i}.{w}" for i in range(12) for w in ("attention.w", "mlp.b")]
    groups = stride(["embedding.weight", *blocks], 3)
    assert groups[0] == tuple(
        sorted(["embedding.weight", *(n for n in blocks if int(n.split(".")[1]) % 3 == 0)])
    )
    assert all(int(n.split(".")[1]) % 3 == 2 for n in groups[2])
    assert stride(["lstm.w0", "lstm.w1", "head.b", "head.w"], 2) == [
        ("head.b", "head.w"),
        ("lstm.w0", "lstm.w1"),
    ]  # no numbers: by module
    assert stride(["a", "b", "c"], 3) == [("a",), ("b",), ("c",)]


def test_fragments_of_very_different_size_are_balanced():
    names = ["embed", "lstm.w0", "lstm.w1", "lstm.w2", "out"]
    sizes = [5, 40, 60, 40, 6]
    groups = stride(names, 3, sizes)
    assert groups == [("lstm.w1",), ("lstm.w0", "out"), ("embed", "lstm.w2")]
    size = dict(zip(names, sizes, strict=True))
    assert max(sum(size[n] for n in g) for g in groups) == 60
    blocks = [f"blocks.{i}.w" for i in range(4)]
    unequal = stride(["embed", *blocks], 2, [20, 10, 10, 10, 10])
    assert unequal == [("blocks.0.w", "blocks.2.w", "embed"), ("blocks.1.w", "blocks.3.w")]


def test_a_fragment_reads_and_replaces_its_ranges():
    """Adjacent parameters are one range: a fragment of all of them is read without a copy."""
    from sparcml.aggregate.flat_model import flatten
    from sparcml.local.fragments import split_model

    x = flatten("test", model())
    (everything,) = split_model("init", x.layout, 1)
    assert everything.ranges == ((0, x.layout.size),)
    assert np.shares_memory(everything.read(x.values), x.values)
    assert everything.replaced(x.values, x.values) is x.values
    groups = (("blocks.0.w", "head"), ("blocks.1.w", "blocks.2.w"))
    first, second = split_model("init", x.layout, groups)
    assert (len(first.ranges), len(second.ranges)) == (2, 1)
    assert first.size + second.size == x.layout.size
    for part in (first, second):
        ones = np.ones(part.size, np.float32)
        new = part.replaced(x.values, ones)
        np.testing.assert_array_equal(part.read(new), ones)
        assert (new == 1).sum() == part.size
        np.testing.assert_array_equal(
            part.difference(x.values, new), part.read(x.values) - ones
        )
        pieces = part.split(part.read(x.values))
        assert isinstance(pieces, dict)
        np.testing.assert_array_equal(part.join(pieces), part.read(x.values))


def test_post_local_sgd_averages_in_every_step_first():
    m = local.LocalSGD(4, warm_up=3)
    assert [n for n in range(1, 16) if m.exchanges(n)] == [1, 2, 3, 7, 11, 15]


def test_an_outer_learning_rate_of_the_call_replaces_the_setting():
    x = np.zeros(3)

    def body(comm):
        a = local.DiLoCo(1, outer_lr=0.5)
        b = local.DiLoCo(1)
        y, _ = a.step(comm, x - 1, a.init(x))
        z, _ = b.step(comm, x - 1, b.init(x), outer_lr=0.5)
        np.testing.assert_array_equal(y, z)

    simulate(body, 2)
