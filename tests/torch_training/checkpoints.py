"""What each rank does in test_checkpoint.py."""

import io
import os
import signal

import numpy as np
import torch
from torch import distributed as dist
from torch.distributed import checkpoint

from sparcml import DGC, NUQSGD, QSGD, Compressed, Dense, PowerSGD, RandomK, Threshold, TopK
from sparcml.torch import Stateful
from tests import rosters
from tests.aggregate import gradients

from .hooking import check_nothing_is_lost, raises
from .models import Known, compressed, group, loss_of, same, train, weights

RESUMED = [
    Compressed(TopK(0.05), QSGD(bits=4), dense_below=100),
    Compressed(quantize=NUQSGD(bits=4), error_feedback=False, dense_below=100),
    Compressed(RandomK(0.05), dense_below=100),
    Compressed(Threshold(ratio=0.05), dense_below=100),
    DGC(0.05, warm_up=6, dense_below=100),
    PowerSGD(rank=2),
]


def through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


def resume_bit_for_bit():
    """The second half in another model, from a checkpoint, and in one go."""
    with group() as (rank, _):
        for method in RESUMED:
            model, handle = compressed(method)
            train(model, rank, range(3), lr=0.01)
            shared = handle.state_dict()
            kept = through_a_file([model.state_dict(), shared])
            whole = train(model, rank, range(3, 6), lr=0.01)
            same(shared["state"], kept[1]["state"])  # later steps have not changed it
            model, handle = compressed(method)
            model.load_state_dict(kept[0])
            handle.load_state_dict(kept[1])
            same(train(model, rank, range(3, 6), lr=0.01), whole)


def killed_in_mid_step(folder):
    """Rank 1 is no more when the last gradient of a step comes; others were sent by then."""
    with group() as (rank, _):
        model, handle = compressed(RESUMED[0])
        train(model, rank, range(3), lr=0.01)
        torch.save([model.state_dict(), handle.state_dict()], f"{folder}/{rank}.pt")
        if rank == 1:
            first = next(model.parameters())
            first.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        train(model, rank, range(3, 6), lr=0.01)


def go_on(folder):
    """From what the killed job has left, as if nothing had happened."""
    with group() as (rank, _):
        model, _ = compressed(RESUMED[0])
        whole = train(model, rank, range(6), lr=0.01)
        model, handle = compressed(RESUMED[0])
        weights_then, state = torch.load(f"{folder}/{rank}.pt", weights_only=True)
        model.load_state_dict(weights_then)
        handle.load_state_dict(state)
        same(train(model, rank, range(3, 6), lr=0.01), whole)


def by_distributed_checkpoint(folder):
    """Each rank finds its own state again, whatever the handle has done before."""
    with group() as (rank, _):
        model, handle = compressed(RESUMED[0])
        train(model, rank, range(3), lr=0.01)
        for consolidate in (False, True):
            where = f"{folder}/{consolidate}"
            mine = handle.state_dict(consolidate=consolidate)
            kept = {"compression": Stateful(handle, consolidate=consolidate)}
            checkpoint.save(kept, checkpoint_id=where)
            _, fresh = compressed(RESUMED[0])
            found = {"compression": Stateful(fresh, consolidate=consolidate)}
            checkpoint.load(found, checkpoint_id=where)
            assert fresh.steps == 3
            same(fresh.state_dict()["state"], mine["state"])


def save(folder):
    """A job of some ranks, which ends."""
    with group() as (rank, _):
        model, handle = compressed(rosters.CONSERVING["topk"], Known())
        train(model, rank, range(3), lr=1.0)
        torch.save(handle.state_dict(), f"{folder}/{rank}.pt")
        state = [model.module.state_dict(), handle.state_dict(consolidate=True)]
        if rank == 0:
            torch.save(state, f"{folder}/all.pt")


