"""What each rank does in test_wrappers.py: optimizers inside others, and a compress that fails."""

import threading
import warnings

import pytest
import torch
from torch import distributed as dist

import sparcml
from sparcml import QSGD, Adaptive, Compressed, OneBitAdam, TopK
from sparcml import decentralized as dec
from sparcml.torch.step_hooks import users_of

from .models import ddp, group, loss_of, mlp, same, train

SMALL = Compressed(TopK(0.05), QSGD(8), dense_below=100)
STEPS = range(6)


class Around(torch.optim.Optimizer):  # type: ignore[misc]
    """Around another optimizer, as those of Accelerate: no hooks, and all else is inside."""

    def __init__(self, optimizer):
        self.optimizer = optimizer

    @property
    def param_groups(self):
        return self.optimizer.param_groups

    def zero_grad(self):
        self.optimizer.zero_grad()

    def step(self):
        self.optimizer.step()


class Closed(Around):
    """One that says nothing of what is inside."""

    def __init__(self, optimizer):
        self.hidden = optimizer

    @property
    def param_groups(self):
        return self.hidden.param_groups


def trained(model, optimizer, rank, lr=0.1):
    """Train with a learning rate that falls, and return the weights."""
    for step in STEPS:
        for settings in optimizer.param_groups:
            settings["lr"] = lr * 0.9**step
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        optimizer.step()
    return {n: p.detach().clone() for n, p in model.named_parameters()}


def sgd(model):
    return torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def zero(model):
    from torch.distributed.optim import ZeroRedundancyOptimizer  # its modules warn

    settings = {"lr": 0.1, "momentum": 0.9}
    return ZeroRedundancyOptimizer(
        model.parameters(), optimizer_class=torch.optim.SGD, **settings
    )


def as_what_is_inside():
    """The same bits as without a wrapper, with every function that takes an optimizer."""
    with group() as (rank, ranks):
        for make in (zero, lambda model: Around(Around(sgd(model)))):
            optimizer = make(mlp())
            assert sparcml.torch.recommended(optimizer) == sparcml.torch.recommended(
                sgd(mlp())
            )
            for method in (SMALL, "recommended"):
                same(by_compress(make, method, rank), by_compress(sgd, method, rank))
                same(by_wrap(make, method, rank), by_wrap(sgd, method, rank))

        def make(model):
            return Around(sgd(model))

        for around in (local, neighbours):
            same(around(make, rank, ranks), around(sgd, rank, ranks))
        adam(rank)
        refusals(ranks)


def by_compress(make, method, rank):
    model = ddp()
    optimizer = make(model)
    handle = sparcml.torch.compress(model, method, optimizer=optimizer)
    if method == "recommended":
        assert isinstance(handle.method, Adaptive)
    result = trained(model, optimizer, rank)
    assert handle.steps == len(STEPS)
    rates = handle.state_dict()["state"]
    assert {k for k in rates if k.startswith("learning_rate/")} >= {
        f"learning_rate/{n}.weight" for n in (0, 2)
    }
    handle.change("recommended")
    assert isinstance(handle.method, Adaptive)
    handle.close()
    return result


def by_wrap(make, method, rank):
    model = mlp()
    optimizer = make(model)
    handle = sparcml.torch.wrap(optimizer, method, model=model)
    with pytest.raises(RuntimeError, match="wrap: this optimizer is wrapped already"):
        sparcml.torch.wrap(optimizer, method, model=model)
    assert handle.optimizer is optimizer
    result = trained(model, optimizer, rank)
    assert handle.steps == len(STEPS)
    handle.close()
    return result


def local(make, rank, ranks):
    model = mlp()
    optimizer = make(model)
    with sparcml.torch.LocalSGD(model, optimizer, sync_every=2) as training:
        result = trained(model, optimizer, rank)
        assert training.steps == len(STEPS)
        assert training.optimizer is optimizer
    return result


