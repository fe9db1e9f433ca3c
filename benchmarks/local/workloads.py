"""Workloads of the accuracy benchmark, and others whose batch differs."""

from __future__ import annotations

from dataclasses import replace

from accuracy.workloads import WORKLOADS as ACCURACY

GPT = ACCURACY["gpt"]
WORKLOADS = {
    **ACCURACY,
    # What one of four workers sees, alone.
    "gpt-one-worker": replace(GPT, title=f"{GPT.title}, batch 4", batch=4),
    # The learning rate is that of batch 16; no other was tried.
    "gpt-large-batch": replace(
        GPT,
        title=f"{GPT.title}, batch 64",
        batch=64,
        steps=600,
    ),
    # Four times the steps: 75 rounds of 30 steps follow a start of 30 %.
    "gpt-long": replace(GPT, title=f"{GPT.title}, 3,200 steps", steps=3200),
    "gpt-large-batch-long": replace(
        GPT, title=f"{GPT.title}, batch 64, 2,400 steps", batch=64, steps=2400
    ),
}