def load_elsewhere(folder, saved_by):
    """Another number of ranks: nothing is lost."""
    with group() as (rank, ranks):
        module, state = torch.load(f"{folder}/all.pt", weights_only=True)
        model, handle = compressed(rosters.CONSERVING["sparcml"], Known())
        model.module.load_state_dict(module)
        handle.load_state_dict(state)
        assert handle.state_dict()["step"] == 3
        handle.change(Dense())  # pays all that is owed
        train(model, rank, range(3, 4), lr=1.0)
        assert not handle.state_dict()["state"]
        new = gradients.gradient
        for n, p in weights(model).items():
            due = gradients.mean_gradients(saved_by, 3)[n] + np.mean(
                [new(r, 3)[n] for r in range(ranks)], 0
            )
            np.testing.assert_allclose(-p, due, atol=2e-4)
        own = torch.load(f"{folder}/{rank % saved_by}.pt", weights_only=True)
        raises(
            rf"must be {ranks}, got {saved_by}.*consolid",
            handle.load_state_dict,
            own,
        )


def changed_in_mid_run():
    """One step with each of many methods, and what is owed goes from one to the next."""
    with group() as (rank, ranks):
        order = ["topk", "qsgd", "powersgd", "onebit", "dense", "dgc_plain", "gtopk"]
        model, handle = compressed(rosters.CONSERVING[order[0]], Known())
        for step, name in enumerate(order):
            handle.change(rosters.CONSERVING[name])
            train(model, rank, range(step, step + 1), lr=1.0)
        rest = handle.state_dict(consolidate=True)["state"]
        applied = {n: -p for n, p in weights(model).items()}
        check_nothing_is_lost(applied, rest, ranks, len(order))
        raises("run one step with Dense", handle.change, rosters.DISCARDING["vote"])


def refusals():
    with group() as (rank, ranks):
        method = rosters.CONSERVING["topk"]
        model, handle = compressed(method, Known())
        train(model, rank, range(1))
        mine = handle.state_dict()
        everyones = [None] * ranks
        dist.all_gather_object(everyones, mine)
        other = everyones[1 - rank]
        raises(f"state of rank {rank} expected, got that of", handle.load_state_dict, other)
        raises(
            "result of a handle's state_dict", handle.load_state_dict, model.state_dict()
        )
        _, elsewhere = compressed(method)
        raises("of another model", elsewhere.load_state_dict, mine)
        empty = compressed(Compressed(quantize=QSGD(4), error_feedback=False))[
            1
        ].state_dict()
        assert not empty["state"]
        raises("of another model: its parameter", handle.load_state_dict, empty)
        small = {**mine, "state": {"residual/weight": torch.zeros(3)}}
        raises("has 3 values and fits no parameter", handle.load_state_dict, small)
        raises("must be a result of state_dict", handle.load_state_dict, None)
        train(model, rank, range(1, 2))  # none of them has done any harm


def scaled():
    """With a GradScaler: the same as without, and a step that overflows leaves no trace."""
    with group() as (rank, _ranks):
        overflowing(rank, Compressed(TopK(0.05), dense_below=100))
        overflowing(rank, Compressed(TopK(0.05), dense_below=100), unused=True)
        overflowing(rank, Dense())


def overflowing(rank, method, *, unused=False):
    options = {"find_unused_parameters": unused}
    plain, theirs = compressed(method, options=options)
    train(plain, rank, lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    model, ours = compressed(method, options=options, scaler=scaler)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(4):
        for spoiled in (True, False):
            before = ours.state_dict(), weights(model)
            optimizer.zero_grad()
            loss = loss_of(model, rank, step)
            if spoiled and rank == 1:
                loss = loss * torch.inf
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            if spoiled:
                same(weights(model), before[1])
                same(ours.state_dict()["state"], before[0]["state"])
                assert ours.state_dict()["step"] == step
    assert scaler.get_scale() == 2.0**6
    assert (ours.stats.steps, ours.stats.skipped) == (4, 4)
    same(weights(model), weights(plain), rtol=1e-5, atol=1e-7)
    same(ours.state_dict()["state"], theirs.state_dict()["state"], rtol=1e-4, atol=1e-7)
