"""What each rank does in test_adaptive.py: methods that know the optimizer."""

import copy
import math
import warnings
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed as dist

from sparcml import (
    DGC,
    QSGD,
    Adaptive,
    Compressed,
    Dense,
    Half,
    OneBit,
    OneBitAdam,
    PowerSGD,
    TernGrad,
    TopK,
    TopKAdam,
)
from sparcml.aggregate.fence import LIMIT, fenced_names
from sparcml.torch import compress, recommended, wrap
from tests.aggregate import gradients

from .hooking import raises
from .models import Known, batch, ddp, group, known, loss_of, mlp, same, weights

STEPS, FREEZE, LR = 8, 3, 0.01
METHODS = (
    TopKAdam(TopK(0.05), warm_up=FREEZE, dense_below=1000),
    TopKAdam(TopK(0.05), QSGD(8), warm_up=FREEZE, dense_below=1000),
    OneBitAdam(warm_up=FREEZE, dense_below=1000),
)


def adamw(model, lr=LR):
    return torch.optim.AdamW(model.parameters(), lr=lr, weight_decay=0.1)


def run(model, optimizer, rank, steps=range(STEPS), clip=None, decay=False):
    for step in steps:
        if decay:
            optimizer.param_groups[0]["lr"] = LR / (1 + step)
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()


def check_replicas(model):
    for name, p in model.named_parameters():
        parts = [torch.empty_like(p.detach()) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, p.detach())
        for part in parts:
            assert torch.equal(part, parts[0]), name


def as_adamw_until_the_freeze():
    """Phase 1 without a quantizer is plain AdamW; phase 2 is not, but ranks stay equal."""
    with group() as (rank, _):
        plain = ddp()
        run(plain, adamw(plain), rank)
        for kind in (
            TopKAdam(first=None, warm_up=100),
            OneBitAdam(first=None, warm_up=100),
        ):
            model = ddp()
            optimizer = adamw(model)
            compress(model, kind, optimizer=optimizer)
            run(model, optimizer, rank)
            same(weights(model), weights(plain), rtol=1e-5, atol=1e-6)
        for method in METHODS:
            for clip in (None, 0.1):
                model = ddp()
                optimizer = adamw(model)
                handle = compress(model, method, optimizer=optimizer)
                run(model, optimizer, rank, clip=clip)
                check_replicas(model)
                assert all(p.grad is not None for p in model.parameters())
                assert all(int(s["step"]) == STEPS for s in optimizer.state.values())
                assert handle.state_dict()["state"]["residual/2.weight"].any()
                handle.close()


def as_with_wrap():
    """The same weights with and without DDP."""
    with group() as (rank, _):
        for lr in (LR, 0.1 * LR):
            results, method = [], replace(METHODS[0], first=None)
            for wrapped in (False, True):
                model = mlp() if wrapped else ddp()
                optimizer = adamw(model, lr)
                if wrapped:
                    wrap(optimizer, method, model=model)
                else:
                    compress(model, method, optimizer=optimizer)
                run(model, optimizer, rank)
                results.append(dict(getattr(model, "module", model).named_parameters()))
            same(*results, rtol=1e-4, atol=1e-5)


def sending_all_updates():
    """TopK 100 % after the freeze is Adam with a frozen second moment."""
    with group() as (rank, ranks):
        model = ddp(Known())
        optimizer = torch.optim.AdamW(model.parameters(), lr=LR, weight_decay=0.0)
        method = TopKAdam(TopK(1.0), first=None, warm_up=FREEZE, dense_below=100)
        compress(model, method, optimizer=optimizer)
        run(model, optimizer, rank)
        m: Any = 0.0
        v, w = m, m
        for step in range(1, STEPS + 1):
            g = np.mean(
                [gradients.gradient(r, step - 1)["table"] for r in range(ranks)], axis=0
            ).astype(np.float64)
            m = 0.9 * m + 0.1 * g
            if step <= FREEZE:
                v = 0.999 * v + 0.001 * g * g
            unbiased = v / (1 - 0.999 ** min(step, FREEZE))
            if step > FREEZE:
                unbiased = np.maximum(unbiased, 0.01 * unbiased.mean())
            w = w - LR * m / (1 - 0.9**step) / (np.sqrt(unbiased) + 1e-8)
        np.testing.assert_allclose(weights(model)["table"], w, rtol=1e-4, atol=1e-6)


