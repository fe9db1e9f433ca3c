"""Write docs/training.md, its figures and the table of evidence from benchmarks/results.

With --check it writes nothing, and fails unless the page is up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from accuracy import evidence
from accuracy import page as page_of_accuracy
from accuracy.saved import load
from tables import newest
from training import pages
from training.roster import RANKS, WIDE
from written import page_and_figures, write_or_check

from sparcml.aggregate.evidence import TABLE

RESULTS = Path(__file__).resolve().parent / "results"

INTRODUCTION = """\
# Training networks

Two experiments with the networks of `examples/torch`. `make docs` generates this page from the
saved rows.

- **Accuracy** is *measured*: scores and bytes of full runs, compared with dense runs of the same
  seeds. `make bench-accuracy` runs it. Links affect times but not results, so none are emulated.
- **Steps** are *emulated*: the time of a step under DDP over gloo, plain, with torch's hooks, and
  with `sparcml.torch.compress`, on slow links. `make bench-training` runs it.
"""

STEPS = f"""\
## Steps

4 or 8 ranks of a large network and {RANKS} ranks of the others share 2 cores, with one emulated
link per rank. All ranks start a step at the same time, and the slowest one counts.

- *Communication off* is the same step under `no_sync`, measured in the same job.
- *Exposed* is the rest of a step: waiting for the allreduce, selecting and encoding, unless they
  overlap with the backward pass.
- The *ceiling* is the speedup of a method without any communication. Four ranks share two cores
  here; on separate machines computing takes a fraction of that time, and the speedup is larger.
- torch's PowerSGD hook uses one bucket, and starts at the third step. With several buckets over
  gloo, ranks call its allreduces in different orders, and the job fails.
"""

UNCOUNTED = """\
The bytes of our methods at 4 ranks do not include gloo's allreduce of small dense tensors, here
about 0.1 MB per step, which `handle.stats` did not count then; the times include it.
"""


def page(results: Path) -> str:
    """Return the page."""
    stepped = newest("training-steps", results)
    steps = _steps(stepped) if stepped else "No data; run `make bench-training`.\n"
    return "\n".join([INTRODUCTION, page_of_accuracy.section(load(results)), STEPS, steps])


def _origin(kept: dict[str, Any]) -> str:
    keys = ("date", "commit", "cpu", "isa", "numpy", "python", "torch")
    return ", ".join(f"{key} {kept['environment'][key]}" for key in keys)


def _steps(kept: dict[str, Any]) -> str:
    rows = kept["rows"]
    return (
        f"### LSTM of 20 million parameters\n\n"
        f"The ATIS tagger with two layers of 1,200 units, 4 sentences per rank and step; "
        f"medians.\n\n{pages.steps(rows, WIDE)}\n{UNCOUNTED}\n"
        f"![Time of a step](figures/training-steps.svg)\n\n"
        f"Targets:\n\n{pages.wanted(rows)}\n"
        f"### Other networks\n\n{RANKS} ranks; medians.\n\n{pages.others(rows)}\n"
        f"`python benchmarks/all_training.py`: {_origin(kept)}.\n"
    )


def figures(results: Path) -> dict[str, str]:
    """Return the figures that have rows, as SVG."""
    from claims.drawing import svg
    from training import figures as draw

    found = page_of_accuracy.figures(load(results))
    if stepped := newest("training-steps", results):
        found["training-steps"] = svg(draw.where_time_goes, stepped["rows"])
    return found


def main() -> None:
    """Write the page and the figures, or check them."""
    files = page_and_figures("training.md", page(RESULTS), figures(RESULTS))
    write_or_check(files | {TABLE: evidence.table(load(RESULTS))})


if __name__ == "__main__":
    main()
