"""What each rank does in test_optimizer.py."""

import resource

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP

from sparcml import DGC, QSGD, Compressed, Dense, TopK
from sparcml.torch import compress, wrap
from tests import rosters

from .hooking import check_nothing_is_lost, raises
from .models import STEPS, Known, ddp, group, loss_of, mlp, same, train

MANY, FEW, WIDTH = 2_000_000, 200, 16


def parameters(module):
    return {n: p.detach().clone() for n, p in module.named_parameters()}


def trained(module, rank, optimizer, steps=range(STEPS)):
    for step in steps:
        optimizer.zero_grad()
        loss_of(module, rank, step).backward()
        optimizer.step()
    return parameters(module)


def as_with_ddp():
    with group() as (rank, ranks):
        plain = train(ddp(), rank)
        for method in (Dense(), Compressed(TopK(1.0))):
            module = mlp()
            optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
            wrap(optimizer, method, model=module)
            same(trained(module, rank, optimizer), plain, rtol=1e-5, atol=1e-7)
        conserving(rank, ranks)
        clipped(rank)
        with_a_closure(rank)
        looking_at_the_means(rank, plain)
        refusals(rank)


def conserving(rank, ranks):
    module = Known()
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    handle = wrap(optimizer, rosters.CONSERVING["sparcml"], model=module)
    applied = {n: -p for n, p in trained(module, rank, handle).items()}
    rest = handle.state_dict(consolidate=True)["state"]
    assert rest
    check_nothing_is_lost(applied, rest, ranks, STEPS)
    resumed(rank, handle.method)


def resumed(rank, method):
    model, again = Known(), Known()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    handle = wrap(optimizer, method, model=model)
    kept = trained(model, rank, optimizer, range(2)), handle.state_dict()
    whole = trained(model, rank, optimizer, range(2, 4))
    optimizer = torch.optim.SGD(again.parameters(), lr=1.0)
    handle = wrap(optimizer, method, model=again)
    again.load_state_dict(kept[0])
    handle.load_state_dict(kept[1])
    same(trained(again, rank, optimizer, range(2, 4)), whole)


def clipped(rank):
    """Exactly as torch clips the means."""
    results = []
    for ours in (False, True):
        module = mlp() if ours else ddp()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        if ours:
            wrap(optimizer, Dense(), clip=0.1)
        for step in range(STEPS):
            optimizer.zero_grad()
            loss_of(module, rank, step).backward()
            if not ours:
                torch.nn.utils.clip_grad_norm_(module.parameters(), 0.1)
            optimizer.step()
        results.append(parameters(module if ours else module.module))
    same(*results, rtol=1e-5, atol=1e-7)


def with_a_closure(rank):
    plain = train(ddp(), rank)
    module = mlp()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    wrap(optimizer, Dense())
    for step in range(STEPS):

        def closure(step=step):
            optimizer.zero_grad()
            loss = loss_of(module, rank, step)
            loss.backward()
            return loss

        assert optimizer.step(closure) > 0
    same(parameters(module), plain, rtol=1e-5, atol=1e-7)


def looking_at_the_means(rank, plain):
    """Means that were asked for and not used do not stand for later gradients."""
    module = mlp()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    handle = wrap(optimizer, Dense())
    loss_of(module, rank, 7).backward()
    handle.aggregate()
    seen = module[0].weight.grad.clone()
    handle.aggregate()
    torch.testing.assert_close(module[0].weight.grad, seen)  # once is enough
    same(trained(module, rank, optimizer), plain, rtol=1e-5, atol=1e-7)
    raises("wrapped already", wrap, optimizer, Dense())
    optimizer.add_param_group({"params": [torch.nn.Parameter(torch.ones(3))]})
    raises("1 parameters that were added after wrap", optimizer.step)