def resumed():
    """Both phases continue bit for bit from the states of the optimizer and the handle."""
    with group() as (rank, _):
        for method in METHODS:
            for stop in (2, FREEZE, 5):
                model = ddp()
                optimizer = adamw(model)
                handle = compress(model, method, optimizer=optimizer)
                run(model, optimizer, rank, range(stop), decay=True)
                saved = copy.deepcopy(
                    (model.module.state_dict(), optimizer.state_dict(), handle.state_dict())
                )
                run(model, optimizer, rank, range(stop, STEPS), decay=True)
                again = ddp()
                second = adamw(again)
                resuming = compress(again, method, optimizer=second)
                again.module.load_state_dict(saved[0])
                second.load_state_dict(saved[1])
                resuming.load_state_dict(saved[2])
                run(again, second, rank, range(stop, STEPS), decay=True)
                same(weights(again), weights(model))


def changed():
    """Another method takes over: equal moments on all ranks, and the residual."""
    with group() as (rank, _):
        model = ddp()
        optimizer = adamw(model)
        handle = compress(model, METHODS[0], optimizer=optimizer)
        run(model, optimizer, rank, range(6))
        before = handle.state_dict()["state"]
        assert before["residual/2.weight"].any()
        handle.change(Dense())
        moment = optimizer.state[model.module[2].weight]["exp_avg"]
        parts = [torch.empty_like(moment) for _ in range(2)]
        dist.all_gather(parts, moment)
        assert torch.equal(parts[0], parts[1])
        run(model, optimizer, rank, range(6, 8))
        check_replicas(model)
        handle.change(METHODS[0])
        run(model, optimizer, rank, range(8, 10))
        check_replicas(model)


def second_phase():
    """What scripts do with the optimizer after the freeze."""
    with group() as (rank, _):
        for method in (METHODS[0], METHODS[2]):
            with_closures(rank, method)
            left_for_plain_adamw(rank, method)
        with_unused_parameters(rank, METHODS[0])
        consolidated(rank, METHODS[0])


def attach(method, wrapped, module):
    """Return a model, its optimizer and the handle, with DDP or without."""
    unused = isinstance(module, Branches)
    model = module if wrapped else ddp(module, find_unused_parameters=unused)
    optimizer = adamw(model)
    if wrapped:
        return model, optimizer, wrap(optimizer, method, model=model)
    return model, optimizer, compress(model, method, optimizer=optimizer)


def with_closures(rank, method):
    """`optimizer.step(closure)` is the same as a backward pass and `optimizer.step()`."""
    for wrapped in (False, True):
        expected, optimizer, handle = attach(method, wrapped, mlp())
        run(expected, optimizer, rank)
        handle.close()
        model, optimizer, handle = attach(method, wrapped, mlp())
        for step in range(STEPS):

            def closure(model=model, optimizer=optimizer, step=step):
                optimizer.zero_grad()
                loss = loss_of(model, rank, step)
                loss.backward()
                return loss

            loss = optimizer.step(closure) if step % 2 else optimizer.step(closure=closure)
            assert loss > 0
        for p, q in zip(model.parameters(), expected.parameters(), strict=True):
            assert torch.equal(p, q)
        assert all(int(s["step"]) == STEPS for s in optimizer.state.values())
        handle.close()


class Branches(torch.nn.Module):  # type: ignore[misc]
    """Two layers, of which a batch uses one, and one that is never used after the freeze."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList(torch.nn.Linear(20, 60) for _ in range(3))

    def forward(self, x, used):
        return sum(self.layers[i](x) for i in used)


def with_unused_parameters(rank, method):
    """A rank that does not use a parameter sends zeros; what no rank uses does not move."""
    for wrapped in (False, True):
        model, optimizer, handle = attach(method, wrapped, Branches())
        layers = getattr(model, "module", model).layers
        for step in range(STEPS):
            used = (0, 1, 2) if step <= FREEZE else ((step + rank) % 2,)
            if step == FREEZE + 1:
                idle = [p.detach().clone() for p in layers[2].parameters()]
            optimizer.zero_grad()
            model(batch(rank, step)[0], used).square().mean().backward()
            optimizer.step()
        check_replicas(model)
        for p, q in zip(layers[2].parameters(), idle, strict=True):
            assert torch.equal(p, q)
            assert int(optimizer.state[p]["step"]) == FREEZE + 1
        handle.close()


def left_for_plain_adamw(rank, method):
    """The optimizer's second moment fits its step, so that steps of plain AdamW stay small."""
    model, optimizer, handle = attach(method, False, mlp())
    steps = 40
    run(model, optimizer, rank, range(steps - 1))
    last = length_of_step(model, optimizer, rank, steps - 1)
    p = model.module[2].weight
    v = optimizer.state[p]["exp_avg_sq"].double() / (1 - 0.999**steps)
    frozen = handle.state_dict()["state"]["denominator/2.weight"].reshape(p.shape)
    torch.testing.assert_close(v.sqrt() + 1e-8, frozen.double(), rtol=1e-5, atol=0)
    saved = copy.deepcopy((model.module.state_dict(), optimizer.state_dict()))
    handle.change(Dense())
    assert length_of_step(model, optimizer, rank, steps) < 3 * last
    check_replicas(model)
    handle.close()
    plain = ddp()
    optimizer = adamw(plain)
    plain.module.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    assert length_of_step(plain, optimizer, rank, steps) < 3 * last


