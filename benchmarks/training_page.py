"""Write docs/training.md and its figures from the rows in benchmarks/results.

With --check nothing is written, and the page must be up to date already.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tables import newest
from training import pages
from training.judge import scores
from training.roster import NETWORKS, RANKS, WIDE
from written import page_and_figures, write_or_check

RESULTS = Path(__file__).resolve().parent / "results"

INTRODUCTION = f"""\
# Training networks

The networks of `examples/torch`, trained by DDP over gloo: plain, with torch's own hooks, and with
`sparcml.torch.compress`. Learning rate, momentum and batches are those of the dense run for all of
them. Three things were chosen after first runs had shown scores of some methods: DGC's warm-up (a
fortieth of the steps, first an eightieth), the tagger's epochs (8, first 4) and that the language
model has no output biases. `make bench-training` measures, a job a row, and can be
ended and started again; `make docs` writes this page from the newest rows. Nobody types
the numbers.

- **Steps** are *emulated*: 4 or 8 ranks of the large network, {RANKS} of the others, on 2
  cores, each behind a link of its own. All ranks begin a step together, and the slowest one
  counts. *Communication off* is the same step under `no_sync`, measured in between in the same
  job; what a step takes on top of it is *exposed*: waiting for sums, and selecting and coding as
  far as these are not hidden. The *ceiling* is what a method without any communication would
  gain. Four ranks share two cores here; on machines of their own computing takes a part of
  that, and the gain is larger.
- **Scores** are *measured* on {RANKS} ranks without emulated links, which change times and no
  bit of the result. Bytes are those of the whole run, small dense tensors and warm-ups
  included; those of torch's own sums are reckoned as a ring's.
- torch's PowerSGD hook gets one bucket, and begins at the third step. With several buckets over
  gloo its sums come in different orders on different ranks, and the job ends.
"""

UNCOUNTED = """\
Bytes of our methods at 4 ranks are from before `handle.stats` counted the sums that gloo makes of
small dense tensors, here some 0.1 MB a step; the times have them.
"""

PRODUCT = """\
Time to a score: steps (measured) times the seconds of a step (emulated), a product and not a run
of its own.
"""

CHECK = """\
## The product, checked

One epoch trained behind the links, *emulated*, against its steps times the median step.
"""


def page(results: Path) -> str:
    """The whole page."""
    stepped, judged = (
        newest(f"training-{part}", results) for part in ("steps", "accuracy")
    )
    parts = [INTRODUCTION]
    if stepped:
        parts += [_steps(stepped)]
    if judged:
        parts += [_scores(judged, stepped["rows"] if stepped else [])]
    if (epochs := newest("training-epoch", results)) and stepped and judged:
        table = pages.checked(epochs["rows"], judged["rows"], stepped["rows"])
        parts += [CHECK, table]
    if not stepped or not judged:
        parts += ["No data kept yet for some of it; run `make bench-training`.\n"]
    return "\n".join(parts)


def _origin(kept: dict[str, Any]) -> str:
    keys = ("date", "commit", "cpu", "isa", "numpy", "python", "torch")
    return ", ".join(f"{key} {kept['environment'][key]}" for key in keys)


def _steps(kept: dict[str, Any]) -> str:
    rows = kept["rows"]
    return (
        f"## Steps of an LSTM of 20 million parameters\n\n"
        f"The ATIS tagger with two layers of 1,200 units, 4 sentences of each rank in a step; "
        f"medians, emulated.\n\n{pages.steps(rows, WIDE)}\n{UNCOUNTED}\n"
        f"![Where a step's time goes](figures/training-steps.svg)\n\n"
        f"Against what it must reach:\n\n{pages.wanted(rows)}\n"
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
    """The pictures there are rows for, as SVG."""
    from claims.drawing import svg
    from training import figures as draw

    found = {}
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
