"""Write docs/methods.md and its figure from the registries, the texts and the saved rows.

With --check it writes nothing, and fails unless the page is up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from accuracy.saved import load
from accuracy.summary import by_optimizer, expectations
from claims import three_questions
from claims.gradient_error import figure
from methods import ROSTER, TEXTS, Entry, Text
from methods.texts import INSTANCES, ONE_FRAME
from tables import markdown, newest
from written import page_and_figures, write_or_check

from sparcml.aggregate import METHODS
from sparcml.quantize import QUANTIZERS
from sparcml.sparsify import SPARSIFIERS

RESULTS = Path(__file__).resolve().parent / "results"
FIGURE = "methods"

Row = dict[str, Any]

INTRODUCTION = """\
# Methods

`make docs` generates this page from `benchmarks/methods`, the rows of accuracy and the newest rows
of claim 7. Three questions decide on a method: how much does it compress, does it converge, does it
need tuning?
"""

READING = """\
A network of two layers on Fashion-MNIST, plain SGD, {ranks} ranks, {steps} steps, mean of
{seeds} seeds ([claims.md](claims.md), claim 7).

- *Compression ratio*: bytes sent by all ranks, dense / ours, including small parameters and
  headers. The sum of sparse vectors gets denser with more ranks, so the ratio of a run is below
  that of a single message.
- *Selected norm*: fraction of the norm of the corrected gradient (residual + gradient) that was
  selected, over all steps.
- *Converges*: the theorem, and the test in `tests` that checks its assumptions.
- *Accuracy*: on the test set, at the learning rate of the dense runs, minus that of dense runs of
  the same seeds, in points with its standard error; of dense runs the accuracy itself. **Bold**:
  at most a point below. The loss is relative to the dense one.
"""

EXPECTED = """\
## Accuracy by optimizer

Difference of the final score to dense runs, mean and standard error of at least three seeds, and
the compression ratio of the full run, on 2 ranks. **Bold**: within the tolerance of the network.
Positive is better. *x6*: at that multiple of the dense learning rate, which is used otherwise.
[training.md](training.md) has the settings, more ranks and figures.
"""

UNKNOWN = "the table at the top, under plain SGD; not measured under momentum or Adam"

NAMES = """\
## Names

