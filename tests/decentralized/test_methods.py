"""Law 11 and the common interface, over all decentralized methods."""

import io

import numpy as np
import pytest

import sparcml
from sparcml import decentralized as dec

from ..rosters import RANKS
from .method_roster import KEEPING, METHODS, SYNCHRONOUS, method, other_topology
from .training import assert_replicas_match, random_models, simulate, train

SIZE = 24


def steps(comm, m, x, state, count, *, scale=1.0):
    """Make steps with gradients that depend on rank and step; scale 0 has none."""
    for _ in range(count):
        rng = np.random.default_rng([comm.rank, int(state["step"])])
        comm.advance(1e-3)
        gradient = scale * rng.standard_normal(x.shape)
        x, state = m.step(comm, x, gradient, state, lr=0.05)
    return x, state


def begin(comm, m):
    x = random_models(comm.size, SIZE)[comm.rank]
    return x, m.init(x)


def first_steps(comm, m, count):
    x, state = begin(comm, m)
    return steps(comm, m, x, state, count)


def kept_mean(m, models, states):
    """Return the mean that a method keeps: weighted for push-sum."""
    weights = [m._weight(state) for state in states]
    return np.average(models, axis=0, weights=weights)


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", KEEPING)
def test_steps_without_gradients_keep_the_mean(name, ranks):
    m = method(name, ranks)

    def body(comm):
        x, state = begin(comm, m)
        x, state = steps(comm, m, x, state, 4, scale=0.0)
        return m.flush(comm, x, state)

    models, states = zip(*simulate(body, ranks), strict=True)
    expected = random_models(ranks, SIZE).mean(0)
    np.testing.assert_allclose(kept_mean(m, models, states), expected, atol=1e-13)


@pytest.mark.parametrize("name", METHODS)
def test_the_mean_is_kept_when_the_topology_changes(name):
    """Gradients first, so that ranks differ; then a change, then steps without gradients."""
    m = method(name, 6)

    def body(comm):
        x, state = begin(comm, m)
        x, state = m.flush(comm, *steps(comm, m, x, state, 3))
        before = m.mean(comm, x, state)
        changed, state = m.change_topology(other_topology(name, 6), state)
        np.testing.assert_allclose(changed.mean(comm, x, state), before, atol=1e-14)
        x, state = changed.flush(comm, *steps(comm, changed, x, state, 3, scale=0.0))
        return before, changed.mean(comm, x, state), x, state

    results = simulate(body, 6)
    before, after = results[0][:2]
    states = [state for *_, state in results]
    assert all(int(state["step"]) == 6 for state in states)
    # Momentum moves the mean on; a tracker takes back the gradients that are gone.
    if name in KEEPING and not {"momentum", "tracker"} & states[0].keys():
        np.testing.assert_allclose(after, before, atol=1e-13)
    if any(key.startswith("replica/") for key in states[0]):
        own = [state.get("estimate", x) for *_, x, state in results]
        assert_replicas_match(states, own)


@pytest.mark.parametrize("ranks", [1, 3, 8])
@pytest.mark.parametrize("name", METHODS)
def test_the_mean_is_kept_when_the_world_size_changes(name, ranks):
    m = method(name, 4)

    def first(comm):
        x, state = begin(comm, m)
        x, state = m.flush(comm, *steps(comm, m, x, state, 3))
        return x, state, m.mean(comm, x, state), *m.consolidate(comm, x, state)

    models, states, means, consolidated, entries = zip(*simulate(first, 4), strict=True)
    resized, x, state = m.reshard(models, states, METHODS[name][1](ranks))
    np.testing.assert_allclose(x, means[0], atol=1e-14)
    np.testing.assert_allclose(consolidated[2], means[0], atol=1e-14)
    assert entries[0].keys() == state.keys() - {"in_flight"}

    def second(comm):
        state = resized.init(x, entries[0])
        assert int(state["step"]) == 3
        after = resized.flush(comm, *steps(comm, resized, x, state, 3, scale=0.0))
        return resized.mean(comm, *after)

    means = simulate(second, ranks)
    if name != "dpsgd momentum":  # the momentum is kept too, and moves the mean on
        noisy = name in ("naive", "ecd")  # they compress models, not differences
        np.testing.assert_allclose(means[0], x, atol=0.1 if noisy else 1e-12)


@pytest.mark.parametrize("name", SYNCHRONOUS)
def test_a_checkpoint_resumes_bit_for_bit(name):
    m = method(name, 5)

    def uninterrupted(comm):
        return first_steps(comm, m, 6)

    def saved(comm):
        x, state = first_steps(comm, m, 3)
        file = io.BytesIO()
        np.savez(file, x=x, **{f"state:{k}": v for k, v in state.items()})
        return file.getvalue()

    files = sparcml.launch(saved, 5)

    def resumed(comm):
        loaded = np.load(io.BytesIO(files[comm.rank]))
        state = {k.partition(":")[2]: loaded[k] for k in loaded if k != "x"}
        return steps(comm, m, loaded["x"], state, 3)

    expected, actual = sparcml.launch(uninterrupted, 5), sparcml.launch(resumed, 5)
    for (x, state), (y, other) in zip(expected, actual, strict=True):
        np.testing.assert_array_equal(x, y)
        assert state.keys() == other.keys()
        for key in state:
            np.testing.assert_array_equal(state[key], other[key], err_msg=key)


