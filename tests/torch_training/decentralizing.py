"""What each rank does in test_decentralized.py."""

import io
import os
import signal
import time

import numpy as np
import torch

import sparcml
from sparcml import decentralized as dec
from sparcml.torch import Decentralized

from .models import STEPS, Known, ddp, group, loss_of, mlp, same, train
from .optimizing import parameters, trained


def wrapped(module, method, *, lr=0.1, momentum=0.0, **options):
    """Return the wrapped model and its optimizer."""
    optimizer = torch.optim.SGD(module.parameters(), lr=lr, momentum=momentum)
    return Decentralized(module, optimizer, method, **options), optimizer


def run(model, rank, optimizer, steps=range(STEPS)):
    trained(model, rank, optimizer, steps)
    return parameters(model.module)


def like_ddp():
    """On a complete graph it is DDP; on a ring the mean moves by the mean gradient."""
    with group() as (rank, ranks):
        plain = train(ddp(), rank)
        for options in ({}, {"buffers": "local"}):
            method = dec.DPSGD(dec.complete(ranks), adapt_then_combine=True)
            model, optimizer = wrapped(mlp(), method, **options)
            same(run(model, rank, optimizer), plain, rtol=1e-5, atol=1e-7)
            assert model.consensus_distance() == 0
        ring_keeps_the_mean(rank, ranks)
        moves_the_mean(rank, ranks)
        same_bits_without_overlap(rank, ranks)
        starts_from_rank_0(rank, ranks)
        asynchronous(rank, ranks)


def ring_keeps_the_mean(rank, ranks):
    """Gradients do not depend on the weights here, so DDP's weights are the mean."""
    plain = train(ddp(Known()), rank)
    model, optimizer = wrapped(Known(), dec.DPSGD(dec.ring(ranks)))
    own = run(model, rank, optimizer)
    mean = parameters(model.averaged())
    same(mean, plain, rtol=1e-4, atol=1e-6)
    assert model.consensus_distance() > 0.01
    assert any(not torch.allclose(own[n], mean[n], atol=1e-4) for n in own)


def check_statistics(model, distance):
    stats, size = model.stats, sum(p.numel() for p in model.parameters())
    assert stats.steps == STEPS
    assert 2 * 4 * size * STEPS <= stats.bytes < 2 * 4 * size * STEPS + 2000
    assert stats.dense_bytes == 1.5 * 4 * size * STEPS
    assert stats.consensus_distance == distance
    assert "staleness" in str(stats)
    assert "<td>steps</td>" in stats._repr_html_()
    scalars = {}

    class Writer:
        def add_scalar(self, name, value, step):
            scalars[name] = value, step

    model.log(Writer())
    assert scalars["sparcml/bytes"] == (stats.bytes / STEPS, STEPS)
    assert scalars["sparcml/consensus_distance"] == (distance, STEPS)
    model.log(Writer(), 9)
    assert scalars["sparcml/bytes"] == (0, 9)


def moves_the_mean(rank, ranks):
    """On a ring, the mean of a network moves as with DDP, but for terms of second order."""
    before, errors = parameters(mlp()), []
    for lr in (0.1, 0.01):
        plain = train(ddp(), rank, lr=lr)
        model, optimizer = wrapped(mlp(), dec.DPSGD(dec.ring(ranks)), lr=lr)
        run(model, rank, optimizer)
        mean = parameters(model.averaged())
        moved = torch.cat([(plain[n] - before[n]).flatten() for n in before])
        error = torch.cat([(plain[n] - mean[n]).flatten() for n in before])
        errors.append(float(error.norm() / moved.norm()))
    assert errors[0] < 0.5, errors
    assert errors[1] < 0.15 * errors[0], errors
    check_statistics(model, model.consensus_distance())


def same_bits_without_overlap(rank, ranks):
    results = []
    for overlap in (True, False):
        method = dec.DPSGD(dec.one_peer_exponential(ranks))
        model, optimizer = wrapped(mlp(), method, momentum=0.9, overlap=overlap)
        for step in range(STEPS):
            if rank == 0 and step == 1:
                with torch.no_grad():  # neither of these starts an exchange
                    loss_of(model, rank, 9)
                loss_of(model.eval(), rank, 9)
                model.train()
            if rank == 1 and step == 2:
                loss_of(model, rank, 9)  # a second forward pass does not start another one
            optimizer.zero_grad()
            loss = loss_of(model, rank, step)
            if overlap:
                completes_before_the_step(model)
            loss.backward()
            optimizer.step()
        results.append(parameters(model.module))
        model.close()
        model.close()
        loss_of(model, rank, 0).backward()  # it is a plain model now
        optimizer.step()
    same(*results)
    with_a_closure(rank, ranks, results[0])


def completes_before_the_step(model):
    """The exchange that the forward pass has started needs no further call."""
    request, end = model._mixer._started.begun.request, time.monotonic() + 60
    while not request.test():
        assert time.monotonic() < end
        time.sleep(1e-3)


def with_a_closure(rank, ranks, expected):
    method = dec.DPSGD(dec.one_peer_exponential(ranks))
    model, optimizer = wrapped(mlp(), method, momentum=0.9)
    for step in range(STEPS):

        def closure(step=step):
            optimizer.zero_grad()
            loss = loss_of(model, rank, step)
            loss.backward()
            return loss

        optimizer.step(closure)
    same(parameters(model.module), expected)


def starts_from_rank_0(rank, ranks):
    for broadcast in (True, False):
        module = torch.nn.BatchNorm1d(3)
        with torch.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.fill_(rank + 1)
        model, _ = wrapped(module, dec.DPSGD(dec.ring(ranks)), broadcast=broadcast)
        expected = 1 if broadcast else rank + 1
        for tensor in model.state_dict().values():
            assert isinstance(tensor, dict) or (tensor == expected).all()


