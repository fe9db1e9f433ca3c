"""What the ranks of test_compiled_steps.py do: optimizer.step() in a compiled function."""

import torch

from sparcml import TopK
from sparcml import decentralized as dec
from sparcml.torch import Decentralized, DiLoCo, wrap

from .models import group, loss_of, mlp, same
from .optimizing import parameters


def trained(module, model, optimizer, rank, *, is_compiled, closure=False):
    def step():
        if not closure:
            return optimizer.step()
        return optimizer.step(lambda: gradients(number))

    def gradients(number):
        optimizer.zero_grad()
        loss = loss_of(model, rank, number)
        loss.backward()
        return loss

    if is_compiled:
        step = torch.compile(step, backend="eager")
    for number in range(5):
        if not closure:
            gradients(number)
        step()
    return parameters(module)


def fresh():
    torch._dynamo.reset()
    module = mlp()
    return module, torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)


def local(synchronous_steps, closure):
    with group() as (rank, _):
        results = []
        for is_compiled in (False, True):
            module, optimizer = fresh()
            with DiLoCo(
                module, optimizer, 2, synchronous_steps=synchronous_steps
            ) as training:
                trained(
                    module,
                    module,
                    optimizer,
                    rank,
                    is_compiled=is_compiled,
                    closure=closure,
                )
                assert training.steps == 5
                assert training.stats.exchanges == synchronous_steps + (
                    (5 - synchronous_steps) // 2
                )
            results.append(parameters(module))
        same(*results)


def others():
    with group() as (rank, ranks):
        results = []
        for is_compiled in (False, True):
            module, optimizer = fresh()
            handle = wrap(optimizer, TopK(0.1), model=module)
            first = trained(module, module, optimizer, rank, is_compiled=is_compiled)
            handle.close()
            module, optimizer = fresh()
            model = Decentralized(module, optimizer, dec.DPSGD(dec.ring(ranks)))
            second = trained(module, model, optimizer, rank, is_compiled=is_compiled)
            model.close()
            results.append((first, second))
        for plain, compiled in zip(*results, strict=True):
            same(compiled, plain)
