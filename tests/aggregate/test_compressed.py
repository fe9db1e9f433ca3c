"""Error feedback and its instances: the properties that the papers prove."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import (
    NUQSGD,
    QSGD,
    BlockTopK,
    Compressed,
    Dense,
    Half,
    OneBit,
    RandomK,
    Sign,
    Stream,
    TernGrad,
    TopK,
)
from sparcml.aggregate.stats import SelectionStats

from ..rosters import METHODS

SIZE = 4000


def noise(*key, size=SIZE):
    return np.random.default_rng(key).standard_normal(size).astype(np.float32)


def test_the_virtual_iterate_follows_exact_sgd():
    def work(comm):
        method, rate = Compressed(TopK(0.01)), 0.1
        x, state = np.zeros(SIZE), method.init(SIZE)
        exact = np.zeros(SIZE)
        for step in range(20):
            mean, state = method.aggregate(comm, rate * noise(comm.rank, step), state)
            x -= mean
            exact -= np.mean([rate * noise(r, step) for r in range(comm.size)], axis=0)
            rest = comm.allreduce(state["residual"].astype(np.float64), op="mean")
            np.testing.assert_allclose(x - rest, exact, atol=1e-5)

    sparcml.launch(work, 4)


@pytest.mark.parametrize("k", [1, 40, 400])
def test_the_residual_stays_bounded(k):
    # Karimireddy et al. 2019, lemma 3, for a contraction by 1 - k/d.
    delta = k / SIZE
    comm = sparcml.world()
    method, worst = Compressed(TopK(k=k)), 0.0
    state = method.init(SIZE)
    most = max(np.linalg.norm(noise(t)) for t in range(50))
    for t in range(50):
        _, state = method.aggregate(comm, noise(t), state)
        worst = max(worst, float(np.sum(state["residual"].astype(np.float64) ** 2)))
    assert worst <= 4 * (1 - delta) / delta**2 * most**2


def test_algorithm_1_sends_the_top_of_what_is_owed():
    def work(comm):
        method = Compressed(TopK(k=5))
        state = method.init(SIZE)
        owed = np.zeros(SIZE, np.float32)
        for step in range(4):
            owed = owed + noise(comm.rank, step)
            top = np.argsort(-np.abs(owed), kind="stable")[:5]
            sent = np.zeros(SIZE, np.float32)
            sent[top] = owed[top]
            want = comm.allreduce(sent, op="mean")
            mean, state = method.aggregate(comm, noise(comm.rank, step), state)
            np.testing.assert_allclose(mean, want, rtol=1e-6)
            owed -= sent
            np.testing.assert_array_equal(state["residual"], owed)

    sparcml.launch(work, 3)


def test_oktopk_takes_from_residuals_what_it_applies():
    def work(comm):
        method = Compressed(TopK(k=50), algorithm="oktopk")
        state, before = method.init(SIZE), np.zeros(SIZE, np.float32)
        for step in range(5):
            g = noise(comm.rank, step)
            mean, state = method.aggregate(comm, g, state)
            left = before + g - state["residual"]
            removed = comm.allreduce(left.astype(np.float64))
            np.testing.assert_allclose(mean * comm.size, removed, atol=1e-5)
            assert np.count_nonzero(mean) <= 4 * 50
            before = state["residual"]

    sparcml.launch(work, 4)


def test_gtopk_applies_k_sums_and_returns_the_rest():
    def work(comm):
        method = Compressed(TopK(k=50), global_topk=TopK(k=50))
        mean, state = method.aggregate(comm, noise(comm.rank), method.init(SIZE))
        applied = np.flatnonzero(mean)
        assert len(applied) == 50
        mine = np.argsort(-np.abs(noise(comm.rank)), kind="stable")[:50]
        kept = np.intersect1d(applied, mine)
        np.testing.assert_array_equal(state["residual"][kept], 0)
        back = np.setdiff1d(mine, applied)
        np.testing.assert_array_equal(state["residual"][back], noise(comm.rank)[back])

    sparcml.launch(work, 4)


def test_shared_random_indices_are_not_sent():
    def work(comm, shared):
        choice = RandomK(0.1, shared=shared, scaled=False)
        method = Compressed(choice, algorithm="dsar_split_allgather")
        _, state = method.aggregate(comm, noise(comm.rank), method.init(SIZE))
        comm.stats.reset()
        mean, _ = method.aggregate(comm, noise(comm.rank, 1), state)
        return np.count_nonzero(mean), comm.stats.bytes

    (count, with_seed), *_ = sparcml.launch(lambda c: work(c, True), 4)
    (_, without), *_ = sparcml.launch(lambda c: work(c, False), 4)
    assert count == 400
    assert with_seed <= 2 * 3 / 4 * 400 * 4 + 6 * 64 < without


def test_with_feedback_random_entries_are_sent_as_they_are():
    comm, method = sparcml.world(), Compressed(RandomK(0.1))
    mean, state = method.aggregate(comm, noise(0), method.init(SIZE))
    np.testing.assert_array_equal(mean + state["residual"], noise(0))
    plain = Compressed(RandomK(0.1), error_feedback=False)
    mean, _ = plain.aggregate(comm, noise(0), plain.init(SIZE))
    sent = np.flatnonzero(mean)
    np.testing.assert_allclose(mean[sent], 10 * noise(0)[sent], rtol=1e-6)


def test_ternaries_of_one_scale_add_up():
    def work(comm):
        method = Compressed(quantize=TernGrad(clip=None), error_feedback=False)
        g = noise(comm.rank)
        scale = comm.allreduce(np.array([np.abs(g).max()]), op="max")[0]
        mean, _ = method.aggregate(comm, g, method.init(SIZE))
        counts = mean * comm.size / scale
        np.testing.assert_allclose(counts, np.round(counts), atol=1e-5)
        assert np.abs(counts).max() <= comm.size
        comm.stats.reset()
        method.aggregate(comm, g, method.init(SIZE))
        # 2 bits a value up; for 4 ranks 9 different sums, so 4 bits a value down
        part = SIZE / 4
        assert comm.stats.bytes <= 3 * (part * 2 / 8 + part * 4 / 8 + 2 * 80) + 500

    sparcml.launch(work, 4)


@pytest.mark.slow
@pytest.mark.parametrize("clip", [None, 2.5])
def test_terngrad_is_unbiased_for_what_is_left_after_clipping(clip):
    method = Compressed(quantize=TernGrad(clip=clip), error_feedback=False)
    trials = 400

    def work(comm):
        g = noise(comm.rank, size=300)
        state, total = method.init(300), np.zeros(300)
        for _ in range(trials):
            mean, state = method.aggregate(comm, g, state)
            total += mean
        cut = g if clip is None else np.clip(g, -clip * g.std(), clip * g.std())
        return total / trials, cut, np.abs(cut).max()

    results = sparcml.launch(work, 3)
    want = np.mean([cut for _, cut, _ in results], axis=0)
    scale = max(s for *_, s in results)
    sigma = np.sqrt(sum(scale * np.abs(c) - c**2 for _, c, _ in results)) / 3
    assert (np.abs(results[0][0] - want) <= 5 * sigma / np.sqrt(trials) + 1e-6).all()


@pytest.mark.parametrize(
    "coder", [OneBit(), Sign(), QSGD(bits=4), NUQSGD(), Half()], ids=str
)
def test_small_parameters_are_not_drowned_by_large_ones(coder):
    """Buckets may hold values of two parameters: scales must not be shared by them."""
    shapes, sizes = {"a": (15, 100), "b": (25, 100)}, {"a": 1e-6, "b": 1.0}

    def work(comm):
        method = Compressed(quantize=coder, dense_below=10)
        g = {n: sizes[n] * noise(comm.rank, size=s) for n, s in shapes.items()}
        g = {n: x.astype("f4") for n, x in g.items()}
        mean, _ = method.aggregate(comm, g, method.init(shapes))
        exact = comm.allreduce(g["a"], op="mean")
        return np.linalg.norm(mean["a"] - exact) / np.linalg.norm(exact)

    assert max(sparcml.launch(work, 2)) < 1.5


def test_every_range_draws_its_own_random_numbers():
    def work(comm):
        x = np.full(4096 * comm.size, 0.37, np.float32)
        x[::4096] = 1
        coder = QSGD(bits=2, bucket=None)
        calls = [
            comm.allreduce(
                x, "sum", "dsar_split_allgather", coder, return_seen=True, seed=seed
            )[1].reshape(comm.size, -1)
            for seed in (0, 0, 1)
        ]
        np.testing.assert_array_equal(calls[0], calls[1])
        return np.stack([calls[0], calls[2]])

    for rank, (one, two) in enumerate(sparcml.launch(work, 4)):
        others = [r for r in range(4) if r != rank]
        parts = [*one[others], *two[others]]
        for i, part in enumerate(parts):
            assert all((part != other).any() for other in parts[:i])


def test_blocks_may_be_dropped_from_the_sum():
    def work(comm):
        method = Compressed(BlockTopK(0.2, block=5), global_topk=TopK(k=30))
        mean, state = method.aggregate(comm, noise(comm.rank), method.init(SIZE))
        assert np.count_nonzero(mean.reshape(-1, 5).any(axis=1)) == 30
        rest = comm.allreduce(state["residual"].astype("f8"), op="mean")
        due = np.mean([noise(r) for r in range(comm.size)], axis=0)
        np.testing.assert_allclose(mean + rest, due, atol=1e-6)

    sparcml.launch(work, 3)


def test_sums_of_shared_places_may_be_dropped_too():
    method = Compressed(RandomK(k=50, shared=True), global_topk=TopK(k=5))
    mean, _ = method.aggregate(sparcml.world(), noise(0), method.init(SIZE))
    assert np.count_nonzero(mean) == 5


def test_a_sparse_tensor_stays_one():
    torch = pytest.importorskip("torch")

    def work(comm):
        table = torch.nn.Embedding(100, 8, sparse=True)
        table(torch.tensor([comm.rank, 50])).sum().backward()
        g = {"embedding": table.weight.grad, "weight": torch.ones(200, 100)}
        for method in (Dense(), Compressed(TopK(0.01)), sparcml.PowerSGD()):
            mean, _ = method.aggregate(comm, g, method.init(g))
            assert mean["embedding"].layout is torch.sparse_coo
            assert mean["embedding"].coalesce().indices().shape[1] == comm.size + 1
            rows = mean["embedding"].to_dense()
            assert rows[50].tolist() == [1.0] * 8
            np.testing.assert_allclose(rows[0], 1 / comm.size, rtol=1e-6)

    sparcml.launch(work, 3)


def test_the_owner_keeps_what_its_coding_changed():
    # 1BitSGD's second residual: the sum of a range is coded again by its owner.
    def work(comm):
        method = Compressed(quantize=OneBit(bucket=SIZE))
        g = noise(comm.rank)
        mean, state = method.aggregate(comm, g, method.init(SIZE))
        applied = g - state["residual"]
        return mean, applied

    results = sparcml.launch(work, 4)
    total = np.sum([a for _, a in results], axis=0)
    np.testing.assert_allclose(results[0][0] * 4, total, atol=1e-4)
    start, end = SIZE // 4, SIZE // 2  # rank 1's range
    ours = np.unique(np.round(results[2][1][start:end], 5))
    assert len(ours) <= 2, "of another's range, two levels were seen"
    assert len(np.unique(np.round(results[1][1][start:end], 5))) > 2


def test_signs_go_in_one_bit_and_a_scale_for_each_bucket():
    def work(comm):
        method = Compressed(quantize=Sign())
        state = method.init(SIZE)
        _, state = method.aggregate(comm, noise(comm.rank), state)
        comm.stats.reset()
        method.aggregate(comm, noise(comm.rank), state)
        return comm.stats.bytes

    part = SIZE // 4
    for nbytes in sparcml.launch(work, 4):
        assert nbytes <= 2 * 3 * (part / 8 + 4 + 64)


def test_auto_is_asked_once_where_the_number_of_entries_is_fixed():
    def work(comm):
        method = Compressed(TopK(k=20))
        state, counts = method.init(SIZE), []
        for step in range(70):
            comm.stats.reset()
            _, state = method.aggregate(comm, noise(comm.rank, step), state)
            counts.append(comm.stats.messages)
        return counts

    for counts in sparcml.launch(work, 4):
        assert counts[0] > counts[1]
        assert set(counts[1:]) == {counts[1]}


def test_the_share_of_the_norm_is_in_the_statistics():
    def work(comm):
        method, g = Compressed(TopK(0.1)), noise(comm.rank)
        method.aggregate(comm, g, method.init(SIZE))
        top = np.sort(np.abs(g.astype(np.float64)))[-400:]
        want = np.linalg.norm(top) / np.linalg.norm(g.astype(np.float64))
        stats = comm.cache.get(SelectionStats)
        assert stats.selected_norm == pytest.approx(want, rel=1e-4)
        assert stats.entries == 400
        stats.reset()
        assert stats.selected_norm is None

    sparcml.launch(work, 2)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("size", [0, 1, 2])
def test_tiny_gradients(name, size):
    method = METHODS[name]

    def work(comm):
        state = method.init((size, 1))
        for _ in range(2):
            mean, state = method.aggregate(comm, np.ones((size, 1), "f4"), state)
            assert mean.shape == (size, 1)

    sparcml.launch(work, 3)


def test_small_and_flat_parameters_go_dense_and_together():
    shapes = {"a": (50,), "b": (20_000,), "c": (10, 20), "d": (200, 300)}

    def work(comm):
        g = {n: noise(comm.rank, size=s) for n, s in shapes.items()}
        method = Compressed(TopK(0.01))
        mean, state = method.aggregate(comm, g, method.init(shapes))
        assert set(state) == {"step", "residual/d"}
        exact = {n: comm.allreduce(g[n], op="mean") for n in shapes}
        for n in "abc":
            np.testing.assert_allclose(mean[n], exact[n], atol=1e-6)
        assert np.count_nonzero(mean["d"]) <= 600 * comm.size

    sparcml.launch(work, 4)


def test_a_sparse_gradient_stays_lossless():
    def work(comm):
        rows = Stream(1000, [comm.rank, 50], np.full(20, 2.0, "f4"), block=10)
        g = {"embedding": rows, "weight": noise(comm.rank, size=(200, 100))}
        for method in (Dense(), Compressed(TopK(0.01))):
            state = method.init({"embedding": 1000, "weight": (200, 100)})
            mean, _ = method.aggregate(comm, g, state)
            assert isinstance(mean["embedding"], Stream)
            assert not mean["embedding"].is_dense
            want = comm.allreduce(rows, op="mean").to_dense()
            np.testing.assert_allclose(mean["embedding"].to_dense(), want)

    sparcml.launch(work, 3)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_every_float_goes_in_and_comes_back(dtype):
    def work(comm):
        method = Compressed(TopK(0.5), QSGD(bits=8))
        state = method.init((20, 30))
        for step in range(3):
            g = noise(comm.rank, step, size=(20, 30)).astype(dtype)
            mean, state = method.aggregate(comm, g, state)
            assert (mean.dtype, mean.shape) == (np.dtype(dtype), (20, 30))
        assert state["residual"].dtype == np.dtype("f8" if dtype == "f8" else "f4")

    sparcml.launch(work, 2)


def test_torch_tensors_go_in_and_come_back():
    torch = pytest.importorskip("torch")

    def work(comm):
        method = Compressed(TopK(0.5))
        for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
            g = torch.from_numpy(noise(comm.rank, size=(20, 30))).to(dtype)
            mean, _ = method.aggregate(comm, {"w": g}, method.init({"w": g}))
            assert (mean["w"].dtype, mean["w"].shape) == (dtype, g.shape)

    sparcml.launch(work, 2)


def test_ternary_means_of_mostly_zero_gradients_keep_their_size():
    def work(comm):
        rng = np.random.default_rng(comm.rank)
        g = rng.standard_normal(20_000).astype(np.float32)
        g[rng.random(g.size) < 0.99] = 0
        exact = comm.allreduce(g, op="mean")
        shares = []
        for quantizer in (TernGrad(count_zeros=False), TernGrad()):
            method = Compressed(quantize=quantizer, error_feedback=False)
            total = np.zeros_like(g)
            state = method.init(g.size)
            for _ in range(200):
                mean, state = method.aggregate(comm, g, state)
                total += mean / 200
            shares.append(float(total @ exact / (exact @ exact)))
        return shares

    for kept, published in sparcml.launch(work, 2):
        assert kept > 0.9
        assert published < 0.4
