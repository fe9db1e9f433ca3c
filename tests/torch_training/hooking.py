"""What each rank does in test_hook.py."""

import contextlib
import os
import time
import warnings

import numpy as np
import pytest
import torch
from torch import distributed as dist

import sparcml
from sparcml import DGC, Compressed, Dense, PowerSGD, TopK
from tests import rosters
from tests.aggregate import gradients
from tests.waiting import BUSY_SECONDS, hold_python

from .models import (
    STEPS,
    Known,
    compressed,
    ddp,
    group,
    known,
    loss_of,
    mlp,
    same,
    train,
    weights,
)

TOPK = Compressed(TopK(0.05))
TOPK_SMALL = Compressed(TopK(0.05), dense_below=100)


def dense_is_plain_ddp():
    with group() as (rank, _):
        plain = train(ddp(), rank)
        for view in (False, True):
            model, _ = compressed(Dense(), options={"gradient_as_bucket_view": view})
            same(train(model, rank), plain)
        model, handle = compressed(Compressed(TopK(1.0)))
        same(train(model, rank), plain, rtol=1e-5, atol=1e-7)
        handle.close()


def every_method_conserves():
    """Law 4, and the same weights on all ranks, for all methods there are."""
    with group() as (rank, ranks):
        for name, method in rosters.METHODS.items():
            if method.returns_update:  # these need Adam: adaptive.py
                continue
            model, handle = compressed(method, Known())
            train(model, rank, lr=1.0)
            applied = {n: -p for n, p in weights(model).items()}
            for n, p in applied.items():
                everyones = [torch.empty_like(p) for _ in range(ranks)]
                dist.all_gather(everyones, p)
                assert all(torch.equal(p, other) for other in everyones), (name, n)
            if name in rosters.CONSERVING:
                rest = handle.state_dict(consolidate=True)["state"]
                check_nothing_is_lost(applied, rest, ranks, STEPS)
            handle.close()


def check_nothing_is_lost(applied, rest, ranks, steps):
    for n, due in gradients.mean_gradients(ranks, steps).items():
        owed = rest.get(f"residual/{n}", torch.zeros(1)).expand(due.size).reshape(due.shape)
        np.testing.assert_allclose(applied[n] + owed, due, atol=2e-4, rtol=0)


def other_kinds_of_models():
    with group() as (rank, ranks):
        accumulating(rank)
        shared_and_unused(rank)
        unused_by_all(rank, ranks)
        nan_leaves(rank)
        static(rank)
        half_precision(rank, ranks)
        compiled(rank)
        uneven(rank)


def accumulating(rank):
    """Gradients of steps under no_sync are in the one that is sent."""
    results = []
    for method in (None, Compressed(TopK(1.0))):
        model = ddp()
        if method is not None:
            sparcml.torch.compress(model, method)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(4):
            even = step % 2 == 0
            with model.no_sync() if even else contextlib.nullcontext():
                loss_of(model, rank, step).backward()
            if not even:
                optimizer.step()
                optimizer.zero_grad()
        results.append(weights(model))
    same(*results, rtol=1e-5, atol=1e-7)


class Odd(torch.nn.Module):  # type: ignore[misc]
    """One weight used twice, one in odd steps only, one never."""

    def __init__(self):
        super().__init__()
        self.a = torch.nn.Linear(20, 120)
        self.b = torch.nn.Linear(120, 120)
        self.c = self.b
        self.sometimes = torch.nn.Linear(120, 120)
        self.never = torch.nn.Linear(120, 120)
        self.out = torch.nn.Linear(120, 5)
        self.steps = 0

    def forward(self, x):
        self.steps += 1
        x = self.c(self.b(self.a(x)))
        return self.out(self.sometimes(x) if self.steps % 2 else x)


def shared_and_unused(rank):
    results = []
    for method in (None, Compressed(TopK(1.0))):
        torch.manual_seed(1)
        model = ddp(Odd(), find_unused_parameters=True)
        if method is not None:
            sparcml.torch.compress(model, method)
        train(model, rank, lr=0.01)
        assert model.module.never.weight.grad is None
        results.append(weights(model))
    same(*results, rtol=1e-4, atol=1e-6)


