"""What each rank does in test_composing.py: what scripts and frameworks do around a model."""

import copy
import io
import warnings

import torch
from torch._dynamo.utils import counters
from torch.nn.parallel import DistributedDataParallel as DDP

import sparcml
from sparcml import Compressed, TopK
from sparcml.torch.auto import WARM_UP

from .choosing import STEPS, FastNetwork
from .hooking import raises
from .models import compressed, ddp, group, loss_of, mlp, same, train

SMALL = Compressed(TopK(0.05), dense_below=100)


def as_others_do():
    with group() as (rank, _):
        validated_as_by_lightning(rank)
        partly_trained(rank)
        copied(rank)
        named_as_if_not_compiled(rank)
        hooks_are_not_traced(rank)


def validated_as_by_lightning(rank):
    """Lightning trains with the DDP module in eval mode once there was a validation."""
    model, handle = compressed("auto")
    handle._timer = FastNetwork()
    model.eval()
    with torch.no_grad():
        loss_of(model, rank, 0)
    model.module.train()  # and not the DDP module
    train(model, rank, range(WARM_UP))
    assert f"{WARM_UP - 1} of 8 steps" in handle.explain()
    train(model, rank, STEPS)
    assert handle.decision is not None


def partly_trained(rank):
    """A model in eval mode whose last layer is trained."""
    model, handle = compressed("auto")
    handle._timer = FastNetwork()
    model.eval()
    model.module[4].train()
    train(model, rank, STEPS)
    assert handle.decision is not None


def copied(rank):
    """Copies are plain DDP models and can be compressed again, as the original is."""
    plain = train(ddp(), rank, range(2))
    for method in (SMALL, "auto"):
        model, handle = compressed(method)
        file = io.BytesIO()
        torch.save(model, file)
        file.seek(0)
        for other in (torch.load(file, weights_only=False), copy.deepcopy(model)):
            same(train(other, rank, range(2)), plain)
            again = sparcml.torch.compress(other, SMALL)
            train(other, rank, range(2))
            assert again.stats.steps == 2
        assert handle.stats.steps == 0
        raises("has a communication hook already", sparcml.torch.compress, model, SMALL)
        train(model, rank, range(2))


def named_as_if_not_compiled(rank):
    """States saved with and without torch.compile load into each other."""
    states = []
    for compiled in (False, True):
        inner = torch.compile(mlp(), backend="eager") if compiled else mlp()
        model = DDP(inner)
        handle = sparcml.torch.compress(model, SMALL, leave=["4.*", "_orig_mod.0.bias"])
        train(model, rank, range(2))
        states.append(handle.state_dict())
        for state in states:
            handle.load_state_dict(state)
            same(handle.state_dict()["state"], states[0]["state"])
    assert list(states[0]["state"]) == ["residual/0.weight", "residual/2.weight"]
    assert states[0]["shapes"] == states[1]["shapes"]
    old = saved_with_prefixes(states[0])
    handle.load_state_dict(old)
    same(handle.state_dict()["state"], states[0]["state"])
    assert handle.state_dict()["layout"] == states[0]["layout"]
    optimizer = torch.optim.SGD(model.parameters())
    wrapped = sparcml.torch.wrap(optimizer, SMALL, model=inner, leave="4.*")
    wrapped.load_state_dict(states[0])


def saved_with_prefixes(state):
    """A state of a compiled model, as earlier versions saved it."""
    return {
        **state,
        "shapes": {f"_orig_mod.{n}": s for n, s in state["shapes"].items()},
        "layout": [[f"_orig_mod.{n}" for n in names] for names in state["layout"]],
        "state": {k.replace("/", "/_orig_mod."): a for k, a in state["state"].items()},
    }


def hooks_are_not_traced(rank):
    """Dynamo compiles once per set of hooks, and not once per step."""
    counters.clear()
    model = DDP(mlp())
    handle = sparcml.torch.compress(model, "auto")
    handle._timer = FastNetwork()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast = torch.compile(model, backend="eager")
        loss_of(fast, rank, 0).backward()
        loss_of(fast, rank, 0).backward()
        frames = counters["frames"]["total"]
        for step in range(4):
            loss_of(fast, rank, step).backward()
        assert counters["frames"]["total"] == frames
    small = DDP(torch.compile(mlp(), backend="eager"), bucket_cap_mb=0.03)
    raises("bucket_cap_mb .* at least 1, got 0.03", sparcml.torch.compress, small, SMALL)
