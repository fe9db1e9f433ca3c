"""What the workers of test_elastic_state.py do."""

import os
import signal
import time
import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed as dist

from sparcml import local
from sparcml.local.elastic import ElasticRounds
from sparcml.local.quorum import Quorum
from sparcml.torch import ElasticTraining

from .elastic_workers import ROUNDS, conserved, record, store_of
from .models import mlp, same
from .optimizing import parameters, trained

SIZE, GRACE, SAVED = 60, 6.0, 3
RESIDUAL = "aggregate/0/residual"
# Nothing decays, and the mean is over all members:
# what is sent and kept is what the workers have changed.
SPARSE = local.SparseLoCo(2, k=5, chunk=20, decay=1, mean="all", quantize=None)


def vector():
    module = torch.nn.ParameterDict({"x": torch.zeros(SIZE, dtype=torch.float64)})
    return module, torch.optim.SGD(module.parameters(), lr=1.0)


def step(module, optimizer, member, number):
    draw = np.random.default_rng([member, number])
    module["x"].grad = torch.from_numpy(draw.standard_normal(SIZE))
    optimizer.step()


def arrays(training):
    state = training.state_dict()["state"]
    zeros = torch.zeros(SIZE, dtype=torch.float64)
    own = state["worker/model"], state["shared"], state.get(RESIDUAL, zeros)
    return [value.numpy() for value in own]


def one_is_killed_and_starts_again(folder):
    """Process 2 is killed in the middle of a round. Process 3 is the same worker, started again."""
    rank = int(os.environ["RANK"])
    member = 2 if rank == 3 else rank
    store, file = store_of(rank), folder / "worker.pt"
    module, optimizer = vector()
    if rank == 3:
        store.wait(["alone"])
        store.set("joining", "")
    quorum = Quorum(store, member, workers=3, minimum=2, grace=GRACE, timeout=60)
    with ElasticTraining(module, optimizer, SPARSE, quorum) as training:
        if rank == 3:
            continues_from(training, torch.load(file, weights_only=True), store)
        rounds_of(rank, member, module, optimizer, training, store, file)
    if rank == 0:
        members = conserved(store, SIZE)
        assert members[SAVED] == [0, 1, 2], members
        assert members[SAVED + 1] == [0, 1], members
        assert members[ROUNDS] == [0, 1, 2], members
    store.set(f"ended/{rank}", "")
    if rank == 0:  # its process has the store
        store.wait(["ended/1", "ended/3"])


def continues_from(training, saved, store):
    """Change and residual are those of the killed process, on the current shared model."""
    before = [saved["state"][k].numpy() for k in ("worker/model", "shared", RESIDUAL)]
    assert before[2].any()
    assert training.rounds > SAVED
    shared = arrays(training)[1]
    training.load_state_dict(saved)
    now = arrays(training)
    np.testing.assert_array_equal(now[1], shared)
    np.testing.assert_array_equal(now[2], before[2])
    assert (before[0] - before[1]).any()
    np.testing.assert_allclose(now[0] - now[1], before[0] - before[1], atol=1e-12)
    zeros = np.zeros(SIZE)
    record(
        store, training.rounds, 2, change=zeros, before=zeros, after=zeros,
        members=training.members, shared=shared, number=[-1],
    )  # fmt: skip


def rounds_of(rank, member, module, optimizer, training, store, file):
    while training.rounds < ROUNDS:
        number = training.rounds
        if number == SAVED + 2 and rank in (0, 1):
            store.set("alone", "")
            store.wait(["joining"])
        if number >= SAVED + 2 and 2 not in training.members:
            time.sleep(0.3)  # so that it finds a meeting that is not over
        step(module, optimizer, member, 10 * number)
        if rank == 2 and number == SAVED:
            torch.save(training.state_dict(), file)
            os.kill(os.getpid(), signal.SIGKILL)
        before = arrays(training)
        g = np.random.default_rng([member, 10 * number + 1]).standard_normal(SIZE)
        change = before[1] - (before[0] - g)
        step(module, optimizer, member, 10 * number + 1)
        after = arrays(training)
        record(
            store, training.rounds, member, change=change, before=before[2], after=after[2],
            members=training.members, shared=after[1], number=[number],
        )  # fmt: skip


def all_start_again():
    """All workers stop in the middle of a round, and continue from their states."""
    member = int(os.environ["RANK"])
    store = store_of(member)
    for number, method in enumerate(
        (local.DiLoCo(2), local.SparseLoCo(2, k=16, chunk=256))
    ):
        names = [f"{number}/{part}" for part in ("whole", "first", "second", "third")]
        whole, first, second, third = (dist.PrefixStore(name, store) for name in names)
        expected, _ = run(member, whole, method, 6)
        _, states = run(member, first, method, SAVED, steps=1)
        continued, _ = run(member, second, method, 6, state=states[-1])
        same(continued, expected)
        # One worker has an old state only: it has exchanged since.
        old = states[1] if member == 2 else states[-1]
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            end, _ = run(member, third, method, 6, state=old)
        text = " ".join(str(w.message) for w in caught)
        expects = "worker 2 must be of round 3, in which it exchanged last, got round 1"
        assert (expects in text) == (member == 2), text
        flat = torch.cat([p.flatten() for p in end.values()])
        store.set(f"{number}/end/{member}", flat.numpy().tobytes())
        ends = [store.get(f"{number}/end/{m}") for m in range(3)]
        assert ends[0] == ends[1] == ends[2]
    store.set(f"ended/{member}", "")
    if member == 0:
        store.wait(["ended/1", "ended/2"])