def length_of_step(model, optimizer, rank, step):
    before = [p.detach().clone() for p in model.parameters()]
    run(model, optimizer, rank, [step])
    changes = [
        (p - q).square().sum() for p, q in zip(model.parameters(), before, strict=True)
    ]
    return math.sqrt(sum(map(float, changes)))


def consolidated(rank, method):
    """One state for any world size and method: counts of steps stay integers."""
    model, optimizer, handle = attach(method, False, mlp())
    run(model, optimizer, rank, range(5))
    saved = handle.state_dict(consolidate=True)
    count = saved["state"]["adam_step/2.weight"]
    assert count.dtype == torch.int64
    assert int(count) == 5
    mine = handle.state_dict()
    handle.load_state_dict(saved)
    run(model, optimizer, rank, range(5, STEPS))
    check_replicas(model)
    handle.close()
    for other in (Dense(), replace(method, warm_up=STEPS)):  # moments differ between ranks
        _, _, handle = attach(other, True, mlp())
        raises("then call handle.change", handle.load_state_dict, mine)
        handle.load_state_dict(saved)
        handle.close()


def fenced():
    """Layers beyond the fence get the finer quantizer; replicas stay equal."""
    with group() as (rank, _):
        for quantize in (OneBit(), TernGrad()):
            model = ddp()
            sgd = torch.optim.SGD(model.parameters(), lr=LR)
            coarse = Compressed(quantize=quantize, fence=2.0, dense_below=100)
            handle = compress(model, coarse)
            run(model, sgd, rank, range(3))
            check_replicas(model)
            names = ["0.weight", "2.weight", "4.weight"]
            assert sorted(fenced_names(handle.state_dict()["state"])) == names
            assert ", ".join(f"{n} 4" for n in names) in str(handle.explain())
            handle.change(quantize)
            assert handle.method == Compressed(quantize=quantize, fence=LIMIT)
            published = replace(coarse, fence=math.inf)
            handle.change(published)
            assert handle.method == published
            run(model, sgd, rank, range(3, 5))
            check_replicas(model)


def rates_are_followed():
    """Weights and pending updates are those of dense SGD at changing learning rates."""
    with group() as (rank, ranks):
        for kind in ("ddp", "wrap"):
            module = Known(torch.float64)
            model = ddp(module) if kind == "ddp" else module
            optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
            method = Compressed(TopK(0.02), dense_below=100)
            if kind == "ddp":
                handle = compress(model, method, optimizer=optimizer)
            else:
                handle = wrap(optimizer, method, model=model)
            expected = dict.fromkeys(gradients.SHAPES, 0.0)
            for step in range(STEPS):
                lr = 0.5 / (1 + step)
                optimizer.param_groups[0]["lr"] = lr
                optimizer.zero_grad()
                model(known(rank, step)).backward()
                optimizer.step()
                for r in range(ranks):
                    for n, g in gradients.gradient(r, step).items():
                        expected[n] = expected[n] - lr * g.astype(np.float64) / ranks
            residual = handle.state_dict(consolidate=True)["state"]
            for n, p in module.named_parameters():
                pending = residual.get(f"residual/{n}", torch.zeros(p.numel()))
                virtual = p.detach() - lr * pending.reshape(p.shape)
                np.testing.assert_allclose(virtual, expected[n], rtol=0, atol=1e-6)


def rates_that_rise_again():
    """Momentum of a residual that was sent at a low rate is not applied at a high one."""
    with group() as (rank, _):
        moved = []
        for method in (Dense(), Compressed(TopK(0.05), dense_below=100)):
            model = ddp()
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
            compress(model, method, optimizer=optimizer)
            for step, lr in enumerate((0.1, 0.1, 1e-3, 1e-5, 0.1)):
                optimizer.param_groups[0]["lr"] = lr
                before = [p.detach().clone() for p in model.parameters()]
                run(model, optimizer, rank, [step])
            pairs = zip(model.parameters(), before, strict=True)
            moved.append(max(float((p.detach() - b).abs().max()) for p, b in pairs))
            check_replicas(model)
        assert moved[1] < 10 * moved[0]


