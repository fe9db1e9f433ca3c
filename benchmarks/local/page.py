"""Tables of docs/local.md."""

from __future__ import annotations

from statistics import mean
from typing import TYPE_CHECKING, Any

from .forms import FORMS, SYNCHRONOUS
from .losses import COMPRESSED, cases, compressed, synchronous
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from .losses import Case

Row = dict[str, Any]


def encode_table(rows: list[Row]) -> str:
    """Return the time and the bytes of a SparseLoCo message."""
    first = rows[0]
    lines = ["| work | ms | copies of the vector |", "| --- | --- | --- |"]
    lines += [
        f"| {r['work']} | {1e3 * r['seconds']:.1f} | {r['copies']:.2f} |" for r in rows
    ]
    text = (
        f"{first['values']:,} values, 64 of 4096, are a message of {first['bytes']:,} bytes: "
        f"{first['ratio']:.1f} times fewer than float32, indices included. On one core, measured:"
    )
    return "\n".join([text, "", *lines, ""])


def speed_table(rows: list[Row]) -> str:
    """Return the speed relative to computation alone."""
    first = rows[0]
    text = (
        f"{first['ranks']} ranks on emulated links, {first['parameters'] / 1e6:.1f} M parameters, "
        f"one round of 30 steps after two others (dense DDP: 2 steps). A step computes the "
        f"gradient of two words and waits until it has taken {first['step_time']:g} s:"
    )
    lines = [
        (
            "| link | form | s per step | compute only (s) | speed kept | exposed per step (s) | "
            "MB sent per step |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['link']} | {r['form']} | {r['seconds'] / r['steps']:.2f} | {r['compute']:.2f} | "
        f"{r['speed']:.1%} | {r['exposed'] / r['steps']:.3f} | "
        f"{r['sent'] / r['steps'] / 1e6:.3f} |"
        for r in sorted(rows, key=lambda r: r["link"] != first["link"])
    ]
    return "\n".join([text, "", *lines, ""])


def loss_table(rows: list[Row]) -> str:
    """Return the score of each case beside that of the synchronous runs of its seeds."""
    lines = [
        (
            "| network | form | H | workers | synchronous start | seeds | score | "
            "vs synchronous | MB sent per rank |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    made = [case for case in cases(rows) if case.form != SYNCHRONOUS]
    for network in dict.fromkeys(row["network"] for row in rows):
        dense = synchronous(network, rows)
        metric = next(row["metric"] for row in rows if row["network"] == network)
        lines.append(
            f"| {WORKLOADS[network].title} ({metric}) | synchronous | 1 | any | | {len(dense)} | "
            f"{mean(dense.values()):.3f} | | |"
        )
        here = [case for case in made if case.network == network]
        lines += map(_line, [*compressed(network, rows), *sorted(here, key=_place)])
    return "\n".join([*lines, ""])


def _place(case: Case) -> tuple[Any, ...]:
    return (list(FORMS).index(case.form), case.start, case.workers, case.every)


def _line(case: Case) -> str:
    score = "" if case.score is None else f"{case.score:.3f}"
    start = "" if case.form == COMPRESSED else f"{case.start:.0%}"
    return (
        f"| | {case.form} | {case.every} | {case.workers} | {start} | {case.seeds} | {score} | "
        f"{case.text()} | {case.sent / 1e6:.2f} |"
    )


def pilot_table(rows: list[Row]) -> str:
    """Return the runs that the choice of settings is based on."""
    lines = [
        "| network | method | changes | H | workers | synchronous start | seeds | vs synchronous |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    about = {(row["network"], row["form"], row["every"]): row for row in rows}
    for case in cases(rows):
        row = about[case.network, case.form, case.every]
        name = row["method"].replace(", quantize=Codebook()", "")
        what = SYNCHRONOUS if case.form.startswith(SYNCHRONOUS) else f"`{name}`"
        lines.append(
            f"| {case.network} | {what} | {row['changes']} | {case.every} | {case.workers} | "
            f"{case.start:.0%} | {case.seeds} | {case.text()} |"
        )
    return "\n".join([*lines, ""])


TABLES = {
    "local-encode": encode_table,
    "local-speed": speed_table,
    "local-loss": loss_table,
    "local-pilots": pilot_table,
}
FILES = {
    "local-encode": "local-encode",
    "local-speed": "local-speed",
    "local-loss": "local",
    "local-pilots": "local-pilots",
}
