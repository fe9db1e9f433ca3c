"""The table of measured steps in docs/decentralized.md, from run_decentralized_step.py."""

from __future__ import annotations

from statistics import median
from typing import Any

from tables import markdown, newest

RANKS = (4, 8)
COMMAND = "sparcml run -n {} --network 100mbit benchmarks/run_decentralized_step.py"


def measured(ranks: int) -> Any:
    """Return the newest file of a number of ranks."""
    found = newest(f"decentralized-step-{ranks}")
    if found is None:
        raise SystemExit(
            f"decentralized_page: no file named DATE-decentralized-step-{ranks}.json; run: "
            f"{COMMAND.format(ranks)} --json FILE"
        )
    return found


def steps(rows: list[dict[str, Any]]) -> str:
    """Return the time of a step by ranks and method, compared with its wire time."""
    del rows
    head = [
        "ranks",
        "method",
        "bytes sent per rank",
        "wire time (s)",
        "step (s)",
        "range (s)",
    ]
    head += [
        "vs wire time",
        "processor time per rank (s)",
        "time vs D-PSGD",
        "with a core per rank",
        "bytes vs D-PSGD",
    ]
    lines = []
    for ranks in RANKS:
        found = measured(ranks)["rows"]
        for row in found:
            time, base = median(row["seconds"]), median(found[0]["seconds"])
            lines.append(
                [
                    str(ranks),
                    row["method"],
                    f"{row['bytes']:,}",
                    f"{row['wire']:.2f}",
                    f"{time:.2f}",
                    f"{min(row['seconds']):.2f} to {max(row['seconds']):.2f}",
                    f"{time / row['wire']:.2f}x",
                    f"{median(row['cpu']):.2f}",
                    f"{base / time:.1f}x less",
                    f"{_alone(found[0]) / _alone(row):.1f}x less",
                    f"{found[0]['bytes'] / row['bytes']:.1f}x less",
                ]
            )
    facts = {ranks: measured(ranks)["environment"] for ranks in RANKS}
    runs = "; ".join(
        f"{ranks} ranks: {each['date']}, commit {each['commit']}, medians of "
        f"{', '.join(str(len(row['seconds'])) for row in measured(ranks)['rows'])} steps"
        for ranks, each in facts.items()
    )
    note = (
        f"`{COMMAND.format(4)}` and `-n 8`. {runs}. {row['parameters']:,} parameters; cpu "
        f"{facts[RANKS[0]]['cpu']}, which all ranks share."
    )
    return f"{markdown(head, lines)}\n{note}\n"


def _alone(row: dict[str, Any]) -> float:
    """Return the time of a step if ranks do not share cores: that of the wire and of the core."""
    return float(row["wire"] + median(row["cpu"]))
