"""Tables about single processes: how long they start, what a training step takes."""

from __future__ import annotations

from typing import Any

from tables import markdown, shown

Row = dict[str, Any]


def large_tensor(rows: list[Row]) -> str:
    """Return one row per method: time and peak memory of a step, and ratios to plain DDP."""
    head = [
        "method",
        "step (s)",
        "of plain DDP",
        "processor (s)",
        "peak (GB)",
        "of plain DDP",
    ]
    lines = [
        [
            f"`{row['settings']}`" if row["settings"] != "None" else row["method"],
            shown(row["seconds"], ".2f"),
            shown(row["time_ratio"], ".2f"),
            shown(row["processor"], ".2f"),
            shown(row["peak"] / 1e9, ".2f"),
            shown(row["peak_ratio"], ".2f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)


def threads(rows: list[Row]) -> str:
    """Return one row per task: its time on one thread and on all."""
    head = ["task", "1 thread (ms)", f"{rows[0]['threads']} threads (ms)", "speedup"]
    lines = [
        [
            row["task"],
            shown(row["one"] * 1e3, ".1f"),
            shown(row["all"] * 1e3, ".1f"),
            f"{row['speedup']:.2f}x",
        ]
        for row in rows
    ]
    return markdown(head, lines)


def linear_ranks(rows: list[Row]) -> str:
    """Return one row per number of processes: the time of an epoch."""
    head = ["processes", "epoch (ms)", "in allreduces (ms)", "times one process"]
    lines = [
        [
            shown(row["ranks"]),
            shown(row["epoch"] * 1e3, ".0f"),
            shown(row["communicating"] * 1e3, ".0f"),
            shown(row["times"], ".2f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)


def link(rows: list[Row]) -> str:
    """Return one row per density and format: how much of the link an allreduce uses."""
    head = ["density (%)", "values", "sent (MB)", "link (ms)", "time (ms)", "% of link"]
    lines = [
        [
            shown(100 * row["density"], "g"),
            "lossless" if row["bits"] is None else f"{row['bits']}-bit",
            shown(row["bytes"] / 1e6, ".2f"),
            shown(1e3 * row["bytes"] / row["link"], ".0f"),
            shown(1e3 * row["seconds"], ".0f"),
            shown(100 * row["of_link"], ".0f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)


def startup(rows: list[Row]) -> str:
    """Return one row per program that was started."""
    head = ["program", "wall (ms)", "processor (ms)", "more than `import numpy` (ms)"]
    lines = [
        [
            f"`{row['program']}`",
            shown(row["wall"], ".0f"),
            shown(row["processor"], ".0f"),
            shown(row["over_numpy"], "+.0f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)


def latency(rows: list[Row]) -> str:
    """Return short collectives against MPI's, and sparse sums on links by version."""
    blocks = []
    versions = sorted({row["version"] for row in rows}, reverse=True)  # ours, before
    for ranks in sorted({r["ranks"] for r in rows if r["job"] == "shared memory"}):
        found = {
            (r["version"], r["case"]): r
            for r in rows
            if r["ranks"] == ranks and r["job"] == "shared memory"
        }
        head = [f"{ranks} ranks, shared memory", "us", "processor (us)", "times MPI's"]
        lines = []
        for version in versions:
            for (of, case), row in found.items():
                if of != version or (case.startswith("MPI") and version != "ours"):
                    continue
                name = case if version == "ours" else f"{case}, {version}"
                ratio = row["seconds"] / found[version, _own(case)]["seconds"]
                cells = [shown(row[key] * 1e6, ".1f") for key in ("seconds", "cpu")]
                lines.append([name, *cells, shown(ratio, ".2f")])
        blocks.append(markdown(head, lines))
    blocks.append(phases(rows))
    blocks.append(_links([row for row in rows if row["job"] == "network"]))
    return "\n".join(blocks)


def torch_latency(rows: list[Row]) -> str:
    """Return short collectives against gloo's, and the processor use of waiting ranks."""
    blocks = []
    for ranks in sorted({row["ranks"] for row in rows}):
        found = {row["case"]: row for row in rows if row["ranks"] == ranks}
        head = [f"{ranks} torch ranks, loopback", "us", "processor (us)", "times gloo's"]
        lines = []
        for case, row in found.items():
            own = case
            if not case.startswith("gloo"):
                own = "gloo's barrier" if case == "barrier" else "gloo's allreduce, 4 kB"
            cells = [shown(row[key] * 1e6, ".0f") for key in ("seconds", "cpu")]
            lines.append(
                [case, *cells, shown(row["seconds"] / found[own]["seconds"], ".2f")]
            )
        idle = 100 * next(iter(found.values()))["idle"]
        lines.append(["a waiting rank, after one second", "", f"{idle:.1f} %", ""])
        blocks.append(markdown(head, lines))
    return "\n".join(blocks)


def _own(case: str) -> str:
    """Return MPI's collective that a case is compared with."""
    if case == "barrier":
        return "MPI_Barrier"
    if case.startswith("native"):
        return case.replace("native", "MPI_Allreduce")
    return case if case.startswith("MPI") else "MPI_Allreduce, 8 bytes"


def _links(rows: list[Row]) -> str:
    head = [
        "8 ranks, emulated 1 Gbit/s",
        "auto (ms)",
        "processor (ms)",
        "best by name (ms)",
    ]
    head += ["before: auto (ms)", "processor (ms)", "time", "processor time"]
    lines = []
    for case in dict.fromkeys(row["case"] for row in rows):
        here = {(r["version"], r["algorithm"]): r for r in rows if r["case"] == case}
        ours = here["ours", "auto"]
        best = min(
            r["seconds"] for (v, a), r in here.items() if v == "ours" and a != "auto"
        )
        line = [case, *(shown(ours[k] * 1e3, ".2f") for k in ("seconds", "cpu"))]
        line.append(shown(best * 1e3, ".2f"))
        if before := here.get(("before", "auto")):
            line += [shown(before[k] * 1e3, ".2f") for k in ("seconds", "cpu")]
            line += [shown(ours[k] / before[k], ".2f") for k in ("seconds", "cpu")]
        else:
            line += ["-"] * 4
        lines.append(line)
    return markdown(head, lines)


def phases(rows: list[Row]) -> str:
    """Return the time of one call by phase, before and after."""
    names = ("encode", "send", "wait", "decode", "add")
    head = ["call, 2 ranks", "total (us)", *names, "arguments, selection, result"]
    lines = []
    for row in rows:
        if row["ranks"] == 2 and row.get("phases"):
            parts = [row["phases"][name] * 1e6 for name in names]
            total = row["phases"]["total"] * 1e6
            cells = [shown(v, ".1f") for v in (total, *parts, total - sum(parts))]
            lines.append([f"{row['case']}, {row['version']}", *cells])
    return markdown(head, lines)
