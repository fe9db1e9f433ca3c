"""Write docs/training.md and its figures from the rows in benchmarks/results.

With --check it writes nothing, and fails unless the page is up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accuracy import page as page_of_accuracy
from accuracy.saved import load
from tables import newest
from training import pages
from training.judge import scores
from training.roster import NETWORKS, RANKS, WIDE
from written import page_and_figures, write_or_check

RESULTS = Path(__file__).resolve().parent / "results"

INTRODUCTION = f"""\
# Training networks

The networks of `examples/torch`, trained with DDP over gloo: plain, with torch's hooks, and with
`sparcml.torch.compress`. All methods use the learning rate, momentum and batches of the dense run.
Three settings were chosen after the first runs had shown scores of some methods: DGC's warm-up (a
fortieth of the steps, before an eightieth), the tagger's epochs (8, before 4), and a language model
without output biases. `make bench-training` measures one row per job and can be interrupted and
resumed; `make docs` generates this page from the newest rows.

- **Steps** are *emulated*: 4 or 8 ranks of the large network, {RANKS} of the others, on 2
  cores, with one link per rank. All ranks start a step at the same time, and the slowest one
  counts. *Communication off* is the same step under `no_sync`, measured in the same
  job; the rest of a step is *exposed*: waiting for the allreduce, selecting and encoding, unless
  they overlap with the backward pass. The *ceiling* is the speedup of a method without any
  communication. Four ranks share two cores here; on separate machines computing takes a fraction
  of that time, and the speedup is larger.
- **Scores** are *measured* on {RANKS} ranks without emulated links, which affect times but not
  results. Bytes are those of the full run, including small dense tensors and warm-ups; those of
  torch's own allreduce are estimated as a ring's.
- torch's PowerSGD hook uses one bucket, and starts at the third step. With several buckets over
  gloo, ranks call its allreduces in different orders, and the job fails.
"""

UNCOUNTED = """\
The bytes of our methods at 4 ranks do not include gloo's allreduce of small dense tensors, here
about 0.1 MB per step, which `handle.stats` did not count then; the times include it.
"""

PRODUCT = """\
Time to a score: steps (measured) times the seconds per step (emulated). This is a product, not a
run.
"""

CHECK = """\
## Check of the product

One epoch trained on emulated links, compared with its steps times the median step.
"""


def page(results: Path) -> str:
    """Return the page."""
    stepped, judged = (
        newest(f"training-{part}", results) for part in ("steps", "accuracy")
    )
    parts = [INTRODUCTION, page_of_accuracy.section(load(results))]
    if stepped:
        parts += [_steps(stepped)]
    if judged:
        parts += [_scores(judged, stepped["rows"] if stepped else [])]
    if (epochs := newest("training-epoch", results)) and stepped and judged:
        table = pages.checked(epochs["rows"], judged["rows"], stepped["rows"])
        parts += [CHECK, table]
    if not stepped or not judged:
        parts += ["Some data are missing; run `make bench-training`.\n"]
    return "\n".join(parts)


def _origin(kept: dict[str, Any]) -> str:
    keys = ("date", "commit", "cpu", "isa", "numpy", "python", "torch")
    return ", ".join(f"{key} {kept['environment'][key]}" for key in keys)


def _steps(kept: dict[str, Any]) -> str:
    rows = kept["rows"]
    return (
        f"## Steps of an LSTM of 20 million parameters\n\n"
        f"The ATIS tagger with two layers of 1,200 units, 4 sentences per rank and step; "
        f"medians, emulated.\n\n{pages.steps(rows, WIDE)}\n{UNCOUNTED}\n"
        f"![Time of a step](figures/training-steps.svg)\n\n"
        f"Targets:\n\n{pages.wanted(rows)}\n"
        f"`python benchmarks/all_training.py --only steps`: {_origin(kept)}.\n"
    )


def _scores(kept: dict[str, Any], stepped: list[dict[str, Any]]) -> str:
    rows, parts = kept["rows"], ["## Scores and bytes\n"]
    for name, about in NETWORKS.items():
        if "dense" not in scores(rows, name):
            continue
        parts += [
            f"### {about.title[0].upper()}{about.title[1:]}\n",
            pages.accuracy(rows, name),
        ]
        if product := pages.reaching(rows, stepped, name):
            parts += [
                PRODUCT,
                product,
            ]
    parts += ["![Scores and bytes](figures/training-bytes.svg)\n"]
    parts += ["![Scores after each epoch](figures/training-curves.svg)\n"]
    parts += [f"`python benchmarks/all_training.py --only accuracy`: {_origin(kept)}.\n"]
    return "\n".join(parts)


def figures(results: Path) -> dict[str, str]:
    """Return the figures that have rows, as SVG."""
    from claims.drawing import svg
    from training import figures as draw

    found = {}
    if page_of_accuracy.compared(rows := load(results)):
        found["accuracy"] = svg(page_of_accuracy.figure, rows)
    if stepped := newest("training-steps", results):
        found["training-steps"] = svg(draw.where_time_goes, stepped["rows"])
    if judged := newest("training-accuracy", results):
        found["training-bytes"] = svg(draw.bytes_and_scores, judged["rows"])
        found["training-curves"] = svg(draw.curves, judged["rows"])
    return found


def main() -> None:
    """Write the page and the figures, or check them."""
    write_or_check(page_and_figures("training.md", page(RESULTS), figures(RESULTS)))


if __name__ == "__main__":
    main()
