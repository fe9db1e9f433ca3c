"""Rewrite the tables of the documents from the measurements in benchmarks/results.

A section between `<!-- table: NAME -->` and `<!-- end -->` shows the newest file named
DATE-NAME.json; `readme` is a summary. With --check it writes nothing, and fails unless the
pages are up to date.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from peers import table as peers_table
from written import DOCS, write_or_check

from sparcml.bench.results import label

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    ROOT / "README.md",
    *(DOCS / f"{name}.md" for name in ("benchmarks", "network", "linear", "torch")),
)
RESULTS = ROOT / "benchmarks" / "results"
SECTION = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)

Row = dict[str, Any]

# Results that version 0.1 wrote name settings as that version did.
RENAMED = {
    '"Blocks(': '"BlockTopK(',
    "Exponential(rate=": "ExponentialDecay(learning_rate=",
    "Inverse(rate=": "InverseDecay(learning_rate=",
    "Constant(rate=": "Constant(learning_rate=",
    "), batch=": "), batch_size=",
}


def newest(name: str, results: Path = RESULTS) -> Any:
    """Return the content of the newest file of a name; None without one."""
    dated = re.compile(rf"\d{{4}}-\d\d-\d\d-{re.escape(name)}\.json")
    files = [path for path in results.glob("*.json") if dated.fullmatch(path.name)]
    if not files:
        return None
    text = max(files).read_text()
    for old, new in RENAMED.items():
        text = text.replace(old, new)
    return json.loads(text)


def measured(name: str) -> Any:
    """Return the same for a table that must exist."""
    if (found := newest(name)) is None:
        target = "bench"
        if name.startswith(("cluster", "overlap", "predict")):
            target = "bench-cluster"
        elif name.startswith(("table2", "scd")):
            target = "bench-linear"
        elif name == "linear-peers":
            target = "bench-peers"
        elif name.startswith(("auto", "embedding", "large-tensor", "torch-latency")):
            target = "bench-torch"
        raise SystemExit(f"tables: no file named DATE-{name}.json; run: make {target}")
    return found


BITS_8 = ("QSGD8", "Byte")  # the names of 8-bit values, newest first


def is_coded(row: Row, coding: tuple[str, ...] | None) -> bool:
    """Return whether the values of a row were quantized so; None means not at all."""
    return row["quantize"] in coding if coding else row["quantize"] is None


def readme() -> str:
    """Return the summary of the README: time of a dense and of our allreduce."""
    rows = measured("cluster-8")["rows"]
    lines = []
    for density, coding in ((0.1, None), (1, None), (10, None), (1, BITS_8), (10, BITS_8)):
        here = [row for row in rows if row["density"] == density]
        dense = min(row["p50"] for row in here if row["wire"] is None)
        (ours,) = (
            row["p50"]
            for row in here
            if row["algorithm"] == "auto" and is_coded(row, coding)
        )
        values = "8-bit values" if coding else "lossless"
        times = [f"{dense / 1e3:.0f} ms", f"{ours / 1e3:.0f} ms"]
        lines.append([f"{density:g} %, {values}", *times, f"{dense / ours:.1f}x"])
    table = markdown(["density", "dense (gloo)", "sparcml", "speedup"], lines)
    note = (
        "Median time of an allreduce of 16 M float32 values, 8 ranks on 2 cores, emulated links "
        "of 1 Gbit/s each.\n`make bench-cluster docs` measures it again."
    )
    return f"\n{table}\n{note}\n\n"


COMMANDS = {
    "kernels": "python benchmarks/run_kernels.py",
    "compress": "python benchmarks/run_compression.py",
    "overlap": "python benchmarks/run_overlap.py",
    "rates": "python benchmarks/run_rates.py",
    "reading": "python benchmarks/run_reading.py",
    "linear-peers": "python benchmarks/run_linear_peers.py",
    "simulate": "python benchmarks/run_simulate.py",
    "startup": "python benchmarks/run_startup.py",
    "threads": "python benchmarks/run_threads.py",
    "linear-ranks": "python benchmarks/run_linear_ranks.py",
    "link-100mbit": "sparcml run -n 8 --network 100mbit benchmarks/run_link.py",
    "large-tensor": "python benchmarks/run_large_tensor.py",
    "latency": "python benchmarks/run_latency.py --against FOLDER",
    "torch-latency": "python benchmarks/run_torch_latency.py",
    "predict-1gbit": "sparcml run -n 8 --network 1gbit benchmarks/run_predict.py",
    "predict-100mbit": "sparcml run -n 8 --network 100mbit benchmarks/run_predict.py",
    "table2": "sparcml run -n 8 --network 1gbit benchmarks/run_table2.py",
    "table2-100mbit": "sparcml run -n 8 --network 100mbit benchmarks/run_table2.py",
    "scd": "sparcml run -n 8 --network 1gbit benchmarks/run_scd.py",
    "auto": "sparcml run --engine torch -n 2 benchmarks/run_auto.py",
    "auto-100mbit": "sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_auto.py",
    "auto-gpt": "sparcml run --engine torch -n 2 --network 100mbit benchmarks/run_auto.py",
    "embedding": "sparcml run --engine torch -n 4 --network 1gbit benchmarks/run_embedding.py",
}


def section(name: str) -> str:
    """Return a table and the origin of its numbers."""
    if name == "readme":
        return readme()
    import process_tables
    from table2 import pages as linear
    from training import torch_tables  # which need `markdown`

    found = measured(name)
    facts, rows = found["environment"], found["rows"]
    wrong = sum(bool(row.get("wrong")) for row in rows)
    if wrong:
        raise SystemExit(
            f"tables: {name} has wrong results in {wrong} rows; measure it again"
        )
    special = {
        "kernels": kernels,
        "compress": compress,
        "overlap": overlap,
        "rates": rates,
        "reading": reading,
        "linear-peers": linear_peers,
        "simulate": simulate,
        "startup": process_tables.startup,
        "threads": process_tables.threads,
        "linear-ranks": process_tables.linear_ranks,
        "link-100mbit": process_tables.link,
        "large-tensor": process_tables.large_tensor,
        "latency": process_tables.latency,
        "torch-latency": process_tables.torch_latency,
        "predict-1gbit": predict,
        "predict-100mbit": predict,
        "table2": linear.run,
        "table2-100mbit": linear.run,
        "scd": linear.descent,
        "auto": torch_tables.auto,
        "auto-100mbit": torch_tables.auto,
        "auto-gpt": torch_tables.auto,
        "embedding": torch_tables.embedding,
    }
    make = special.get(name, allreduce)
    keys = ("date", "commit", "cpu", "isa", "numpy", "mpi", "torch")
    origin = ", ".join(f"{key} {facts[key]}" for key in keys if key in facts)
    command = COMMANDS.get(name, "sparcml bench allreduce")
    command = f"{command} {facts['options']}".strip()
    line = f"`{command}`: {origin}."
    if name == "cluster-8":
        line += f"\n\nTargets:\n\n{floors(rows)}"
    # Other programs' results are only judged, by their losses, and some rows are times alone.
    checked = f"\n{len(rows)} rows, all verified." if "wrong" in rows[0] else ""
    return f"\n{make(rows)}\n{line}{checked}\n\n"


def kernels(rows: list[Row]) -> str:
    """Return one row per kernel: times on the best instruction set, throughput on all."""
    best, *others = dict.fromkeys(row["isa"] for row in rows)
    rate = {(row["kernel"], row["isa"]): row["rate"] for row in rows}
    head = ["kernel", "entries", "median (us)", f"throughput, {best}"]
    head += [f"throughput, {isa}" for isa in others]
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


def compress(rows: list[Row]) -> str:
    """Return one row per method: Gaussian values, then a real gradient."""
    kinds = list(dict.fromkeys(row["vector"] for row in rows))
    found = {(row["vector"], row["method"], row["part"]): row for row in rows}
    head = ["method", "part", *(f"ns/value, {kind}" for kind in kinds)]
    head += ["x memcpy", "bits per value", *(f"error, {kind}" for kind in kinds)]
    head += [f"bias, {kinds[-1]}", "floor", "met"]
    lines = []
    for key in dict.fromkeys((row["method"], row["part"]) for row in rows):
        here = [found[kind, *key] for kind in kinds if (kind, *key) in found]
        if len(here) < len(kinds):
            continue  # thresholds that follow the vector have other names
        last = here[-1]
        copies = " / ".join(f"{row['copies']:.2f}" for row in here)
        met = [row["met"] for row in here if row["met"]]
        cells = [f"`{key[0]}`", key[1], *(f"{row['ns']:.3f}" for row in here), copies]
        cells += [shown(last["bits"], ".3f"), *(shown(r["error"], ".4f") for r in here)]
        cells += [shown(last["bias"], "+.4f"), shown(last["floor"])]
        lines.append([*cells, " / ".join(met)])
    return markdown(head, lines)


def allreduce(rows: list[Row]) -> str:
    """Return one line per row, in milliseconds and megabytes."""
    linked = rows[0]["bound"] is not None
    head = ["algorithm", "density (%)", "wire (MB)", "ratio", "p25 (ms)", "p50 (ms)"]
    head += ["p75 (ms)", *(["bound (ms)", "% of link"] if linked else [])]
    compared = linked and "of_lower" in rows[0]  # older files lack it
    head += ["% of lower bound"] if compared else []
    head += ["busbw (GB/s)", "vs dense"]
    lines = []
    for row in rows:
        wire = None if row["wire"] is None else row["wire"] / 1e6
        cells = [label(row), shown(row["density"], "g"), shown(wire, ".2f")]
        cells += [shown(row["ratio"], ".1f")]
        cells += [shown(row[key] / 1e3, ".1f") for key in ("p25", "p50", "p75")]
        if linked:
            cells += [shown(row["bound"] / 1e3, ".1f"), shown(row["of_bound"], ".0f")]
        if compared:
            # A quantized sum is another one, with other bytes that must arrive.
            cells.append("" if row["quantize"] else shown(row["of_lower"], ".0f"))
        lines.append([*cells, *(shown(row[key], ".2f") for key in ("busbw", "speedup"))])
    return markdown(head, lines)


# What a sum must reach against the faster dense one: density (%), coding, ratio.
FLOORS = (
    (0.1, None, 55),
    (1, None, 14),
    (10, None, 2.3),
    (1, BITS_8, 22),
    (10, BITS_8, 6.5),
)


def floors(rows: list[Row]) -> str:
    """Return the targets and whether this run met them."""
    lines = []
    for density, coding, floor in FLOORS:
        here = [
            row
            for row in rows
            if row["density"] == density and is_coded(row, coding) and row["wire"]
        ]
        auto = next(row["speedup"] for row in here if row["algorithm"] == "auto")
        best = max(here, key=lambda row: row["speedup"])
        cells = [
            f"{density:g}",
            best["quantize"] or "lossless",
            f"{floor}x",
            f"{auto:.1f}x",
        ]
        cells += [f"{best['speedup']:.1f}x", best["algorithm"]]
        lines.append([*cells, "yes" if best["speedup"] >= floor else "no"])
    head = ["density (%)", "values", "floor", "auto", "best", "which", "met"]
    return markdown(head, lines)


def rates(rows: list[Row]) -> str:
    """Return one row per batch and momentum: the loss at multiples of the default."""
    times = list(dict.fromkeys(row["times"] for row in rows))
    head = ["rows per step", "momentum", *(f"learning rate x {each:g}" for each in times)]
    lines = []
    for batch, momentum in dict.fromkeys((row["batch"], row["momentum"]) for row in rows):
        mine = [r for r in rows if (r["batch"], r["momentum"]) == (batch, momentum)]
        cells = [f"{row['loss']:.3f} ({row['right']:.1%})" for row in mine]
        lines.append([str(batch), f"{momentum:g}", *cells])
    return markdown(head, lines)


def reading(rows: list[Row]) -> str:
    """Return one row per reader, compared with scikit-learn on the same data."""
    peer = {row["data"]: row["seconds"] for row in rows if row["reader"] == "scikit-learn"}
    head = ["data", "reader", "text (MB)", "seconds", "MB/s", "vs scikit-learn"]
    lines = []
    for row in rows:
        ratio = peer[row["data"]] / row["seconds"] if row["data"] in peer else None
        cells = [row["data"], row["reader"], shown(row["bytes"] / 1e6, ".0f")]
        cells += [shown(row["seconds"], ".3f"), shown(row["rate"], ".0f")]
        cells += [shown(ratio, ".1f"), shown(row["memory"], ".2f")]
        lines.append(cells)
    return markdown([*head, "memory / arrays"], lines)


def linear_peers(rows: list[Row]) -> str:
    """Return one row per program and problem."""
    return markdown(list(peers_table.HEAD), peers_table.lines(rows))


def overlap(rows: list[Row]) -> str:
    """Return one row per density, in milliseconds."""
    head = ["density (%)", "allreduce (ms)", "NumPy (ms)", "both (ms)"]
    head += ["both / the longer", "quartiles"]
    lines = [
        [
            shown(row["density"], "g"),
            *(shown(row[key] / 1e3, ".1f") for key in ("alone", "computing", "both")),
            shown(row["ratio"], ".2f"),
            f"{row['ratio_q1']:.2f} to {row['ratio_q3']:.2f}",
        ]
        for row in rows
    ]
    return markdown(head, lines)


def simulate(rows: list[Row]) -> str:
    """Return one row per allreduce: simulated time, and the cost of the simulation."""
    head = ["algorithm", "ranks", "messages", "simulated (ms)"]
    head += ["real time (s)", "CPU time (s)", "GB"]
    lines = [
        [
            row["algorithm"],
            shown(row["ranks"]),
            shown(row["messages"]),
            shown(row["simulated"] / 1e3, ".2f"),
            shown(row["seconds"], ".1f"),
            shown(row["cpu"], ".1f"),
            shown(row["peak"] / 1e9, ".2f"),
        ]
        for row in rows
    ]
    return markdown(head, lines)


def predict(rows: list[Row]) -> str:
    """Return one row per vector: the choice of `auto`, and the error of predictions."""
    head = ["values", "density", "choice of auto", "auto (ms)", "best", "best (ms)"]
    head += ["predictions within 25 % or 3 ms", "largest error", "predicted / measured"]
    lines = []
    for size, density in dict.fromkeys((row["size"], row["density"]) for row in rows):
        here = [r for r in rows if (r["size"], r["density"]) == (size, density)]
        (auto,) = (row for row in here if row["algorithm"] == "auto")
        named = [row for row in here if row is not auto]
        # Ok-Topk leaves sums out: it is predicted, but no choice.
        best = min((r for r in named if r["algorithm"] != "oktopk"), key=lambda r: r["p50"])
        worst = max(named, key=lambda r: abs(r["predicted"] / r["p50"] - 1))
        near = sum(close(row["predicted"], row["p50"], 0.25, 3e3) for row in named)
        lines.append(
            [
                f"{size / 2**20:g} M",
                f"{density:g} %",
                auto["chosen"],
                f"{auto['p50'] / 1e3:.1f}",
                best["algorithm"],
                f"{best['p50'] / 1e3:.1f}",
                f"{near} of {len(named)}",
                worst["algorithm"],
                f"{worst['predicted'] / worst['p50']:.2f}",
            ]
        )
    return markdown(head, lines)


def close(a: float, b: float, share: float, least: float) -> bool:
    """Return whether a is within a fraction of b, or differs by at most `least`."""
    return abs(a - b) <= max(share * b, least)


def shown(value: Any, spec: str = "") -> str:
    """Return a value as text, empty for None."""
    return "" if value is None else format(value, spec)


def markdown(head: list[str], lines: list[list[str]]) -> str:
    """Return a table with the first column left-aligned and the others right-aligned."""
    rule = [":--", *["--:"] * (len(head) - 1)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in [head, rule, *lines])


def main() -> None:
    """Write the pages, or check them."""
    write_or_check(
        {
            page: SECTION.sub(lambda m: m[1] + section(m[2]) + m[3], page.read_text())
            for page in PAGES
        }
    )


if __name__ == "__main__":
    main()
