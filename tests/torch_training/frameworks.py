"""Training with Accelerate and with Trainer, as `accelerate launch` starts it.

It is given the name of a function and a folder.
"""

import os
import sys
from pathlib import Path

import torch
from accelerate import Accelerator
from accelerate.optimizer import AcceleratedOptimizer
from torch import distributed as dist

import sparcml
from sparcml import Adaptive, Compressed, Dense, OneBitAdam
from tests.torch_training.models import batch, mlp, same

STEPS, ACCUMULATED = 6, 2


def accelerated(folder):
    accelerator = Accelerator(gradient_accumulation_steps=ACCUMULATED)
    for kind, expected in ((torch.optim.SGD, Adaptive), (torch.optim.AdamW, Compressed)):
        plain, _ = prepared(accelerator, kind, None)
        dense, handle = prepared(accelerator, kind, Dense())
        same(dense, plain)
        _, handle = prepared(accelerator, kind, "recommended")
        assert type(handle.method) is expected
        assert handle.stats.compression_ratio > 2
    _, handle = prepared(accelerator, torch.optim.AdamW, OneBitAdam(warm_up=2))
    assert any(k.startswith("denominator/") for k in handle.state_dict()["state"])
    without_ddp(accelerator)
    accelerator.end_training()


def prepared(accelerator, kind, method):
    """Train with what Accelerate hands out; return the weights, equal on all ranks."""
    model = mlp()
    optimizer = kind(model.parameters(), lr=0.01)
    model, optimizer = accelerator.prepare(model, optimizer)
    assert type(optimizer) is AcceleratedOptimizer
    handle = None
    if method is not None:
        handle = sparcml.torch.compress(model, method, optimizer=optimizer)
    for step in range(STEPS * ACCUMULATED):
        with accelerator.accumulate(model):
            loop(accelerator, model, optimizer, step)
    assert handle is None or handle.steps == STEPS
    return equal(model.module), handle


def loop(accelerator, model, optimizer, step):
    x, y = batch(accelerator.process_index, step)
    accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
    optimizer.step()
    optimizer.zero_grad()


def without_ddp(accelerator):
    for start in (
        lambda model, optimizer: sparcml.torch.wrap(optimizer, "recommended", model=model),
        lambda model, optimizer: sparcml.torch.LocalSGD(model, optimizer, sync_every=2),
    ):
        model = mlp()
        optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.01))
        assert type(optimizer) is AcceleratedOptimizer
        handle = start(model, optimizer)
        for step in range(STEPS):
            loop(accelerator, model, optimizer, step)
        assert handle.steps == STEPS
        equal(model)
        handle.close()


def equal(model):
    """Return the weights, which must be the same bits on all ranks."""
    own = {n: p.detach().clone() for n, p in model.named_parameters()}
    for value in own.values():
        everyones = [torch.empty_like(value) for _ in range(dist.get_world_size())]
        dist.all_gather(everyones, value)
        assert all(torch.equal(value, other) for other in everyones)
    return own


def by_trainer(folder):
    from transformers import (
        GPT2Config,
        GPT2LMHeadModel,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    class Compression(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, arguments, state, control, optimizer=None, **others):
            assert type(optimizer) is AcceleratedOptimizer
            self.handle = sparcml.torch.compress(
                self.trainer.model_wrapped, "recommended", optimizer=optimizer
            )

    size = {"n_layer": 2, "n_head": 2, "n_embd": 64, "n_positions": 16, "vocab_size": 50}
    torch.manual_seed(0)
    model = GPT2LMHeadModel(GPT2Config(**size, bos_token_id=0, eos_token_id=0))
    texts = [(torch.arange(16) + start) % 50 for start in range(64)]
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=True,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        per_device_train_batch_size=4,
        gradient_accumulation_steps=ACCUMULATED,
        max_steps=20,
        logging_steps=1,
        learning_rate=0.01,
    )
    compression = Compression()
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=[{"input_ids": text, "labels": text} for text in texts],
        callbacks=[compression],
    )
    compression.trainer = trainer
    trainer.train()
    handle = compression.handle
    assert handle.steps == 20
    assert handle.stats.compression_ratio > 5
    assert handle.method == sparcml.torch.recommended(trainer.optimizer)
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    assert losses[-1] < 0.5 * losses[0], losses
    equal(model)


if __name__ == "__main__":
    torch.set_num_threads(1)
    globals()[sys.argv[1]](Path(sys.argv[2]))
    print(f"rank {os.environ['RANK']} of {os.environ['WORLD_SIZE']}: finished", flush=True)