class Sometimes(Known):
    """No rank uses its largest weight in odd steps."""

    def forward(self, gradients):
        step = gradients.pop("step")
        used = [
            (n, p) for n, p in self.named_parameters() if n != "weight" or step % 2 == 0
        ]
        return sum((p * gradients[n]).sum() for n, p in used)


def unused_by_all(rank, ranks):
    """What DDP does not hand out stays owed."""
    model, handle = compressed(
        TOPK_SMALL, Sometimes(), options={"find_unused_parameters": True}
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    for step in range(STEPS):
        optimizer.zero_grad()
        model({**known(rank, step), "step": step}).backward()
        assert (model.module.weight.grad is None) == (step % 2 == 1)
        optimizer.step()
    rest = handle.state_dict(consolidate=True)["state"]["residual/weight"]
    due = (
        sum(gradients.gradient(r, s)["weight"] for r in range(ranks) for s in (0, 2))
        / ranks
    )
    applied = -weights(model)["weight"] + rest.reshape(due.shape)
    np.testing.assert_allclose(applied, due, atol=2e-4)


def nan_leaves(rank):
    """A NaN that is propagated is in the mean of its step, and in no later one."""
    method = Compressed(TopK(0.05), dense_below=100, nonfinite="propagate")
    model, handle = compressed(method, Known(), options={"find_unused_parameters": True})
    for step in range(STEPS):
        own = known(rank, step)
        if (rank, step) == (1, 1):
            own["weight"].view(-1)[0] = torch.nan
        model.zero_grad()
        model(own).backward()
        nans = model.module.weight.grad.isnan().view(-1)
        assert nans.sum() == nans[0] == (step == 1)
        assert handle.state_dict()["state"]["residual/weight"].isfinite().all()


def static(rank):
    plain = train(ddp(), rank)
    model, _ = compressed(Compressed(TopK(1.0)), options={"static_graph": True})
    same(train(model, rank), plain, rtol=1e-5, atol=1e-7)


def half_precision(rank, ranks):
    """Sent as float32, and rounded once."""
    for method in (Dense(), TOPK_SMALL):
        model, handle = compressed(method, Known(torch.bfloat16))
        train(model, rank, lr=1.0)
        assert model.module.weight.grad.dtype is torch.bfloat16
        state = handle.state_dict()["state"]
        assert bool(state) == (method is TOPK_SMALL)
        assert all(array.dtype is torch.float32 for array in state.values())


def compiled(rank):
    plain = train(ddp(), rank)
    model = torch.nn.parallel.DistributedDataParallel(mlp())  # dynamo wants it so
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast = torch.compile(model, backend="aot_eager")
        sparcml.torch.compress(fast, Compressed(TopK(1.0)))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(fast, rank, step).backward()
            optimizer.step()
    same(weights(model), plain, rtol=1e-4, atol=1e-6)


def uneven(rank):
    """Ranks with fewer batches join in with zeros."""
    model, _ = compressed(TOPK)
    with model.join():
        train(model, rank, range(2 + rank))
    everyones = [None] * dist.get_world_size()
    dist.all_gather_object(everyones, float(model.module[0].weight.sum()))
    assert len(set(everyones)) == 1


def rules():
    """What is left alone is exact, and what is clipped is small."""
    with group() as (rank, ranks):
        small = DGC(0.01, momentum=0.0, dense_below=100)
        for method in (TOPK_SMALL, small, PowerSGD(), sparcml.MajorityVote()):
            model, handle = compressed(method, Known(), leave="wei*")
            train(model, rank, range(1), lr=1.0)
            due = gradients.mean_gradients(ranks, 1)["weight"]
            np.testing.assert_allclose(-weights(model)["weight"], due, atol=1e-5)
            assert "residual/weight" not in handle.state_dict()["state"]
        model, handle = compressed(TOPK, Known(), clip_each=0.5)
        train(model, rank, range(1), lr=1.0)
        assert all(p.norm() <= 0.5 + 1e-5 for p in weights(model).values())
        model, handle = compressed(Compressed(), Known(), clip=1.0)
        first = torch.cat([p.reshape(-1) for p in train(model, rank, range(1)).values()])
        assert handle.state_dict()["norm"] > 10
        before = weights(model)
        after = train(model, rank, range(1, 2), lr=0.1)
        moved = torch.cat([(after[n] - before[n]).reshape(-1) for n in after])
        assert moved.norm() < 0.2 * first.norm()


def refusals():
    with group():
        model, _ = compressed(Dense())
        raises("has a communication hook already", sparcml.torch.compress, model, TOPK)
        raises("must be a torch.nn.parallel.Dist", sparcml.torch.compress, mlp(), TOPK)
        raises("compress: method must be a method such", compressed, "topk")
        raises(
            r"must match a parameter, got 'head\.\*'", compressed, TOPK, leave=["head.*"]
        )
        raises("clip: limit must be positive", compressed, TOPK, clip=0.0)
        raises("'auto', which may leave DDP as it is", compressed, "auto", clip=1.0)
        measuring, _ = compressed("auto")
        raises("has a communication hook already", sparcml.torch.compress, measuring, TOPK)
        closed, handle = compressed(TOPK)
        train(closed, 0, range(1))
        handle.close()
        raises("handle of this model is closed", train, closed, 0, range(1))
        raises("handle of this model is closed", handle.state_dict)
        elsewhere = ddp()
        elsewhere.module[0].to("meta")
        raises("got 'meta'", sparcml.torch.compress, elsewhere, TOPK)


def raises(words, call, *arguments, **options):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=words):
        call(*arguments, **options)


