"""What each rank does in test_recipes.py: recipes for large batches, with compression."""

import pytorch_optimizer
import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.optim.lr_scheduler import ConstantLR, LinearLR, SequentialLR

from sparcml import QSGD, Compressed, Dense, TopK
from sparcml.torch import compress, wrap

from .models import STEPS, ddp, group, loss_of, mlp, same, weights

METHOD = Compressed(TopK(0.1), QSGD(8))
OPTIMIZERS = {
    "lars": lambda parameters: pytorch_optimizer.LARS(
        parameters, lr=0.1, trust_coefficient=0.05
    ),
    "lamb": lambda parameters: pytorch_optimizer.Lamb(parameters, lr=0.01),
    "sam": lambda parameters: pytorch_optimizer.SAM(
        parameters, torch.optim.SGD, rho=0.05, lr=0.1
    ),
}


def warmed(optimizer):
    """Up to 4 times the rate in two steps, and on with it."""
    up, on = LinearLR(optimizer, 1 / 4, 1.0, 2), ConstantLR(optimizer, 1.0)
    return SequentialLR(optimizer, [up, on], [2])


def trained(model, optimizer, rank, steps=STEPS, *, again=False):
    """The losses of all steps, on other rows each time, or on the same ones again."""
    rates = warmed(getattr(optimizer, "base_optimizer", optimizer))
    losses = []
    for step in range(steps):
        rows = 0 if again else step
        optimizer.zero_grad()
        if hasattr(optimizer, "first_step"):
            with model.no_sync():
                loss_of(model, rank, rows).backward()
            optimizer.first_step(zero_grad=True)
        loss = loss_of(model, rank, rows)
        loss.backward()
        if hasattr(optimizer, "second_step"):
            optimizer.second_step()
        else:
            optimizer.step()
        rates.step()
        losses.append(float(loss.detach()))
    return losses


def with_a_hook():
    """Dense: as plain DDP, bit for bit; compressed: all ranks agree, and the loss falls."""
    with group() as (rank, ranks):
        for make in OPTIMIZERS.values():
            results = []
            for method in (None, Dense()):
                model = ddp()
                if method is not None:
                    compress(model, method)
                trained(model, make(model.parameters()), rank)
                results.append(weights(model))
            same(*results)
            model = ddp()
            compress(model, METHOD)
            optimizer = make(model.parameters())
            losses = torch.tensor(trained(model, optimizer, rank, steps=12, again=True))
            dist.all_reduce(losses)
            assert losses[-1] < losses[0]
            for value in weights(model).values():
                everyone = [torch.empty_like(value) for _ in range(ranks)]
                dist.all_gather(everyone, value)
                assert all(torch.equal(value, other) for other in everyone)


def around_an_optimizer():
    """Without DDP, to rounding as with it."""
    with group() as (rank, _):
        for name in ("lars", "lamb"):
            plain, module = ddp(), mlp()
            trained(plain, OPTIMIZERS[name](plain.parameters()), rank)
            optimizer = OPTIMIZERS[name](module.parameters())
            wrap(optimizer, Dense(), model=module)
            trained(module, optimizer, rank)
            found = {n: p.detach() for n, p in module.named_parameters()}
            same(found, weights(plain), rtol=1e-4, atol=1e-6)


def sam_by_hand():
    """The slope at w + rho g / |g|, of each rank's own g, averaged by the hook."""
    with group() as (rank, ranks):
        start, slope = torch.tensor([[3.0, 4.0]]), torch.diag(torch.tensor([1.0, 2.0]))
        goal = torch.tensor([[1.0, -1.0]]) * rank
        module = torch.nn.Linear(2, 1, bias=False)
        module.weight.data = start.clone()
        model = DDP(module)
        compress(model, Dense())
        optimizer = pytorch_optimizer.SAM(
            model.parameters(), torch.optim.SGD, rho=0.5, lr=0.1
        )

        def loss():
            apart = model(torch.eye(2)).T - goal
            return (apart @ slope * apart).sum() / 2

        with model.no_sync():
            loss().backward()
        optimizer.first_step(zero_grad=True)
        loss().backward()
        optimizer.second_step()
        expected = torch.zeros(1, 2)
        for other in range(ranks):
            apart = start - torch.tensor([[1.0, -1.0]]) * other
            g = apart @ slope
            expected += (apart + 0.5 * g / g.norm()) @ slope / ranks
        torch.testing.assert_close(module.weight.data, start - 0.1 * expected)


def linear_scaling():
    """One step with twice the rate on both ranks' rows is two small ones, to first order."""
    with group() as (rank, ranks):
        rate = 1e-3
        large = ddp()
        compress(large, Compressed(TopK(1.0)))
        optimizer = torch.optim.SGD(large.parameters(), lr=ranks * rate)
        loss_of(large, rank, 0).backward()
        optimizer.step()
        small = mlp()
        optimizer = torch.optim.SGD(small.parameters(), lr=rate)
        before = {n: p.detach().clone() for n, p in small.named_parameters()}
        for other in range(ranks):
            optimizer.zero_grad()
            loss_of(small, other, 0).backward()
            optimizer.step()
        for name, p in small.named_parameters():
            moved = p.detach() - before[name]
            apart = weights(large)[name] - p.detach()
            assert apart.norm() < 0.02 * moved.norm()