def refusals(rank):
    torch.manual_seed(rank)
    other = torch.nn.Linear(3, 3)
    optimizer = torch.optim.SGD(other.parameters(), lr=0.1)
    raises("start with different weights", wrap, optimizer, Dense())
    raises("use sparcml.torch.compress", wrap, optimizer, Dense(), model=ddp())
    raises("must be a torch.optim.Optimizer", wrap, other, Dense())


def scaled():
    with group() as (rank, _):
        plain = train(ddp(), rank)
        module = mlp()
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
        handle = wrap(optimizer, Compressed(TopK(1.0)), scaler=scaler)
        for step in range(STEPS):
            for spoiled in (True, False):
                optimizer.zero_grad()
                loss = loss_of(module, rank, step)
                if spoiled and rank == 0:
                    loss = loss * torch.nan
                scaler.scale(loss).backward()
                handle.aggregate()
                scaler.step(optimizer)
                scaler.update()
        assert handle.steps == STEPS
        same(parameters(module), plain, rtol=1e-4, atol=1e-6)
        loss_of(module, rank, 0).backward()
        raises("handle.aggregate.. must be called", optimizer.step)


class Clicks(torch.nn.Module):  # type: ignore[misc]
    """A recommender in small."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.items = torch.nn.Embedding(500, WIDTH, sparse=True)
        self.words = torch.nn.EmbeddingBag(300, WIDTH, sparse=True, mode="sum")
        self.out = torch.nn.Linear(2 * WIDTH, 1)

    def forward(self, rank, step):
        draw = torch.Generator().manual_seed(100 * rank + step)
        items = torch.randint(500, (30,), generator=draw)
        words = torch.randint(300, (30, 4), generator=draw)
        return (
            self.out(torch.cat([self.items(items), self.words(words)], 1)).square().mean()
        )


def with_embeddings():
    """Sparse gradients stay sparse and exact, by DDP and without it."""
    with group() as (rank, _):
        for kind in ("sgd", "adam"):
            plain = clicks(DDP(Clicks()), rank, kind)
            hooked = DDP(Clicks())
            compress(hooked, Compressed(TopK(0.01), QSGD(4), dense_below=0), leave="out*")
            same(clicks(hooked, rank, kind), plain, rtol=1e-4, atol=1e-6)
            for method in (Dense(), DGC(0.1, momentum=0.0)):
                module = Clicks()
                same(clicks(module, rank, kind, method), plain, rtol=1e-4, atol=1e-6)


def clicks(model, rank, kind, method=None):
    module = getattr(model, "module", model)
    tables = [module.items.weight, module.words.weight]
    if kind == "adam":
        optimizers = [
            torch.optim.SparseAdam(tables, lr=0.01),
            torch.optim.SGD(module.out.parameters(), lr=0.1),
        ]
    else:
        optimizers = [torch.optim.SGD(module.parameters(), lr=0.1)]
    if method is not None:
        for optimizer in optimizers:
            wrap(optimizer, method, model=module)
    for step in range(STEPS):
        for optimizer in optimizers:
            optimizer.zero_grad()
        model(rank, step).backward()
        for optimizer in optimizers:
            optimizer.step()
        assert all(t.grad.is_sparse for t in tables)
    return parameters(module)


def memory_follows_the_rows():
    """A table of which few rows are used; one rank uses none at first."""
    with group() as (rank, _):
        table = torch.nn.Embedding.from_pretrained(
            torch.zeros(MANY, WIDTH), freeze=False, sparse=True
        )
        optimizer = torch.optim.SGD(table.parameters(), lr=1.0)
        for p in table.parameters():  # the check of weights reads all of it
            assert p.numel() == MANY * WIDTH
        wrap(optimizer, Dense())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for step in range(STEPS):
            optimizer.zero_grad()
            rows = torch.arange(FEW) * 9973 + 1000 * rank + step
            if step or rank:
                table(rows).sum().backward()
            optimizer.step()
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown * 1024 < MANY * WIDTH * 4 / 4
        used = table.weight.detach().any(1).sum()
        assert used == 2 * FEW * STEPS - FEW
        dist.barrier()