def nan_on_rank_1(method):
    with group() as (rank, _):
        model, _ = compressed(method)
        train(model, rank)
        if rank == 1:
            model.module[2].weight.register_hook(
                lambda g: g.index_fill(0, torch.tensor(0), torch.nan)
            )
        with contextlib.suppress(Exception):
            train(model, rank)
        train(model, rank)  # says the same again


def fails_in_mid_step(method, number):
    with group() as (rank, _):
        model, _ = compressed(method)
        train(model, rank)
        if rank == 1:
            model.module[0].weight.register_hook(lambda g: os.kill(os.getpid(), number))
        train(model, rank)


def evaluates_on_rank_0():
    with group() as (rank, _):
        for method in (Dense(), TOPK):
            model, handle = compressed(method)
            for pause in (time.sleep, hold_python):
                train(model, rank)
                if rank == 0:
                    pause(BUSY_SECONDS)
            train(model, rank)
            handle.close()


def one_rank_without_compress():
    """Rank 1 waits until the others have given up."""
    with group() as (rank, _):
        model = ddp()
        store = dist.distributed_c10d._get_default_store()
        if rank == 1:
            store.wait(["gave up 0", "gave up 2"])
            return
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                sparcml.torch.compress(model, TOPK)
            finally:
                store.set(f"gave up {rank}", "")
                words = [str(w.message) for w in caught]
                assert any("rank 1 of 3 has not called compress for" in w for w in words)


def other_arguments(function):
    """Rank 1 passes another method, then another limit."""
    with group() as (rank, _):
        different = Compressed(TopK(0.01)) if rank == 1 else TOPK
        clip = 1.0 if rank == 1 else None
        for method, rules, name in (
            (different, {}, "method"),
            (TOPK, {"clip": clip}, "clip"),
        ):
            model = mlp() if function == "wrap" else ddp()
            words = f"{function}: rank 0 has {name}=.*but rank 1 has {name}=.*(0.01|1.0)"
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            target = optimizer if function == "wrap" else model
            with pytest.raises(sparcml.MismatchError, match=words):
                getattr(sparcml.torch, function)(target, method, **rules)
        model = mlp() if function == "wrap" else ddp()
        target = torch.optim.SGD(model.parameters(), 0.1) if function == "wrap" else model
        error = ValueError if rank == 1 else sparcml.MismatchError
        words = "nope" if rank == 1 else f"{function}: rank 1 raised ValueError: .*nope"
        with pytest.raises(error, match=words):
            getattr(sparcml.torch, function)(
                target, TOPK, leave=["nope"] if rank == 1 else []
            )
        with pytest.raises(TypeError, match="change: method must be a method such as"):
            compressed(TOPK)[1].change(3)


def consolidated_on_rank_1_only():
    with group() as (rank, _):
        model, handle = compressed(TOPK_SMALL)
        train(model, rank)
        if rank == 1:
            handle.state_dict(consolidate=True)
        train(model, rank)
