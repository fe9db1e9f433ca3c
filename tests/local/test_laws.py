"""What holds for every local method."""

import io

import numpy as np
import pytest

import sparcml
from sparcml import local

from ..rosters import RANKS
from .training import METHODS, flat, model, run, same_bits, simulate, train


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", METHODS)
def test_replicas_are_the_same_bits_after_every_exchange(name, ranks):
    m = METHODS[name]

    def body(comm):
        x = model()
        state, seen = m.init(x), []
        for _ in range(12):
            x, state = train(comm, m, x, state, 1)
            seen.append({k: v for k, v in state.items() if k in ("shared", "momentum")})
        return x, state, seen

    results = simulate(body, ranks)
    for _, _, seen in results[1:]:
        for mine, first in zip(seen, results[0][2], strict=True):
            same_bits(mine, first)
    if name in ("local_sgd", "bmuf", "diloco", "diloco topk", "sparse_loco", "demo"):
        x, state, _ = results[0]
        same_bits(x, m.shared(x, state))  # step 12 ends a round of them


@pytest.mark.parametrize("name", METHODS)
def test_a_checkpoint_resumes_bit_for_bit_at_any_step(name):
    m, steps = METHODS[name], 13
    expected = run(m, steps, 3)

    def first(comm):
        x = model()
        state, saved = m.init(x), []
        for _ in range(steps):
            x, state = train(comm, m, x, state, 1)
            files = io.BytesIO(), io.BytesIO()
            np.savez(files[0], **x)
            np.savez(files[1], **state)
            saved.append([file.getvalue() for file in files])
        return saved

    saved = simulate(first, 3)
    for at in range(steps - 1):  # with and without an exchange in flight

        def resumed(comm, at=at):
            x, state = (dict(np.load(io.BytesIO(data))) for data in saved[comm.rank][at])
            return train(comm, m, x, state, steps - 1 - at)

        for (x, state), (wanted, wanted_state) in zip(
            simulate(resumed, 3), expected, strict=True
        ):
            same_bits(x, wanted)
            same_bits(state, wanted_state)


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("name", METHODS)
def test_a_consolidated_state_keeps_the_mean(name, ranks):
    """At step 7, in the middle of a round: the steps since the exchange are not lost."""
    m = METHODS[name]

    def first(comm):
        x, state = train(comm, m, model(), m.init(model()), 7)
        return x, state, *m.consolidate(comm, x, state)

    results = simulate(first, 3)
    mean = np.mean([flat(x) for x, *_ in results], axis=0, dtype=np.float64)
    _, _, x, state = results[0]
    np.testing.assert_allclose(flat(x), mean, atol=1e-6)
    for *_, other_x, other in results[1:]:
        same_bits(other_x, x)
        same_bits(other, state)
    for key in state:
        if key.endswith("residual") or "residual/" in key or key == "pending":
            entries = [r[1][key] for r in results]
            np.testing.assert_allclose(state[key], np.mean(entries, axis=0), atol=1e-6)

    def second(comm):
        return train(comm, m, x, state, 5)

    after = simulate(second, ranks)
    assert int(after[0][1]["step"]) == 12
    if "shared" in after[0][1]:
        same_bits({"": after[0][1]["shared"]}, {"": after[-1][1]["shared"]})


@pytest.mark.parametrize("name", METHODS)
def test_arguments_are_not_modified(name):
    m = METHODS[name]

    def body(comm):
        x, state = train(comm, m, model(), m.init(model()), 3)
        for _ in range(9):
            copies = [{k: v.copy() for k, v in d.items()} for d in (x, state)]
            new, new_state = m.step(comm, x, state)
            same_bits(x, copies[0])
            same_bits(state, copies[1])
            x, state = train(comm, m, new, new_state, 1)

    simulate(body, 2)


@pytest.mark.parametrize("name", ["diloco", "sparse_loco", "demo", "sparta"])
def test_float64_arrays_and_tensors(name):
    torch = pytest.importorskip("torch")
    m = METHODS[name]

    def body(comm):
        rng = np.random.default_rng(0)
        start = rng.standard_normal((8, 8))
        x, _state = train(comm, m, start, m.init(start), 9)
        assert isinstance(x, np.ndarray)
        assert x.dtype == np.float64
        assert x.shape == (8, 8)
        tensor = torch.from_numpy(start.copy())
        y, other = m.step(comm, tensor, m.init(tensor))
        assert isinstance(y, torch.Tensor)
        assert y.shape == (8, 8)
        assert other.keys() >= {"step", "size"}

    simulate(body, 2)


def test_threads_give_the_bits_of_the_simulation():
    m = METHODS["sparse_loco all"]
    start = model()

    def body(comm):
        return train(comm, m, start, m.init(start), 11)

    real, simulated = sparcml.launch(body, 3), simulate(body, 3)
    for (x, state), (y, other) in zip(real, simulated, strict=True):
        same_bits(x, y)
        same_bits(state, other)


def test_a_loaded_state_replaces_the_exchange_in_flight():
    """A request that belongs to a state which was replaced must not be merged."""
    m = local.DiLoCo(6, delay=4)
    start = np.zeros(5)

    def body(comm):
        x, state = train(comm, m, start, m.init(start), 1)
        saved = x, dict(state)
        x, state = train(comm, m, x, state, 3)  # in flight
        return train(comm, m, *saved, 5)[0], train(comm, m, *saved, 5)[0]

    for a, b in sparcml.launch(body, 2):
        np.testing.assert_array_equal(a, b)
