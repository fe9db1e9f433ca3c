"""Tables of docs/local.md."""

from __future__ import annotations

import math
from collections import defaultdict
from statistics import mean
from typing import Any

from accuracy.saved import load
from accuracy.workloads import WORKLOADS

Row = dict[str, Any]

DDP_RANKS = 8  # at most, of the compressed run beside them


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
        f"{first['ranks']} ranks on emulated links of {first['link']}, "
        f"{first['parameters'] / 1e6:.1f} M parameters, rounds of 30 steps. A step computes few "
        f"rows and waits until it has taken {first['step_time']:g} s:"
    )
    lines = [
        "| form | s per step | computing alone (s) | speed kept | exposed (s) |",
        "| --- | --- | --- | --- | --- |",
    ]
    lines += [
        f"| {r['form']} | {r['seconds'] / r['steps']:.2f} | {r['compute']:.2f} | "
        f"{r['speed']:.1%} | {r['exposed']:.1f} |"
        for r in rows
    ]
    return "\n".join([text, "", *lines, ""])


def loss_table(rows: list[Row]) -> str:
    """Return the mean score of each case beside that of the synchronous run."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        start = row.get("synchronous", 0) / WORKLOADS[row["network"]].steps
        case = (row["form"], row["every"], row["workers"], start)
        groups[row["network"], *case].append(row)
    lines = [
        (
            "| network | form | H | workers | synchronous start | seeds | score | vs synchronous | "
            "MB sent per rank |"
        ),
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for network in dict.fromkeys(row["network"] for row in rows):
        dense = mean(synchronous(network))
        metric = next(row["metric"] for row in rows if row["network"] == network)
        lines.append(
            f"| {WORKLOADS[network].title} ({metric}) | synchronous | 1 | any | | "
            f"{len(synchronous(network))} | {dense:.3f} | | |"
        )
        lines += _compressed_ddp(network, metric, dense)
        for (name, form, every, workers, start), found in groups.items():
            if name != network:
                continue
            scores = [row["score"] for row in found if row["score"] is not None]
            score = f"{mean(scores):.3f}" if scores else "diverged"
            change = difference(metric, scores, dense) if scores else ""
            sent = mean(row["sent"] for row in found) / 1e6
            lines.append(
                f"| | {form} | {every} | {workers} | {start:.0%} | {len(found)} | {score} | "
                f"{change} | {sent:.2f} |"
            )
    return "\n".join([*lines, ""])


def tried_table(rows: list[Row]) -> str:
    """Return the scores of single runs that the choice of settings is based on."""
    lines = [
        "| network | form | learning rate | synchronous start | score |",
        "| --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        start = row["synchronous"] / WORKLOADS[row["network"]].steps
        lines.append(
            f"| {WORKLOADS[row['network']].title} | {row['form']} | "
            f"x {row['learning_rate_factor']:g} | {start:.0%} | {row['score']:.3f} |"
        )
    return "\n".join([*lines, ""])


def difference(metric: str, scores: list[float], dense: float) -> str:
    """Return the difference to the synchronous run: of perplexities in percent, or in points."""
    if metric.startswith("accuracy"):
        return f"{mean(scores) - dense:+.2f} points"
    if metric.startswith("loss"):
        return f"perplexity {math.exp(mean(scores) - dense) - 1:+.1%}"
    return f"{mean(scores) / dense - 1:+.1%}"


def _compressed_ddp(network: str, metric: str, dense: float) -> list[str]:
    """Return a row for the recommended method under DDP, on 8 ranks or fewer."""
    rows = [
        row
        for row in load()
        if row["network"] == network
        and row["method"] == "recommended"
        and row["settings"] == WORKLOADS[network].settings
        and row["learning_rate"] == WORKLOADS[network].learning_rate
        and row["ranks"] <= DDP_RANKS
        and row["score"] is not None
    ]
    if not rows:
        return []
    ranks, built = max(row["ranks"] for row in rows), rows[-1]["built"]
    chosen = [row for row in rows if (row["ranks"], row["built"]) == (ranks, built)]
    if not chosen:
        return []
    score, sent = (mean(row[k] for row in chosen) for k in ("score", "sent"))
    return [
        (
            f"| | compressed DDP, `recommended` | 1 | {ranks} | | {len(chosen)} | {score:.3f} | "
            f"{difference(metric, [score], dense)} | {sent / 1e6:.2f} |"
        )
    ]


def synchronous(network: str) -> list[float]:
    """Return the scores of the dense runs at the chosen learning rate."""
    work = WORKLOADS[network]
    return [
        row["score"]
        for row in load()
        if row["network"] == network
        and row["method"] == "dense"
        and row["learning_rate"] == work.learning_rate
        and row["settings"] == work.settings
    ]


TABLES = {
    "local-encode": encode_table,
    "local-speed": speed_table,
    "local-loss": loss_table,
    "local-tried": tried_table,
}
FILES = {
    "local-encode": "local-encode",
    "local-speed": "local-speed",
    "local-loss": "local",
    "local-tried": "local-tried",
}
