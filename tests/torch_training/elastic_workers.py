"""What each worker does in test_elastic_rounds.py."""

import json
import os
import signal
import time
from datetime import timedelta

import numpy as np
import torch
from torch import distributed as dist

from sparcml import kernels, local
from sparcml.local.elastic import ElasticRounds
from sparcml.local.quorum import Quorum
from sparcml.torch import ElasticTraining

from .models import mlp, same
from .optimizing import parameters, trained

SIZE, ROUNDS, GRACE = 300, 20, 4.0


def store_of(member):
    return dist.TCPStore(
        os.environ["MASTER_ADDR"],
        int(os.environ["MASTER_PORT"]),
        is_master=member == 0,
        wait_for_workers=False,
    )


def record(store, rounds, member, **entries):
    """Save what a worker did in a round, for the worker that checks."""
    arrays = {k: np.asarray(v, np.float64).tolist() for k, v in entries.items()}
    store.set(f"record/{rounds}/{member}", json.dumps(arrays))


def rounds_with_a_death():
    """Worker 1 dies in round 4, worker 2 is late in round 5, and worker 3 joins meanwhile."""
    member = int(os.environ["RANK"])
    store = store_of(member)
    # Nothing decays, and the mean is over all members:
    # what is sent and kept is what the workers have changed.
    method = local.SparseLoCo(2, k=5, chunk=50, decay=1, mean="all", quantize=None)
    quorum = Quorum(store, member, workers=3, minimum=2, grace=GRACE, timeout=60)
    rounds = ElasticRounds(method, quorum)
    start = np.zeros(SIZE)
    store.set(f"started/{member}", "")
    store.wait(["record/2/0"] if member == 3 else [f"started/{m}" for m in range(4)])
    store.set(f"joining/{member}", "")
    x, state = rounds.join(start + member)
    assert member == 3 or not x.any()  # the model of worker 0
    if member == 3:  # it has sent nothing in this round
        record(
            store, rounds.rounds, member, change=start, before=start, after=start,
            members=rounds.members, shared=state["shared"], number=[-1],
        )  # fmt: skip
    while rounds.rounds < ROUNDS:
        before, residual = state["shared"], state.get("aggregate/0/residual", start)
        number = rounds.rounds
        waits(store, member, number)
        if member == 1 and number == 3:
            dies_in_the_exchange(rounds)
        rng = np.random.default_rng([member, number])
        x, state = rounds.step(x, state)
        x = x - rng.standard_normal(SIZE)
        change = before - x
        x, state = rounds.step(x, state)
        kept = state.get("aggregate/0/residual", start)
        record(
            store, rounds.rounds, member, change=change, before=residual, after=kept,
            members=rounds.members, shared=state["shared"], number=[number],
        )  # fmt: skip
    rounds.close()
    if member == 0:
        checks(store)
    models_with_a_leaver(member, dist.PrefixStore("models", store))
    store.set(f"ended/{member}", "")
    if member == 0:  # its process has the store
        store.wait(["ended/2", "ended/3"])


def models_with_a_leaver(member, store):
    """Three workers train a model; worker 3 stops after two rounds without a word."""
    quorum = Quorum(store, member, workers=3, minimum=2, grace=GRACE, timeout=60)
    module = mlp()
    with torch.no_grad():
        module[0].weight.add_(member)  # the others receive that of worker 0
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    method = local.DiLoCo(2)
    with ElasticTraining(module, optimizer, method, quorum) as training:
        same(parameters(module), parameters(mlp()))
        while training.rounds < (2 if member == 3 else 4):
            before = parameters(module)
            trained(module, member, optimizer, [training.steps])
            assert any(not torch.equal(before[n], p) for n, p in parameters(module).items())
        same(parameters(training.shared()), parameters(module))
        stats = training.stats
        assert (stats.steps, stats.exchanges) == (2 * training.rounds, training.rounds)
        assert stats.bytes > 0
        trained(module, member, optimizer, [99])  # not exchanged, so it is dropped
    flat = torch.cat([p.flatten() for p in parameters(module).values()])
    store.set(f"checksum/{training.rounds}/{member}", str(flat.double().sum().item()))
    if member != 3:
        assert training.members == (0, 2)
        sums = [store.get(f"checksum/4/{m}") for m in (0, 2)]
        assert sums[0] == sums[1]


def waits(store, member, number):
    """Make worker 2 late in round 5; the others wait for it and the new one in round 8."""
    if member == 2 and number == 4:
        store.wait(["record/5/0"])
        store.set("back", "")
    if member != 2 and number == 7:
        store.wait(["back", "joining/3"])
    if number >= 7:
        time.sleep(0.1)


def dies_in_the_exchange(rounds):
    """Kill this process after the meeting: the others are in the exchange with it."""
    meet = rounds.quorum.meet

    def dying(completed):
        meet(completed)
        os.kill(os.getpid(), signal.SIGKILL)

    rounds.quorum.meet = dying


def read(store, number, member):
    """Return what a worker recorded; it may still be writing the last one."""
    store.wait([f"record/{number}/{member}"], timedelta(seconds=10))
    return json.loads(store.get(f"record/{number}/{member}"))


def conserved(store, size):
    """All members of a round have the same bits, and no change or residual is lost.

    Return the members of each round.
    """
    previous, members = np.zeros(size), {}
    for number in range(1, ROUNDS + 1):
        members[number] = [int(m) for m in read(store, number, 0)["members"]]
        records = [read(store, number, m) for m in members[number]]
        shared = [np.array(r["shared"]) for r in records]
        assert len({kernels.crc32c(x.view(np.uint8)) for x in shared}) == 1, number
        # Those that were up to date exchanged: they sent change + before - after.
        sent = [
            np.array(r["change"]) + r["before"] - np.array(r["after"])
            for r in records
            if r["number"] == [number - 1]
        ]
        np.testing.assert_allclose(previous - shared[0], np.mean(sent, axis=0), atol=1e-9)
        previous = shared[0]
    return members


def checks(store):
    members = conserved(store, SIZE)
    assert members[1] == [0, 1, 2], members
    assert 1 in members[3], members  # worker 3 may have joined in this round
    assert all(1 not in members[n] for n in range(4, ROUNDS + 1)), members  # it is dead
    assert 2 not in members[5], members  # it is late
    assert members[ROUNDS] == [0, 2, 3], members


def dies_between_steps():
    """Worker 2 is killed after the first of two inner steps of its third round.

    The others complete that round after the grace period. If they waited for anything else, such
    as the quorum's timeout, this would not end in time.
    """
    member = int(os.environ["RANK"])
    store = store_of(member)
    quorum = Quorum(store, member, workers=3, minimum=2, grace=1.0, timeout=3600)
    rounds = ElasticRounds(local.DiLoCo(2), quorum)
    x, state = rounds.join(np.zeros(SIZE))
    seen = []
    while rounds.rounds < 5:
        for _ in range(2):
            x, state = rounds.step(x - (member + 1), state)
            if member == 2 and rounds.rounds == 2:
                os.kill(os.getpid(), signal.SIGKILL)
        seen.append(rounds.members)
    rounds.close()
    assert seen == [(0, 1, 2)] * 2 + [(0, 1)] * 3, seen
    crc = str(kernels.crc32c(state["shared"].view(np.uint8)))
    store.set(f"end/{member}", crc)
    assert store.get(f"end/{1 - member}").decode() == crc
    store.set(f"ended/{member}", "")
    if member == 0:  # its process has the store
        store.wait(["ended/1"])
