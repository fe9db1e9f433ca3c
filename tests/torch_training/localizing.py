"""What each rank does in test_local.py."""

import contextlib
import copy
import io
import warnings
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

import sparcml
from sparcml.torch import BMUF, SPARTA, DeMo, DiLoCo, LocalSGD, SparseLoCo

from .decentralizing import Normed
from .models import ddp, group, loss_of, mlp, same, train
from .optimizing import parameters, trained

FORMS: dict[str, tuple[Any, dict[str, Any]]] = {
    "local_sgd": (LocalSGD, {"sync_every": 3}),
    "bmuf": (BMUF, {"sync_every": 3}),
    "diloco topk": (
        DiLoCo,
        {"sync_every": 3, "method": sparcml.Compressed(sparcml.TopK(0.1), dense_below=100)},
    ),
    "streaming": (DiLoCo, {"sync_every": 4, "fragments": 2, "delay": 1, "mix": 0.5}),
    "sparse_loco": (SparseLoCo, {"sync_every": 3, "k": 16, "chunk": 256}),
    "synchronous start": (
        DiLoCo,
        {
            "sync_every": 3,
            "synchronous_steps": 4,
            "synchronous_method": sparcml.Compressed(sparcml.TopK(0.1), dense_below=100),
        },
    ),
    "averaged moments": (DiLoCo, {"sync_every": 3, "optimizer_state": "average"}),
    "demo": (DeMo, {"k": 8, "side": 16}),
    "sparta": (SPARTA, {"ratio": 0.1}),
}


def adam(module, lr=0.01):
    return torch.optim.AdamW(module.parameters(), lr=lr)


def inner(build, module):
    """Return an optimizer for a form: DeMo wants plain SGD."""
    if build is DeMo:
        return torch.optim.SGD(module.parameters(), lr=0.01)
    return adam(module)


def everything():
    """All in one start of the processes."""
    with group() as (rank, ranks):
        one_step_per_round_is_ddp(rank)
        models_are_averaged(rank, ranks)
        moments_are_averaged(rank, ranks)
        synchronous_start_is_ddp(rank)
        rounds_follow_the_synchronous_start(rank)
        for build, options in FORMS.values():
            resumes_bit_for_bit(rank, build, options)
            agrees_at_the_end(rank, ranks, build, options)
            consolidated(rank, build, options)
        buffers(rank, ranks)
        follows_the_learning_rate(rank)
        counts(rank, ranks)
        counts_in_the_background(rank, ranks)


def one_step_per_round_is_ddp(rank):
    plain = train(ddp(), rank)
    ways: list[tuple[Any, dict[str, Any]]] = [
        (LocalSGD, {}),
        (DiLoCo, {"outer_lr": 1.0, "outer_momentum": 0.0}),
        (BMUF, {"block_momentum": 0.0}),
        (SPARTA, {"ratio": 1.0}),
    ]
    for build, options in ways:
        module = mlp()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        with build(module, optimizer, sync_every=1, **options):
            trained(module, rank, optimizer)
        same(parameters(module), plain, rtol=1e-4, atol=1e-6)


def models_are_averaged(rank, ranks):
    """Against the models of all ranks, which every rank can train itself."""
    singles = []
    for other in range(ranks):
        module = mlp()
        singles.append(trained(module, other, adam(module), range(3)))
    module = mlp()
    optimizer = adam(module)
    with LocalSGD(module, optimizer, sync_every=3) as training:
        trained(module, rank, optimizer, range(3))
        same(parameters(training.shared()), parameters(module))
        mean = {n: sum(s[n] for s in singles) / ranks for n in singles[0]}
        same(parameters(module), mean, rtol=1e-4, atol=1e-6)
        trained(module, rank, optimizer, range(3, 5))
        same(parameters(training.shared()), mean, rtol=1e-4, atol=1e-6)
        average = parameters(training.averaged())
        assert any(not torch.equal(average[n], p) for n, p in parameters(module).items())


def moments_are_averaged(rank, ranks):
    singles = []
    for other in range(ranks):
        module = mlp()
        optimizer = adam(module)
        trained(module, other, optimizer, range(3))
        singles.append([optimizer.state[p] for p in module.parameters()])
    module = mlp()
    optimizer = adam(module)
    with LocalSGD(module, optimizer, sync_every=3, optimizer_state="average"):
        trained(module, rank, optimizer, range(3))
        for number, parameter in enumerate(module.parameters()):
            found = optimizer.state[parameter]
            assert int(found["step"]) == 3
            for key in ("exp_avg", "exp_avg_sq"):
                mean = sum(single[number][key] for single in singles) / ranks
                torch.testing.assert_close(found[key], mean, rtol=1e-5, atol=1e-8)