Registered sparsifiers, quantizers and aggregation methods. `sparcml fit --compress` accepts the
specification, for example `topk:0.01,qsgd:4`. Message headers carry the value formats of a
quantizer.
"""


def page(results: Path) -> str:
    """Return the page."""
    data = newest(three_questions.CLAIM.file, results)
    parts = [INTRODUCTION]
    if data is None:
        parts.append(f"No data; run `{three_questions.CLAIM.command}`.\n")
    else:
        parts += [questions(data["rows"]), _notes(data["rows"]), _origin(data)]
    parts += [
        EXPECTED,
        by_optimizer(load(results)) or "No data; run `make bench-accuracy`.\n",
    ]
    expected = expectations(load(results))
    for title, texts in TEXTS.items():
        parts += [f"## {title}\n", *(section(text, expected) for text in texts)]
    parts += [ONE_FRAME, instances(), NAMES, names()]
    if data is not None:
        parts.append(errors(data["rows"]))
    return "\n".join(parts)


def questions(rows: list[Row]) -> str:
    """Return the table at the top of the page."""
    head = [
        "method",
        "compression ratio",
        "selected norm",
        "converges",
        "test",
        "accuracy",
        "loss",
    ]
    lines = [_line(entry, rows) for entry in ROSTER]
    return markdown(head, lines).replace("--:", ":--", 4)


def _line(entry: Entry, rows: list[Row]) -> list[str]:
    ours, dense = (three_questions.scanned(rows, n) for n in (entry.name, "Dense"))
    ratio = three_questions.mean(dense, "sent") / three_questions.mean(ours, "sent")
    cells = [entry.name + ("" if entry.rate == 1 else f" (learning rate x {entry.rate:g})")]
    cells += [f"{ratio:.1f}x", _share(three_questions.mean(ours, "share"))]
    cells += [entry.theorem, f"`{entry.test}`"]
    cells.append(_accuracy(rows, entry.name))
    loss = three_questions.mean(ours, "loss") / three_questions.mean(dense, "loss")
    return [*cells, f"{loss:.3f}" if np.isfinite(loss) else "diverged"]


def _share(share: float) -> str:
    return f"{share:.2f}" if share <= 1 else ""  # scaled values exceed the norm


def _accuracy(rows: list[Row], name: str) -> str:
    if name == "Dense":
        runs = three_questions.scanned(rows, name)
        return f"{100 * three_questions.mean(runs, 'accuracy'):.1f} %"
    apart, error = three_questions.difference(rows, name)
    text = f"{100 * apart:+.2f} ± {100 * error:.2f}"
    return f"**{text}**" if three_questions.keeps(rows, name) else text


def _notes(rows: list[Row]) -> str:
    special = [e for e in ROSTER if e.rate != 1]
    names = " and ".join(f"{e.name} at {e.rate:g}" for e in special)
    text = READING.format(**three_questions.SCAN, seeds=len(three_questions.SEEDS))
    return (
        f"{text}\n{names} times this learning rate: the mean of the former includes momentum, "
        f"which makes steps ten times longer; the latter returns a direction, not a mean.\n\n"
        f"Criteria on both workloads, 8 ranks, three seeds, no tuning:\n\n"
        f"{three_questions.losses(rows)}\n![losses](figures/three-questions.svg)\n"
    )


def _origin(data: dict[str, Any]) -> str:
    facts = data["environment"]
    keys = ("date", "commit", "cpu", "isa", "numpy", "python", "seed")
    origin = ", ".join(f"{key} {facts[key]}" for key in keys)
    return f"`{three_questions.CLAIM.command}`: {origin}.\n"


def section(text: Text, expected: dict[str, str]) -> str:
    """Return the section of one method.

    Args:
        text: Its descriptions.
        expected: Results by class, see `expectations`.
    """
    name = text.title.partition("(")[0]
    return (
        f"### {text.title}\n\n"
        f"- **Computes:** {text.formula}.\n"
        f"- **Size:** {text.size}.\n"
        f"- **Guarantees:** {text.promise}.\n"
        f"- **Use:** {text.use}.\n"
        f"- **Expect:** {expected.get(name, UNKNOWN)}.\n"
        f"- **Reference:** {text.reference}.\n"
    )


def instances() -> str:
    """Return the table of methods of the literature as settings of `Compressed`."""
    head = ["method", "instance", "note"]
    lines = [[name, f"`{code}`", text] for name, code, text in INSTANCES]
    return markdown(head, lines).replace("--:", ":--")


def names() -> str:
    """Return the table of all registered classes."""
    head = ["specification", "class", "family", "value formats"]
    lines = []
    for registry in (SPARSIFIERS, QUANTIZERS, METHODS):
        for name, cls in registry.items():
            formats = ", ".join(map(str, getattr(cls, "wire_formats", ())))
            text = f"{name}:{cls.option}" if cls.option else name
            lines.append([f"`{text}`", f"`{cls.__name__}`", registry.family, formats])
    return markdown(head, lines).replace("--:", ":--")


def errors(rows: list[Row]) -> str:
    """Return the figure of error against bytes, and its table."""
    found = [row for row in rows if row["what"] == "error"]
    head = ["code", "bytes", "bits per value", "relative error", "bias"]
    lines = [
        [
            f"`{row['method']}`",
            f"{row['nbytes']:,.0f}",
            f"{8 * row['nbytes'] / row['size']:.2f}",
            f"{row['error']:.4f}",
            f"{row['bias']:+.4f}",
        ]
        for row in found
    ]
    return (
        f"## Error against bytes\n\n"
        f"Gradients of a real network, {found[0]['size']:,} values: the first layer of the "
        f"network above, after 200 steps, mean of {found[0]['seeds']} seeds. The errors are those "
        f"of one message; error feedback adds them to the next one. Bias is the relative error in "
        f"the direction of the gradient: about 0 for unbiased codes, and minus the fraction of the "
        f"squared norm that "
        f"was not selected for sparsifiers.\n\n"
        f"![error against bytes](figures/{FIGURE}.svg)\n\n{markdown(head, lines)}"
    )


def figures(results: Path) -> dict[str, str]:
    """Return the figure as SVG, if there are rows."""
    from claims.drawing import svg

    data = newest(three_questions.CLAIM.file, results)
    return {} if data is None else {FIGURE: svg(figure, data["rows"])}


def main() -> None:
    """Write the page and the figure, or check them."""
    write_or_check(page_and_figures("methods.md", page(RESULTS), figures(RESULTS)))


if __name__ == "__main__":
    main()