def recommendations():
    with group() as (rank, _):
        model = mlp()
        sgd = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
        method = recommended(sgd)
        assert isinstance(method, Adaptive)
        assert method.momentum == 0
        for other in (adamw(model), torch.optim.RMSprop(model.parameters())):
            method = recommended(other, steps=100)
            assert isinstance(method, Compressed)
            assert method.quantize == QSGD(3, bucket=512)
            assert method.sparsify is None
            finest = recommended(other, slow_link=True)
            assert isinstance(finest, Compressed)
            assert finest.quantize == QSGD(2, bucket=1024, coder="rice", reduced_bits=3)
            assert finest.small == QSGD(8, bucket=128)
        for optimizer_of in (adamw, lambda m: torch.optim.SGD(m.parameters(), lr=0.01)):
            model = ddp()
            optimizer = optimizer_of(model)
            handle = compress(model, "recommended", optimizer=optimizer)
            assert type(handle.method) is type(recommended(optimizer))
            run(model, optimizer, rank)
            check_replicas(model)
        refusals(rank)
        warned(rank)


def refusals(rank):
    del rank
    sgd = torch.optim.SGD(mlp().parameters(), lr=0.1)
    raises("optimizer must be a torch.optim.Adam", compress, ddp(), METHODS[0])
    raises(
        "optimizer must be a torch.optim.Adam", compress, ddp(), METHODS[0], optimizer=sgd
    )
    raises("optimizer must be the optimizer of the model", compress, ddp(), "recommended")
    raises("optimizer must have parameters of", compress, ddp(), QSGD(4), optimizer=sgd)
    raises("optimizer must be a torch.optim.Optimizer", recommended, "adam")
    raises("steps must be", recommended, sgd, steps=1.5)
    model = ddp()
    optimizer = adamw(model)
    raises("clip and clip_each", compress, model, METHODS[0], optimizer=optimizer, clip=1.0)
    scaler = torch.amp.GradScaler("cpu")
    raises("scaler must", compress, model, METHODS[0], optimizer=optimizer, scaler=scaler)
    optimizer.param_groups[0]["amsgrad"] = True
    raises("amsgrad", compress, model, METHODS[0], optimizer=optimizer)


@contextmanager
def silent():
    """Fail if something warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def warned(rank):
    def warns(words):
        """Expect a warning on rank 0, and only there."""
        return pytest.warns(UserWarning, match=words) if rank == 0 else silent()

    cases: list[tuple[Any, Any, str]] = [
        (
            Compressed(TopK(0.01)),
            adamw,
            "delays gradients, which loses accuracy under AdamW",
        ),
        (Compressed(quantize=OneBit()), adamw, "loses accuracy under AdamW"),
        (PowerSGD(), adamw, "loses accuracy under AdamW"),
        (METHODS[0], adamw, "loses accuracy under AdamW"),
        (DGC(), adamw, "contains momentum, and AdamW adds its own"),
        (
            DGC(),
            lambda m: torch.optim.SGD(m.parameters(), lr=0.1, momentum=0.9),
            "applied twice",
        ),
    ]
    for method, optimizer_of, words in cases:
        model = ddp()
        with warns(words):
            compress(model, method, optimizer=optimizer_of(model))
    for poor in (Compressed(quantize=TernGrad(), dense_below=10), PowerSGD(1)):
        parts = {"lstm": torch.nn.LSTM(8, 8), "out": torch.nn.Linear(8, 8)}
        for leave, coverage in ((None, "1 of 6"), ((), "3 of 6"), ("out.*", "2 of 6")):
            model = torch.nn.parallel.DistributedDataParallel(torch.nn.ModuleDict(parts))
            with warns("recurrent layers.*'lstm' will") if leave is None else silent():
                handle = compress(model, poor, leave=leave)
            assert f"{coverage} parameters" in handle.explain()
    quiet: tuple[tuple[Any, Any], ...] = (
        (METHODS[2], adamw),
        (DGC(dense_below=10), lambda m: torch.optim.SGD(m.parameters(), 0.1)),
        (QSGD(4), adamw),
        (Compressed(quantize=Half(), dense_below=10), adamw),
        (OneBit(), lambda m: torch.optim.SGD(m.parameters(), 0.1)),
        (
            Compressed(TopK(0.1), dense_below=10),
            lambda m: torch.optim.SGD(m.parameters(), 0.1),
        ),
    )
    for method, optimizer_of in quiet:
        model = ddp()
        with silent():
            compress(model, method, optimizer=optimizer_of(model))