def synchronous_start_is_ddp(rank):
    """Also with a closure, in which the gradients are computed."""
    plain = train(ddp(), rank)
    for with_closure in (False, True):
        module = mlp()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        with DiLoCo(module, optimizer, synchronous_steps=4) as training:
            if with_closure:
                for step in range(4):
                    optimizer.step(partial(computed, module, optimizer, rank, step))
            else:
                trained(module, rank, optimizer, range(4))
            same(parameters(module), plain, rtol=1e-5, atol=1e-7)
            same(parameters(training.shared()), parameters(module))
            assert (training.steps, training.stats.exchanges) == (4, 4)
            assert training.stats.bytes > 0


def computed(module, optimizer, rank, step):
    optimizer.zero_grad()
    loss = loss_of(module, rank, step)
    loss.backward()
    return loss


def rounds_follow_the_synchronous_start(rank):
    """They are those of a model that was trained before."""
    results = []
    for steps in (2, 0):
        module = mlp()
        optimizer = adam(module)
        with contextlib.ExitStack() as stack:
            if not steps:
                with LocalSGD(module, optimizer, synchronous_steps=2):
                    trained(module, rank, optimizer, range(2))
            stack.enter_context(
                DiLoCo(module, optimizer, sync_every=3, synchronous_steps=steps)
            )
            if steps:
                trained(module, rank, optimizer, range(2))
            trained(module, rank, optimizer, range(2, 7))
        results.append(parameters(module))
    same(*results)


def saved(module, optimizer, training):
    file = io.BytesIO()
    torch.save([module.state_dict(), optimizer.state_dict(), training.state_dict()], file)
    return file.getvalue()


def resumes_bit_for_bit(rank, build, options, steps=9):
    """At every step: also with an exchange in flight, and in the middle of a round."""
    module = mlp()
    optimizer = inner(build, module)
    files = []
    with build(module, optimizer, **options) as training:
        for step in range(steps):
            files.append(saved(module, optimizer, training))
            trained(module, rank, optimizer, [step])
        expected = saved(module, optimizer, training)
    for start in (1, 4, 5, 7):
        module = mlp()
        optimizer = inner(build, module)
        training = build(module, optimizer, **options)
        states = torch.load(io.BytesIO(files[start]), weights_only=True)
        for owner, state in zip((module, optimizer, training), states, strict=True):
            owner.load_state_dict(state)
        trained(module, rank, optimizer, range(start, steps))
        for mine, other in zip(
            torch.load(io.BytesIO(saved(module, optimizer, training)), weights_only=True),
            torch.load(io.BytesIO(expected), weights_only=True),
            strict=True,
        ):
            equal(mine, other)
        training.close()


def equal(a, b):
    if isinstance(a, torch.Tensor):
        assert torch.equal(a, b)
    elif isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            equal(a[key], b[key])
    elif isinstance(a, list):
        for x, y in zip(a, b, strict=True):
            equal(x, y)
    else:
        assert a == b


def agrees_at_the_end(rank, ranks, build, options):
    """The end of the block completes the last round."""
    module = mlp()
    optimizer = inner(build, module)
    with build(module, optimizer, **options):
        trained(module, rank, optimizer, range(5))
    flat = torch.cat([p.flatten() for p in parameters(module).values()])
    everyone = [torch.empty_like(flat) for _ in range(ranks)]
    torch.distributed.all_gather(everyone, flat)
    assert all(torch.equal(flat, other) for other in everyone)


def consolidated(rank, build, options):
    """One state for any world size: here of each rank on its own, and of one rank with another.

    After 5 steps a round is half done, and a fragment of the streaming form is in flight.
    """
    module = mlp()
    optimizer = inner(build, module)
    training = build(module, optimizer, **options)
    trained(module, rank, optimizer, range(5))
    assert ("pending" in training.state_dict()["state"]) == ("delay" in options)
    state = training.state_dict(consolidate=True)
    mean = parameters(training.averaged())
    for size in (1, 2):
        ends = sparcml.launch(
            lambda comm: resumed_elsewhere(comm, state, build, options), size
        )
        for start, end in ends:
            same(start, mean)
            same(end, ends[0][1])
    training.load_state_dict(state)
    same(parameters(module), mean)
    trained(module, rank, optimizer, range(5, 7))
    training.close()


