"""Decentralized training of PyTorch models, on processes."""

import re

import numpy as np
import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

import sparcml
from sparcml import decentralized as dec
from sparcml.torch import Decentralized
from tests.torch_engine.jobs import outcomes

from . import decentralizing
from .models import group

ALONE = dec.DPSGD(dec.ring(1))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("ranks", "body"),
    [(4, decentralizing.like_ddp), (3, decentralizing.buffers_and_checkpoints)],
    ids=["like_ddp", "buffers_and_checkpoints"],
)
def test_on_ranks(ranks, body):
    assert outcomes(ranks, body) == ["finished"] * ranks


@pytest.mark.torch
@pytest.mark.parametrize("overlap", [True, False])
def test_survivors_name_a_killed_rank(overlap):
    said = outcomes(3, decentralizing.dies, 1, overlap, bad=1, SPARCML_TIMEOUT="5")
    for word in (said[0], said[2]):
        assert re.match("TransportError: rank 1 (is gone|.*SIGKILL)", word or ""), said


@pytest.mark.torch
def test_ranks_with_different_methods():
    for word in outcomes(2, decentralizing.differ):
        assert re.match(
            r"MismatchError: Decentralized: rank 0 has method=.*lazy", word or ""
        )


@pytest.mark.torch
def test_weights_that_change_during_their_exchange():
    said = outcomes(3, decentralizing.modified)
    message = "Decentralized: parameters must not change between the forward pass"
    assert (said[1] or "").startswith(f"RuntimeError: {message}"), said
    for word in (said[0], said[2]):
        assert f"rank 1 raised RuntimeError: {message}" in (word or ""), said


def linear(dtype=torch.float32):
    return torch.nn.Linear(3, 2, dtype=dtype)


def attempt(module, method=ALONE, *, owner=None, **options):
    optimizer = torch.optim.SGD((owner or module).parameters(), lr=0.1)
    return Decentralized(module, optimizer, method, **options)


