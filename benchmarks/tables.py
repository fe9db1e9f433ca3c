"""Rewrite the tables of the documents from the measurements in benchmarks/results.

A section between `<!-- table: NAME -->` and `<!-- end -->` shows the newest file called
DATE-NAME.json; `readme` is a summary. With --check nothing is written, and the pages must
be up to date already.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "benchmarks.md")
RESULTS = ROOT / "benchmarks" / "results"
SECTION = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Row = dict[str, Any]


def newest(name: str) -> Path:
    """The file with the latest date in front of this name."""
    dated = re.compile(rf"\d{{4}}-\d\d-\d\d-{re.escape(name)}\.json")
    files = [path for path in RESULTS.iterdir() if dated.fullmatch(path.name)]
    if not files:
        raise SystemExit(f"tables: no measurement called DATE-{name}.json; run: make bench")
    return max(files)


def readme() -> str:
    """Dense against ours, in one row a job; the paper's ratio where it has one."""
    found = json.loads(newest("allreduce-8").read_text())
    rows = {row["algorithm"]: row for row in found["rows"] if row["density"] == 1}
    dense, ours = rows["mpi_allreduce"]["p50"] / 1e3, rows["auto"]["p50"] / 1e3
    head = ["job, measured on one machine with 2 cores", "dense", "ours", "ratio"]
    line = ["allreduce of 16 M float32 at 1 %, 8 MPI ranks, shared memory"]
    line += [f"{dense:.0f} ms (MPICH)", f"{ours:.0f} ms", f"{dense / ours:.1f}x"]
    table = markdown([*head, "the paper's ratio"], [[*line, "not published"]])
    return f"\n{table}\n`make bench docs` measures it anew.\n\n"


def section(name: str) -> str:
    """The table and where its numbers come from."""
    if name == "readme":
        return readme()
    found = json.loads(newest(name).read_text())
    facts, rows = found["environment"], found["rows"]
    wrong = sum(bool(row["wrong"]) for row in rows)
    if wrong:
        raise SystemExit(f"tables: {name} has wrong results in {wrong} rows; not shown")
    make = kernels if name == "kernels" else allreduce
    keys = ("date", "commit", "cpu", "isa", "numpy", "mpi")
    origin = ", ".join(f"{key} {facts[key]}" for key in keys if key in facts)
    command = "kernels" if name == "kernels" else "allreduce"
    line = f"`sparcml bench {command} {facts['options']}`: {origin}."
    return f"\n{make(rows)}\n{line}\n{len(rows)} rows, all of them checked.\n\n"


def kernels(rows: list[Row]) -> str:
    """One line a kernel: times on the best instruction set, rates on all."""
    best, *others = dict.fromkeys(row["isa"] for row in rows)
    rate = {(row["kernel"], row["isa"]): row["rate"] for row in rows}
    head = ["kernel", "entries", "median (us)", f"rate, {best}"]
    head += [f"rate, {isa}" for isa in others]
    head += ["unit", "B/entry", "time/peer", "peer", "floor", "met"]
    lines = []
    for row in rows:
        if row["isa"] == best:
            cells = [row["kernel"], shown(row["size"]), shown(row["median"], ".1f")]
            cells += [shown(rate[row["kernel"], isa], ".2f") for isa in (best, *others)]
            cells += [row["unit"], shown(row["entry_bytes"], ".2f")]
            cells += [shown(row["over_peer"], ".2f"), row["peer"]]
            lines.append([*cells, shown(row["floor"]), shown(row["met"])])
    return markdown(head, lines)


def allreduce(rows: list[Row]) -> str:
    """One line a row, in milliseconds and megabytes."""
    head = ["algorithm", "size (MB)", "density (%)", "wire (MB)", "ratio", "min (ms)"]
    head += ["p50 (ms)", "p99 (ms)", "algbw (GB/s)", "busbw (GB/s)", "vs MPI"]
    lines = []
    for row in rows:
        name, choice = row["algorithm"], row["choice"]
        wire = None if row["wire"] is None else row["wire"] / 1e6
        cells = [name if name == choice else f"{name}: {choice}"]
        cells += [shown(row["size"] / 1e6, ".1f"), shown(row["density"], "g")]
        cells += [shown(wire, ".2f"), shown(row["ratio"], ".1f")]
        cells += [shown(row[key] / 1e3, ".1f") for key in ("min", "p50", "p99")]
        cells += [shown(row[key], ".2f") for key in ("algbw", "busbw", "speedup")]
        lines.append(cells)
    return markdown(head, lines)


def shown(value: Any, spec: str = "") -> str:
    """As text; what is not known stays empty."""
    return "" if value is None else format(value, spec)


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """A table with names to the left and numbers to the right."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, rule, *lines])


def main() -> None:
    """Write the pages, or check them."""
    for page in PAGES:
        old = page.read_text()
        new = SECTION.sub(lambda m: m[1] + section(m[2]) + m[3], old)
        if "--check" not in sys.argv[1:]:
            page.write_text(new)
        elif new != old:
            raise SystemExit(f"tables: {page.name} is out of date; run: make docs")


if __name__ == "__main__":
    main()