def resumed_elsewhere(comm, state, build, options):
    """Return the parameters after loading, and at the end of training."""
    module = mlp()
    optimizer = inner(build, module)
    with build(module, optimizer, comm=comm, **options) as training:
        training.load_state_dict(copy.deepcopy(state))
        start = parameters(module)
        assert training.steps == 5
        assert build is DeMo or optimizer.state_dict()["state"][0]["exp_avg"].any()
        trained(module, comm.rank, optimizer, range(5, 7))
    return start, parameters(module)


def buffers(rank, ranks):
    """Running statistics become those of all data at the end of a round."""
    module = Normed()
    optimizer = adam(module)
    with DiLoCo(module, optimizer, sync_every=2):
        trained(module, rank, optimizer, range(1))
        mine = module.layers[1].running_mean.clone()
        trained(module, rank, optimizer, range(1, 2))
        everyone = [torch.empty_like(mine) for _ in range(ranks)]
        torch.distributed.all_gather(everyone, module.layers[1].running_mean)
        assert all(torch.equal(everyone[0], other) for other in everyone)
        torch.distributed.all_gather(everyone, mine)
        assert not all(torch.equal(everyone[0], other) for other in everyone)


def follows_the_learning_rate(rank):
    """DeMo moves each weight by the learning rate of the optimizer."""
    module = mlp()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.5)
    with DeMo(module, optimizer):
        for step, lr in enumerate((0.25, 0.125)):
            optimizer.param_groups[0]["lr"] = lr
            before = parameters(module)
            trained(module, rank, optimizer, [step])
            moved = torch.cat(
                [(p - before[n]).flatten() for n, p in module.named_parameters()]
            )
            np.testing.assert_allclose(moved.detach().abs().max(), lr, atol=1e-5)


def counts(rank, ranks):
    module = mlp()
    optimizer = adam(module)
    size = sum(p.numel() for p in module.parameters())
    scalars = {}

    class Writer:
        def add_scalar(self, name, value, step):
            scalars[name] = value, step

    with (
        pytest.warns(RuntimeWarning, match="must make steps inside the block, got none"),
        DiLoCo(module, optimizer, sync_every=2),
    ):
        pass
    with DiLoCo(module, optimizer, sync_every=2) as training:
        with pytest.raises(RuntimeError, match="got one that is in use already"):
            LocalSGD(module, optimizer)
        trained(module, rank, optimizer, range(4))
        stats = training.stats
        assert (stats.steps, stats.exchanges) == (4, 2)
        dense = 2 * (ranks - 1) / ranks * 4 * size
        assert stats.dense_bytes == 4 * int(dense)
        assert 4 * size < stats.bytes < 4 * dense, (stats.bytes, dense)
        assert "compression ratio" in str(stats)
        assert "<td>steps</td>" in stats._repr_html_()
        training.log(Writer())
        assert scalars["sparcml/bytes"] == (stats.bytes / 4, 4)


def differ():
    """Ranks that pass different settings."""
    with group() as (rank, _):
        module = mlp()
        DiLoCo(module, adam(module), sync_every=2 + rank)


def counts_in_the_background(rank, ranks):
    """Bytes are counted that are sent while the training loop computes."""
    module = mlp()
    optimizer = adam(module)
    size = sum(p.numel() for p in module.parameters())
    with DiLoCo(module, optimizer, sync_every=4, delay=3) as training:
        trained(module, rank, optimizer, range(4))
        assert training.stats.exchanges == 1
        assert 4 * size < training.stats.bytes < 4 * ranks * size


def wrong_on_one_rank(options):
    """Rank 1 passes settings that are wrong, or differ."""
    with group() as (rank, _):
        module = mlp()
        mine = options if rank == 1 else {"sync_every": 4, "fragments": 2}
        with DiLoCo(module, adam(module), **mine):
            pass


def without_steps():
    """The loop of rank 1 steps another optimizer."""
    with group() as (rank, _), warnings.catch_warnings():
        warnings.simplefilter("ignore" if rank == 1 else "error")
        module = mlp()
        optimizer = adam(module)
        with DiLoCo(module, optimizer, sync_every=2):
            trained(module, rank, adam(mlp()) if rank == 1 else optimizer, range(2))