def neighbours(make, rank, ranks):
    inside = mlp()
    optimizer = make(inside)
    model = sparcml.torch.Decentralized(inside, optimizer)
    assert model.method == dec.DPSGD(dec.base_graph(ranks))
    assert model.optimizer is optimizer
    trained(model, optimizer, rank)
    assert model.stats.steps == len(STEPS)
    mean = model.averaged()
    model.close()
    return {n: p.detach() for n, p in mean.named_parameters()}


def adam(rank):
    """Updates are exchanged in the step of what is inside."""
    results = []
    for wrapper in (Around, lambda optimizer: optimizer):
        model = ddp()
        optimizer = wrapper(torch.optim.AdamW(model.parameters(), lr=0.1))
        method = OneBitAdam(warm_up=2, dense_below=100)
        handle = sparcml.torch.compress(model, method, optimizer=optimizer)
        results.append(trained(model, optimizer, rank, lr=0.01))
        assert any(k.startswith("denominator/") for k in handle.state_dict()["state"])
        handle.close()
    same(*results)


def refusals(ranks):
    model = ddp()
    with pytest.raises(TypeError, match="with OneBitAdam, got ZeroRedundancyOptimizer"):
        sparcml.torch.compress(model, OneBitAdam(), optimizer=zero(model))
    for form in (sparcml.torch.DiLoCo, sparcml.torch.Decentralized):
        inside = mlp()
        words = "got a ZeroRedundancyOptimizer, which splits it over ranks"
        with pytest.raises(ValueError, match=words):
            form(inside, zero(inside))
    schedule = torch.optim.lr_scheduler.LinearLR(sgd(inside))
    with pytest.raises(TypeError, match="Optimizer, got LinearLR"):
        sparcml.torch.compress(model, SMALL, optimizer=schedule)


def nothing_is_left():
    """After a compress that raised, the model is a plain one, and compress works."""
    with group() as (rank, _):
        model = ddp()
        plain = train(ddp(), rank, range(2))
        before = threading.active_count()
        optimizer = sgd(model)
        for wrong, error, words in (
            (sgd(mlp()), ValueError, "optimizer must have parameters of the model"),
            (
                Closed(optimizer),
                TypeError,
                "got Closed, which has none; pass the optimizer",
            ),
            ("sgd", TypeError, "must be a torch.optim.Optimizer, got str"),
        ):
            with pytest.raises(error, match=words):
                sparcml.torch.compress(model, SMALL, optimizer=wrong)
            check_plain(model, optimizer, before)
        as_an_error(rank, model, optimizer)
        check_plain(model, optimizer, before)
        same(train(model, rank, range(2)), plain)
        handle = sparcml.torch.compress(model, SMALL, optimizer=optimizer)
        trained(model, optimizer, rank)
        assert handle.steps == len(STEPS)
        built_in(rank, before)


def as_an_error(rank, model, optimizer):
    """A warning that one rank turns into an error reaches all ranks."""
    too_large = Compressed(TopK(0.05), dense_below=10**6)
    raised = UserWarning if rank == 0 else sparcml.MismatchError
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(raised, match="compresses 0 of 6 parameters"):
            sparcml.torch.compress(model, too_large, optimizer=optimizer)


def built_in(rank, before):
    """A hook that only DDP's logger knows."""
    model = ddp()
    model._register_builtin_comm_hook(dist.BuiltinCommHookType.ALLREDUCE)
    optimizer = sgd(model)
    for _ in range(2):
        words = "has a communication hook already .*ALLREDUCE"
        with pytest.raises(RuntimeError, match=words):
            sparcml.torch.compress(model, SMALL, optimizer=optimizer)
    check_plain(model, optimizer, None)
    trained(model, optimizer, rank)


def check_plain(model, optimizer, threads):
    assert not model._comm_hooks
    assert not model._forward_pre_hooks
    assert not users_of(optimizer)
    if threads is not None:
        assert threading.active_count() == threads
