"""Section of docs/training.md on accuracy: summaries, and a table and a figure per network."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .figures import figure, plotted
from .jobs import jobs, key_of
from .judge import complete
from .roster import ROSTER
from .summary import ablation, delay, recommended
from .texts import results, tolerance
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from .jobs import Row
    from .workloads import Workload

INTRODUCTION = """\
## Accuracy

All ranks of a run are in one process: the gradient of each rank is computed in turn, and thread
ranks aggregate them with the methods that DDP uses, with equal results (a test compares both). The
batch of all ranks together is the same for any number of ranks. Learning rates were chosen for the
dense runs, by their scores alone; other settings are written above each table.

What was chosen after compressed runs had been seen: 3 bits under AdamW by seed 0 of the GPT; the
falling density under SGD by all seeds of the residual network and seed 1 of the word LSTM, out of
about 15 settings of ratio, bits and warm-up; the multiples of the ratio that a layer may have by
seeds 0 and 1 of the residual network, out of three settings; the last ratio, 3 % in place of 1 %,
by all seeds of the residual network (1 %: -0.27 points on 2 ranks, -0.30 on 8); the setting for
slow links under AdamW by seed 0 of the GPT, out of six; buckets of 256 for `QSGD`, of 128 for
`OneBit`, the limit of the fence, and that `TernGrad` and `PowerSGD` leave recurrent layers
uncompressed by the word LSTM. All other methods have the settings that they had before their first
run.

All methods run on 2 ranks at the dense learning rate. Those with a rate of their own also run at
that, and the recommended ones on 8 ranks, under SGD on 16, and at twice the dense rate. *Fence*:
layers with gradients of widely different size are sent as 4-bit values, as `compress` does. As
with `compress`, `TernGrad` and `PowerSGD` send recurrent layers uncompressed.

EF21-SGDM, GMC, LoCo and Dion are not methods of sparcml, and DeMo is one of `sparcml.local` only:
`benchmarks/accuracy/candidates.py` has them as published, to see whether one should be a method of
DDP. They ran where they are meant to help: the word LSTM under SGD, the GPT under AdamW, at the
dense learning rate or at one of their own.

- *Difference*: mean over the seeds of the difference to the dense run with the same weights and
  batches, and its standard error. Positive is better. Relative for perplexity and loss, points
  otherwise.
- *Met*: the mean difference is within the tolerance.
- *Worst from step 300*: the difference of the validation curve, relative, at its worst point.
- *Compression ratio*: bytes sent per rank, dense ring allreduce / ours, over the full run,
  including warm-ups and uncompressed tensors.
- *x2, x3, x6*: at that multiple of the dense learning rate.

All results are means of at least three seeds; others are not shown. `make bench-accuracy` runs what
is missing, and can be interrupted.
"""


def section(rows: list[Row]) -> str:
    """Return the section; without complete results only its introduction and summary."""
    found = complete(rows)
    parts = [INTRODUCTION]
    if absent := missing(rows):
        parts.append(absent)
    parts.append(recommended(rows))
    if late := delay(rows):
        parts.append(late)
    if takes := ablation(rows):
        parts.append(takes)
    for network, work in WORKLOADS.items():
        here = [row for row in found if row.network == network]
        if len(here) > 1:  # more than dense
            title = f"{work.title[0].upper()}{work.title[1:]}"
            parts += [f"### {title}\n", f"{_settings(work)}\n", results(work, here)]
        if plotted(rows, network):
            parts += [f"![{work.title}](figures/{_file(network)}.svg)\n"]
    return "\n".join(parts)


def missing(rows: list[Row]) -> str:
    """Return a sentence on the results that have too few seeds; empty if there are none."""
    done = {key_of(row) for row in rows}
    absent: dict[str, list[str]] = {}
    for job in jobs():
        if job.key not in done:
            name = ROSTER[job.method].title + (f", x{job.multiple:g}" * (job.multiple != 1))
            text = f"{name} ({job.ranks} ranks)"
            absent.setdefault(WORKLOADS[job.network].title, []).append(text)
    if not absent:
        return ""
    lines = [
        f"- {name}: {'; '.join(dict.fromkeys(these))}" for name, these in absent.items()
    ]
    return "\n".join(["Still missing:\n", *lines, ""])


def figures(rows: list[Row]) -> dict[str, str]:
    """Return a figure per network that has complete results, as SVG."""
    from claims.drawing import svg

    return {
        _file(network): svg(partial(figure, network=network), rows)
        for network in WORKLOADS
        if plotted(rows, network)
    }


def _file(network: str) -> str:
    return f"accuracy-{network}"


def _settings(work: Workload) -> str:
    rate = f"learning rate {work.learning_rate:g}"
    return f"{work.settings}; {rate}. Tolerance: {tolerance(work)}."