def test_one_rank_is_plain_training():
    module, plain = linear(), linear()
    plain.load_state_dict(module.state_dict())
    model = attempt(module)
    reference = torch.optim.SGD(plain.parameters(), lr=0.1)
    for optimizer, network in ((model.optimizer, model), (reference, plain)):
        network(torch.ones(3)).square().sum().backward()
        optimizer.step()
    for one, other in zip(module.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(one, other)
    assert "DPSGD(topology=ring(1)" in repr(model)
    module.extra = torch.nn.Parameter(torch.ones(1))
    model.optimizer.add_param_group({"params": [module.extra]})
    with pytest.raises(RuntimeError, match="added after the model was wrapped"):
        model.optimizer.step()


@pytest.mark.parametrize("ranks", [1, 2, 3, 5])
def test_without_a_method_a_period_is_a_full_average(ranks):
    """Models that differ become equal if their gradients are zero."""

    def work(comm):
        module = linear()
        with torch.no_grad():
            module.weight.fill_(comm.rank)
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
        model = Decentralized(module, optimizer, comm=comm, broadcast=False)
        assert model.method == dec.DPSGD(dec.base_graph(ranks))
        for _ in range(model.method.topology.period):
            (0 * model(torch.ones(3)).sum()).backward()
            optimizer.step()
        return module.weight.detach().numpy()

    for weight in sparcml.launch(work, ranks):
        np.testing.assert_allclose(weight, (ranks - 1) / 2, rtol=1e-6)


@pytest.mark.parametrize(
    "method", [ALONE, dec.ADPSGD(dec.ring(1))], ids=["dpsgd", "adpsgd"]
)
@pytest.mark.parametrize("enabled", [True, False])
def test_a_scaler_that_skips_steps_is_refused(method, enabled):
    """Unless it is disabled, or the ranks may make different numbers of steps."""
    model = attempt(linear(), method)
    scaler = torch.amp.GradScaler("cpu", enabled=enabled)
    scaler.scale(model(torch.ones(3)).square().sum()).backward()
    if enabled and method.is_synchronous:
        with pytest.raises(
            RuntimeError, match=r"must not be called by a GradScaler.*bfloat16"
        ):
            scaler.step(model.optimizer)
        return
    scaler.step(model.optimizer)
    assert model.stats.steps == 1


def test_parameters_without_gradients_are_not_mixed():
    module = torch.nn.Sequential(linear(), torch.nn.Linear(2, 2, dtype=torch.bfloat16))
    module[1].requires_grad_(False)
    model = attempt(module, owner=module[0])
    assert model._mixer.parameters.names == ("0.bias", "0.weight")
    assert model.averaged()[1].weight.dtype == torch.bfloat16


MIXED = torch.nn.Sequential(linear(), linear(torch.float64))


@pytest.mark.parametrize(
    ("words", "call"),
    [
        (
            "topology must be for 1 ranks, got ring.4. for 4; construct it with comm.size",
            lambda: attempt(linear(), dec.DPSGD(dec.ring(4))),
        ),
        (
            "method must be one of sparcml.decentralized such as .*, got Dense",
            lambda: attempt(linear(), sparcml.Dense()),
        ),
        (
            "optimizer must have all parameters of the model, got one without '0.weight'",
            lambda: attempt(torch.nn.Sequential(linear()), owner=linear()),
        ),
        (
            "optimizer must have parameters of the model only, got 2 others",
            lambda: attempt(MIXED[0], owner=MIXED),
        ),
        ("same dtype, got torch.float32, torch.float64", lambda: attempt(MIXED)),
        (
            "parameter 'weight' must be float32 or float64, got torch.bfloat16; keep the",
            lambda: attempt(linear(torch.bfloat16)),
        ),
        (
            "parameter 'weight' must be on one of the devices cpu, cuda, got 'meta'",
            lambda: attempt(linear().to("meta")),
        ),
        ("buffers must be one of mix, local, got 1", lambda: attempt(linear(), buffers=1)),
        ("comm must be a Communicator, got 3", lambda: attempt(linear(), comm=3)),
        (
            "model must be a torch.nn.Module, got SGD",
            lambda: Decentralized(torch.optim.SGD(MIXED.parameters()), None, ALONE),
        ),
        (
            "optimizer must be a torch.optim.Optimizer, got Linear",
            lambda: Decentralized(linear(), linear(), ALONE),
        ),
        ("wrapped already", lambda: attempt(attempt(linear()))),
    ],
)
def test_refusals(words, call):
    with pytest.raises((TypeError, ValueError, RuntimeError), match=words) as error:
        call()
    assert str(error.value).startswith("Decentralized: ")
    assert "\n" not in str(error.value)


@pytest.mark.torch
def test_ddp_is_refused():
    assert outcomes(1, in_ddp) == ["finished"]


def in_ddp():
    with group(), pytest.raises(TypeError, match="not be a Distributed"):
        attempt(DistributedDataParallel(linear()))


def test_states_that_do_not_fit():
    model = attempt(linear())
    saved = model.state_dict()
    extra = saved["_extra_state"]
    for changes, words in (
        ({"rank": 1}, "state of rank 0 expected, got that of rank 1"),
        (
            {"ranks": 2},
            "world size of the state must be 1, got 2; to change it, save model",
        ),
        ({"version": 9}, "version of the state must be 1, got 9"),
        ({"state": {}}, "state must be of a model with 8 values, got None"),
    ):
        with pytest.raises(ValueError, match=words):
            model.load_state_dict({**saved, "_extra_state": {**extra, **changes}})
    with pytest.raises(ValueError, match="load that of a plain model into"):
        model.load_state_dict({**saved, "_extra_state": {"step": 1}})
    model.load_state_dict(saved)
    other = attempt(linear(), dec.Choco(dec.ring(1)))
    other.load_state_dict(saved)  # another method continues with the weights and the step
    assert int(other.state_dict()["_extra_state"]["state"]["step"]) == 0