def asynchronous(rank, ranks):
    """The sum is kept; ranks may make different numbers of steps."""
    model, optimizer = wrapped(Known(), dec.ADPSGD(dec.ring(ranks)), lr=0.01)
    run(model, rank, optimizer, range(3 + rank))
    model.flush()
    assert model.state_dict()["_extra_state"]["state"]["in_flight"].numel() == 0
    mean = parameters(model.averaged())
    totals = parameters(Known())
    for other in range(ranks):
        module = Known()
        single = torch.optim.SGD(module.parameters(), lr=0.01)
        for name, p in trained(module, other, single, range(3 + other)).items():
            totals[name] += p / ranks
    same(mean, totals, rtol=1e-4, atol=1e-5)
    if model.method.is_active(rank):
        assert model.stats.averages > 0
        assert model.stats.staleness >= 1


class Normed(torch.nn.Module):  # type: ignore[misc]
    """Batch norm, and buffers of other types."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(20, 6), torch.nn.BatchNorm1d(6), torch.nn.Linear(6, 5)
        )
        self.register_buffer("scale", torch.tensor(2.0, dtype=torch.float64))
        self.register_buffer("mask", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.layers(x)


def buffers_and_checkpoints():
    with group() as (rank, ranks):
        running_statistics(rank, ranks)
        for method in (
            dec.DPSGD(dec.ring(ranks)),
            dec.Choco(dec.ring(ranks), sparcml.TopK(0.1)),
            dec.DCD(dec.ring(ranks), sparcml.QSGD(bits=8)),
            dec.PushSum(dec.exponential(ranks)),
        ):
            resumes(rank, method)
        changes_of_topology(rank, ranks)


def running_statistics(rank, ranks):
    """Data of all ranks together have a larger variance than those of each."""
    means, variances = np.arange(ranks) * 100.0, 1.0 + np.arange(ranks)
    for buffers in ("mix", "local"):
        module = Normed()
        model, optimizer = wrapped(module, dec.DPSGD(dec.ring(ranks)), buffers=buffers)
        norm = module.layers[1]
        norm.running_mean.fill_(means[rank])
        norm.running_var.fill_(variances[rank])
        norm.num_batches_tracked.fill_(rank)
        module.scale.fill_(rank)
        module.mask.fill_(rank)
        mean = means.mean()
        variance = (variances + means**2).mean() - mean**2  # the ring of three averages all
        for averaged in (model.averaged(), None):
            if averaged is None:
                optimizer.step()
            found = (averaged or module).layers[1]
            is_mixed = averaged is not None or buffers == "mix"
            expected = (mean, variance) if is_mixed else (means[rank], variances[rank])
            np.testing.assert_allclose(found.running_mean, expected[0], rtol=1e-6)
            np.testing.assert_allclose(found.running_var, expected[1], rtol=1e-6)
            assert found.num_batches_tracked == rank
        assert (module.mask == rank).all()
        assert module.scale == (1 if buffers == "mix" else rank)


def resumes(rank, method):
    """A run that stopped continues with the same bits."""

    def build():
        module = Normed()
        optimizer = torch.optim.Adam(module.parameters(), lr=0.01)
        return Decentralized(module, optimizer, method), optimizer

    model, optimizer = build()
    run(model, rank, optimizer, range(2))
    file = io.BytesIO()
    torch.save([model.state_dict(), optimizer.state_dict()], file)
    expected = run(model, rank, optimizer, range(2, 4)), model.module.state_dict()
    file.seek(0)
    saved = torch.load(file, weights_only=True)
    again, optimizer = build()
    loss_of(again, rank, 9)  # starts an exchange that is dropped
    again.load_state_dict(saved[0])
    optimizer.load_state_dict(saved[1])
    same(run(again, rank, optimizer, range(2, 4)), expected[0])
    same(again.module.state_dict(), expected[1])
    assert again.state_dict()["_extra_state"]["state"]["step"] == 4
    model.close()
    again.close()


def changes_of_topology(rank, ranks):
    model, optimizer = wrapped(Known(), dec.Choco(dec.ring(ranks), sparcml.TopK(0.1)))
    run(model, rank, optimizer, range(2))
    before = parameters(model.averaged())
    model.change_topology(dec.star(ranks))
    assert model.method.topology == dec.star(ranks)
    same(parameters(model.averaged()), before)
    run(model, rank, optimizer, range(2, 4))
    plain = train(ddp(Known()), rank)
    same(parameters(model.averaged()), plain, rtol=1e-4, atol=1e-5)


def dies(bad, overlap):
    """One rank is killed between two steps."""
    with group() as (rank, ranks):
        model, optimizer = wrapped(mlp(), dec.DPSGD(dec.ring(ranks)), overlap=overlap)
        run(model, rank, optimizer, range(2))
        if rank == bad:
            os.kill(os.getpid(), signal.SIGKILL)
        run(model, rank, optimizer, range(2, 9))


def differ():
    """Ranks with different arguments."""
    with group() as (rank, ranks):
        method = dec.DPSGD(dec.ring(ranks) if rank else dec.ring(ranks).lazy())
        wrapped(mlp(), method)


def modified():
    """A rank changes its weights after their exchange has started."""
    with group() as (rank, ranks):
        model, optimizer = wrapped(mlp(), dec.DPSGD(dec.ring(ranks)))
        run(model, rank, optimizer, range(1))
        loss_of(model, rank, 1).backward()
        if rank == 1:
            with torch.no_grad():
                model.module[0].weight.mul_(0.5)
        optimizer.step()
        run(model, rank, optimizer, range(2, 4))
