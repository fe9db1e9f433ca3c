"""What each rank does in test_composing.py: what scripts and frameworks do around a model."""

import contextlib
import copy
import gc
import io
import threading
import time
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch._dynamo.utils import counters
from torch.distributed._composable.replicate import replicate
from torch.distributed._composable.replicate_with_fsdp import replicate as replicate_2
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import fp16_compress_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import distribute_module
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.nn.parallel.distributed import _MixedPrecision

import sparcml
from sparcml import QSGD, Adaptive, Compressed, Dense, TopK, TransportError
from sparcml.torch.stats import bucket_advice
from sparcml.torch.step_timer import WARM_UP

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
        threads_end_with_their_model(rank)


def named_and_refused():
    with group() as (rank, _):
        other_kinds_of_parallelism()
        other_hooks()
        bare_quantizers_and_sparsifiers(rank)
        too_small(rank)
        advised(rank)
        overflow_of_a_scaler_that_was_not_passed(rank)


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


def threads_end_with_their_model(rank):
    """Also without close, whether the handle is kept or not, and whatever was compressed."""
    use_and_forget(rank)
    join_closing()
    before = threads()
    for _ in range(3):
        use_and_forget(rank)
    deadline = time.monotonic() + 30  # gloo's threads end by themselves
    while len(threads()) > len(before) and time.monotonic() < deadline:
        gc.collect()
        join_closing()
        time.sleep(0.01)
    # A leak leaves at least one thread of each of the 12 models. Torch may start some of its own.
    assert len(threads()) < len(before) + 6, (before, threads())


def join_closing():
    for thread in threading.enumerate():
        if thread.name == "sparcml close":
            thread.join(10)


def use_and_forget(rank):
    for method in (SMALL, "auto"):
        model, _ = compressed(method)
        train(model, rank, range(2))
    table = torch.nn.Embedding(50, 4, sparse=True)
    model, _ = compressed("auto", table)
    model(torch.tensor([1])).sum().backward()
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    handle = sparcml.torch.wrap(optimizer, SMALL, model=model)
    loss_of(copy.deepcopy(model), rank, 0).backward()
    loss_of(model, rank, 0).backward()
    optimizer.step()
    del model, optimizer, handle
    gc.collect()


def threads():
    """Names of the threads of this process, those of gloo included."""
    names = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # it has ended
            names.append((task / "comm").read_text().strip())
    return sorted(names)


def other_kinds_of_parallelism():
    """Refused by name, by both functions, with what to use instead."""
    mesh = init_device_mesh("cpu", (2,))
    ddp_if_it_fits = "DistributedDataParallel if the model fits"
    on_cpu = {"device_id": torch.device("cpu")}
    cases = [
        (FullyShardedDataParallel(mlp(), **on_cpu), f"FSDP1 .*{ddp_if_it_fits}"),
        (fully_shard(mlp(), mesh=mesh), f"FSDP2 .*{ddp_if_it_fits}"),
        (replicate(mlp()), r"replicate\(\) is not supported; use .*Dist"),
        (replicate_2(mlp(), mesh=mesh), r"replicate\(\) is not supported; use .*Dist"),
        (distribute_module(mlp(), mesh), "a DTensor is not supported; use .*Dist"),
    ]
    for model, words in cases:
        optimizer = torch.optim.SGD(model.parameters())
        raises(f"compress: .*{words}", sparcml.torch.compress, model, SMALL)
        raises(f"wrap: .*{words}", sparcml.torch.wrap, optimizer, SMALL, model=model)
        if not words.startswith("replicate"):  # its parameters are plain ones
            raises("wrap: .* is not supported", sparcml.torch.wrap, optimizer, SMALL)


def other_hooks():
    low = _MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.bfloat16)
    model = DDP(mlp(), mixed_precision=low)
    raises("mixed_precision .*use torch.autocast", sparcml.torch.compress, model, SMALL)
    model = DDP(mlp())
    model.register_comm_hook(None, fp16_compress_hook)
    raises(r"hook already \(fp16_compress_hook\)", sparcml.torch.compress, model, SMALL)


def bare_quantizers_and_sparsifiers(rank):
    """With error feedback around them, wherever a method is accepted."""
    model, handle = compressed(QSGD(4))
    assert handle.method == Compressed(quantize=QSGD(4))
    for given, method in ((TopK(0.1), Compressed(TopK(0.1))), (Dense(), Dense())):
        handle.change(given)
        assert handle.method == method
        wrapped = sparcml.torch.wrap(torch.optim.SGD(mlp().parameters()), given)
        assert wrapped.method == method
    raises("change: method must be a method such", handle.change, "auto")
    train(model, rank, range(1))


def too_small(rank):
    """Said once, by one rank, with numbers; and by explain."""
    few = torch.nn.Linear(20, 5)
    for warned in (True, False):
        method = TopK(0.1) if warned else Dense()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            handle = sparcml.torch.compress(DDP(few), method)
        texts = [str(w.message) for w in caught if "compresses" in str(w.message)]
        assert len(texts) == (warned and rank == 0)
        for text in texts:
            assert "compresses 0 of 2 parameters, 0 of 105 values (0%)" in text
            assert "at most 10,000 values" in text
            assert caught[-1].filename == __file__
    assert "0 of 2 parameters" in handle.explain()


def advised(rank):
    """The method as it was written, and no ratio where there is none."""
    for method, text in (
        (Dense(), "Dense()"),
        (Compressed(quantize=QSGD(4)), "Compressed(quantize=QSGD(bits=4))"),
        (SMALL, "Compressed(sparsify=TopK(ratio=0.05), dense_below=100)"),
    ):
        model, handle = compressed(method)
        train(model, rank, range(1))
        assert f"method      {text}\n" in handle.explain()
        stats = replace(handle.stats, exposed=1.0, active_seconds=1.0, buckets=(2**22,) * 2)
        advice = dict(bucket_advice(stats, method))["advice"]
        assert "bucket_cap_mb=" in advice
        assert ("ratio" in advice) == (method is SMALL)
    model, handle = compressed(Adaptive(TopK(0.05), dense_below=100))
    train(model, rank, range(1))
    chosen = handle.method.describe(handle._reducer.state)
    assert chosen
    for name, ratio in chosen.items():
        assert f"{name} {ratio:.3g}" in handle.explain()


def overflow_of_a_scaler_that_was_not_passed(rank):
    """The error names the argument that is missing, on every rank."""
    for method in (Dense(), SMALL):
        model, _ = compressed(method)
        loss = torch.inf if rank == 1 else 1.0
        with pytest.raises(
            (ValueError, TransportError), match="pass scaler= if a GradScaler"
        ):
            (loss_of(model, rank, 0) * loss).backward()
