"""Section of docs/training.md on accuracy: summaries, and a table and a figure per network."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from .figures import figure, plotted
from .judge import complete
from .summary import delay, recommended
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

The recommended methods were chosen after compressed runs had been seen: 3 bits under AdamW by
seed 0 of the GPT, and the falling density under SGD by all seeds of the residual network and
seed 1 of the word LSTM, out of about 15 settings of ratio, bits and warm-up.
`OneBit` got buckets of 128 values after seed 0 of the word LSTM with 1,024 (-54 %;
-11 % with 128 or 32). All other methods have the settings that they had before their first run.

All methods run on 2 ranks at the dense learning rate. Those with a rate of their own also run at
that, and the recommended ones on 8 ranks, under SGD on 16, and at twice the dense rate.

- *Difference*: mean over the seeds of the difference to the dense run with the same weights and
  batches, and its standard error. Positive is better. Relative for perplexity and loss, points
  otherwise.
- *Met*: the mean difference is within the tolerance.
- *Worst from step 300*: the difference of the validation curve, relative, at its worst point.
- *Compression ratio*: bytes sent per rank, dense ring allreduce / ours, over the full run,
  including warm-ups and uncompressed tensors.
- *x2, x6*: at that multiple of the dense learning rate.

All results are means of at least three seeds; others are not shown. `make bench-accuracy` runs what
is missing, and can be interrupted; `python benchmarks/run_accuracy.py --list` shows it.
"""


def section(rows: list[Row]) -> str:
    """Return the section; without complete results only its introduction and summary."""
    found = complete(rows)
    parts = [INTRODUCTION, recommended(rows)]
    if late := delay(rows):
        parts.append(late)
    for network, work in WORKLOADS.items():
        here = [row for row in found if row.network == network]
        if len(here) > 1:  # more than dense
            title = f"{work.title[0].upper()}{work.title[1:]}"
            parts += [f"### {title}\n", f"{_settings(work)}\n", results(work, here)]
        if plotted(rows, network):
            parts += [f"![{work.title}](figures/{_file(network)}.svg)\n"]
    return "\n".join(parts)


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
