"""What the ranks of test_local_errors.py do."""

import sys

import torch

from sparcml.torch import SPARTA, DiLoCo

from .models import group, loss_of, mlp
from .optimizing import trained

BAD, STEPS = 1, 8


def raises(options, after):
    """One rank raises in the block after a number of its steps."""
    with group() as (rank, _):
        module = mlp()
        optimizer = torch.optim.AdamW(module.parameters(), 0.01)
        with DiLoCo(module, optimizer, **options):
            trained(module, rank, optimizer, range(after if rank == BAD else STEPS))
            if rank == BAD:
                raise ValueError("no such luck")


def scales(synchronous_steps=0, **options):
    """A GradScaler would skip the step of a single rank; with fused=True it does not."""
    with group() as (rank, _):
        module = mlp()
        optimizer = torch.optim.SGD(module.parameters(), 0.01, **options)
        scaler = torch.amp.GradScaler("cpu")
        with DiLoCo(module, optimizer, sync_every=3, synchronous_steps=synchronous_steps):
            for step in range(4):
                optimizer.zero_grad()
                scaler.scale(loss_of(module, rank, step)).backward()
                scaler.step(optimizer)
                scaler.update()


def overflows():
    """The loss of one rank is infinite in a synchronous start."""
    with group() as (rank, _):
        module = mlp()
        optimizer = torch.optim.SGD(module.parameters(), 0.01)
        with DiLoCo(module, optimizer, sync_every=3, synchronous_steps=2):
            loss = loss_of(module, rank, 0)
            (loss * float("inf") if rank == BAD else loss).backward()
            optimizer.step()


def fused(synchronous_steps):
    """A fused optimizer with a GradScaler."""
    scales(synchronous_steps, fused=True)


def exits(code):
    """One rank leaves the block by sys.exit; the others make another step."""
    with group() as (rank, _):
        module = mlp()
        optimizer = torch.optim.SGD(module.parameters(), 0.01)
        with SPARTA(module, optimizer):
            trained(module, rank, optimizer, range(2))
            if rank == BAD:
                sys.exit(code)
            trained(module, rank, optimizer, range(2, 3))