def run(member, store, method, rounds, steps=0, state=None):
    """Train up to a round and a number of steps; return parameters and the states by round."""
    module = mlp()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    if state is not None:  # a model that was loaded before is not the shared one
        with torch.no_grad():
            module[0].weight.add_(1)
    quorum = Quorum(store, member, workers=3, minimum=3, grace=60, timeout=100)
    training = ElasticTraining(module, optimizer, method, quorum)
    if state is not None:
        training.load_state_dict(state)
        assert training.rounds == int(state["state"]["worker/rounds"])
        assert training.steps == int(state["state"]["step"])
    states: list[Any] = []
    while training.rounds < rounds:
        if training.rounds == len(states):
            states.append(training.state_dict())
        trained(module, member, optimizer, [training.steps])
    for _ in range(steps):
        trained(module, member, optimizer, [training.steps])
    states.append(training.state_dict())
    training.close()
    return parameters(module), states


def settings_differ():
    """Workers that would repeat an exchange forever."""
    member = int(os.environ["RANK"])
    store = store_of(member)
    module, optimizer = vector()
    quorum = Quorum(store, member, workers=2, minimum=2, grace=10, timeout=60)
    method = local.DiLoCo(2, outer_lr=0.5 + member / 10)
    with ElasticTraining(module, optimizer, method, quorum):
        step(module, optimizer, member, 0)
        try:
            step(module, optimizer, member, 1)
        finally:
            store.set(f"ended/{member}", "")
            if member == 0:  # its process has the store
                store.wait(["ended/1"])


def saves_arrays(folder):
    """A single worker on arrays, from a file of NumPy; the names have slashes."""
    store, file = store_of(0), folder / "worker.npz"
    ends = []
    for number, stops in enumerate((None, 3)):
        names = (f"{number}/{part}" for part in range(2))
        parts = [dist.PrefixStore(name, store) for name in names]
        rounds = ElasticRounds(SPARSE, Quorum(parts[0], 0, 1))
        x, state = rounds.join({"x": np.zeros(SIZE)})
        for count in range(8):
            if count == stops:
                np.savez(file, **rounds.save(x, state))  # type: ignore[arg-type]
                rounds.close()
                rounds = ElasticRounds(SPARSE, Quorum(parts[1], 0, 1))
                x, state = rounds.join({"x": np.ones(SIZE)})
                with np.load(file) as saved:
                    x, state = rounds.resume(x, state, saved)
            draw = np.random.default_rng(count).standard_normal(SIZE)
            x, state = rounds.step({"x": x["x"] - draw}, state)
        assert rounds.rounds == 4
        ends.append((x["x"], state["shared"], state[RESIDUAL]))
        rounds.close()
    for whole, continued in zip(*ends, strict=True):
        np.testing.assert_array_equal(whole, continued)


def refusals():
    """States that do not fit, on a single worker."""
    store = store_of(0)
    module, optimizer = vector()
    other, its_optimizer = vector()
    quorums = [Quorum(dist.PrefixStore(str(m), store), m, 1) for m in range(2)]
    with (
        ElasticTraining(module, optimizer, SPARSE, quorums[0]) as training,
        ElasticTraining(other, its_optimizer, SPARSE, quorums[1]) as second,
    ):
        step(module, optimizer, 0, 0)
        step(other, its_optimizer, 0, 0)
        state = training.state_dict()
        with pytest.raises(ValueError, match=r"saved must be of worker 1, got 0; save one"):
            second.load_state_dict(state)
        with pytest.raises(ValueError, match=r"got one without method, state, version"):
            training.load_state_dict({})
        with pytest.raises(ValueError, match=r"version of the state must be 1, got 9"):
            training.load_state_dict({**state, "version": 9})
        with pytest.raises(ValueError, match=r"method of the state must be SparseLoCo\("):
            training.load_state_dict({**state, "method": "DiLoCo(sync_every=2)"})
        with pytest.raises(
            ValueError, match=r"saved must be a result of save\(\), got the"
        ):
            training.load_state_dict({**state, "state": {}})
        optimizer.add_param_group({"params": [torch.nn.Parameter(torch.zeros(2))]})
        with pytest.raises(
            RuntimeError, match="got some that were added later; call close"
        ):
            step(module, optimizer, 0, 1)
