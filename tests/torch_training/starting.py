"""What the ranks of test_synchronous_start.py do."""

import copy

import torch
from torch.nn.parallel import DistributedDataParallel as DDP

import sparcml
from sparcml.torch import DiLoCo

from .models import group, same

STEPS = 4


class Branches(torch.nn.Module):  # type: ignore[misc]
    """A network of which no rank uses `nowhere`, and only rank 0 uses `first`."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        for name in ("everywhere", "first", "nowhere", "frozen"):
            setattr(self, name, torch.nn.Linear(4, 3))
        self.frozen.requires_grad_(False)

    def forward(self, x, rank):
        y = self.everywhere(x) + self.frozen(x)
        return y + self.first(x) if rank == 0 else y


def train(call, optimizer, rank, steps=range(STEPS)):
    for step in steps:
        draw = torch.Generator().manual_seed(100 * step + rank)
        optimizer.zero_grad()
        call(torch.randn(5, 4, generator=draw), rank).square().mean().backward()
        optimizer.step()


def adam(module):
    """Of all parameters, also of those that are frozen."""
    return torch.optim.AdamW(module.parameters(), 0.01, weight_decay=0.5)


def unused(rank, method=None):
    """It is what DDP does, also with weight decay on what is unused."""
    plain = Branches()
    start = copy.deepcopy(plain.state_dict())
    model = DDP(plain, find_unused_parameters=True)
    train(model, adam(plain), rank)
    module = Branches()
    optimizer = adam(module)
    with DiLoCo(
        module, optimizer, synchronous_steps=STEPS, synchronous_method=method
    ) as training:
        train(module, optimizer, rank)
        now = module.state_dict()
        same(now, plain.state_dict(), rtol=1e-5, atol=1e-7)
        for name in ("nowhere", "frozen"):
            for kind in ("weight", "bias"):
                assert getattr(getattr(module, name), kind).grad is None
                assert torch.equal(now[f"{name}.{kind}"], start[f"{name}.{kind}"])
        assert not torch.equal(now["first.weight"], start["first.weight"])
        assert module.first.weight.grad is not None  # also on ranks that do not use it
        assert training.stats.exchanges == STEPS


def a_gradient_of_zeros_is_one(rank):
    """Zeros on a single rank: the optimizer applies its weight decay on all of them."""
    module = torch.nn.ParameterDict({"a": torch.ones(2), "b": torch.ones(2)})
    optimizer = torch.optim.SGD(module.parameters(), 0.5, weight_decay=0.5)
    training = DiLoCo(module, optimizer, synchronous_steps=2)
    module["a"].grad = torch.ones(2)
    if rank == 1:
        module["b"].grad = torch.zeros(2)
    optimizer.step()
    assert torch.equal(module["b"], torch.full((2,), 0.75))
    training.close()


def sparse_rows(rank):
    """Tables whose optimizer takes gradients of rows only."""
    results = []
    for sparse, build in ((True, torch.optim.SparseAdam), (False, torch.optim.Adam)):
        torch.manual_seed(0)
        module = torch.nn.Sequential(torch.nn.Embedding(6, 2, sparse=sparse))
        optimizer = build(module.parameters(), 0.1)
        training = DiLoCo(module, optimizer, synchronous_steps=1)
        module(torch.tensor([rank, 5])).square().sum().backward()
        optimizer.step()
        assert module[0].weight.grad.is_sparse == sparse
        results.append(module[0].weight.detach().clone())
        training.close()
    torch.testing.assert_close(*results)


def everything():
    with group() as (rank, _):
        sparse_rows(rank)
        unused(rank)
        unused(rank, sparcml.Compressed(sparcml.TopK(1.0)))
        a_gradient_of_zeros_is_one(rank)