@pytest.mark.parametrize("ranks", [2, 4, 7])
@pytest.mark.parametrize("name", METHODS)
def test_two_runs_give_the_same_bits(name, ranks):
    m = method(name, ranks)

    def body(comm):
        return m.flush(comm, *first_steps(comm, m, 3))[0]

    run = simulate if name not in SYNCHRONOUS else sparcml.launch
    np.testing.assert_array_equal(run(body, ranks), run(body, ranks))


@pytest.mark.parametrize("name", METHODS)
def test_an_overwritten_state_gives_the_same_bits(name):
    m = method(name, 4)

    def body(comm):
        ends = []
        for overwrite in (False, True):
            x, state = begin(comm, m)
            for step in range(4):
                old, g = x.copy(), np.cos(np.arange(x.size) + comm.rank + step)
                new, state = m.step(comm, x, g, state, 0.1, overwrite_state=overwrite)
                np.testing.assert_array_equal(x, old)
                x = new
            x, state = m.flush(comm, x, state)
            ends.append({"x": x, **state})
        return ends

    for plain, overwritten in simulate(body, 4):
        assert plain.keys() == overwritten.keys()
        for key in plain:
            np.testing.assert_array_equal(plain[key], overwritten[key], err_msg=key)


@pytest.mark.parametrize("name", ["dpsgd", "dcd", "choco topk", "choco qsgd"])
@pytest.mark.parametrize("what", ["model", "gradient"])
def test_values_that_are_not_finite_are_named(name, what):
    m = method(name, 3)

    def body(comm):
        x, g = np.ones(SIZE), np.ones(SIZE)
        x, state = m.step(comm, x, g, m.init(x), 0.1)
        if comm.rank == 1:
            (x if what == "model" else g)[5] = np.nan
        m.step(comm, x, g, state, 0.1)

    with pytest.raises(ValueError, match=f"the {what} of rank 1 must be finite.* index 5"):
        sparcml.launch(body, 3)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", METHODS)
def test_named_parameters_keep_their_form_and_are_not_modified(name, dtype):
    m = method(name, 4)

    def body(comm):
        rng = np.random.default_rng(comm.rank)
        x = {"w": rng.standard_normal((6, 3)).astype(dtype), "a": np.ones((), dtype)}
        before = {k: v.copy() for k, v in x.items()}
        gradient = {"a": np.array(0.5), "w": np.ones((6, 3))}
        state = m.init(x)
        new, state = m.step(comm, x, gradient, state, lr=0.1)
        again, state = m.step(comm, new, gradient, state, lr=0.1)
        for k, values in x.items():
            np.testing.assert_array_equal(values, before[k])
        assert list(again) == ["w", "a"]
        again["w"] += 1  # the result may be modified
        again, state = m.flush(comm, new, state)
        return {k: (v.shape, v.dtype) for k, v in m.averaged(comm, again, state).items()}

    for forms in simulate(body, 4):
        assert forms == {"w": ((6, 3), dtype), "a": ((), dtype)}


@pytest.mark.parametrize("name", ["dpsgd", "choco qsgd", "d2", "gradient_tracking"])
def test_tensors(name):
    torch = pytest.importorskip("torch")
    m = method(name, 2)

    def body(comm, convert):
        x = convert(random_models(2, SIZE, np.float32)[comm.rank])
        return train(comm, m, x, lambda x: x * comm.rank, 3, 0.1)[0]

    tensors = sparcml.launch(lambda comm: body(comm, torch.from_numpy), 2)
    arrays = sparcml.launch(lambda comm: body(comm, np.array), 2)
    np.testing.assert_array_equal(torch.stack(tensors).numpy(), arrays)


def test_consensus_distance():
    def body(comm):
        x = np.array([3.0, 4.0]) * (1 if comm.rank == 0 else -1)
        return dec.DPSGD(dec.ring(2)).consensus_distance(comm, x)

    assert sparcml.launch(body, 2) == [5.0, 5.0]


def test_a_method_continues_from_the_state_of_another():
    def body(comm):
        x = random_models(4)[comm.rank]
        x, state = train(comm, dec.DPSGD(dec.ring(4)), x, np.zeros_like, 3, 0.1)
        choco = dec.Choco(dec.ring(4), sparcml.TopK(0.5))
        x, state = train(comm, choco, x, np.zeros_like, 2, 0.1, choco.init(x, state))
        return choco.mean(comm, x), int(state["step"])

    for mean, step in sparcml.launch(body, 4):
        np.testing.assert_allclose(mean, random_models(4).mean(0), atol=1e-13)
        assert step == 5
