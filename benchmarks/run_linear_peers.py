"""Compare with other programs for linear models: seconds to the same validation loss.

    python benchmarks/run_linear_peers.py --json FILE [--only ours,spark] [--quick]

Logistic regression on two problems at their full dimension, with a weight per feature: the
bundled mails (16.6 M features, a fifth for validation) and URL-like rows (3.2 M features). Each
program tries a few suitable settings; after each epoch the validation loss is computed, by the
same code for all and not timed. A program's time to a loss is that of its fastest setting. The
clock runs during training: from an empty model, on rows in memory; the time of reading is
reported separately. Programs run one after the other, each in its own process.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from peers.base import Data

from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.linear import Rows, spam, write_svmlight
from sparcml.linear.data import synthetic

PEERS = (
    "ours",
    "ours_ranks",
    "sgd_classifier",
    "vowpal_wabbit",
    "liblinear",
    "saga",
    "spark",
)
TRAIN, HELD_OUT = 100_000, 20_000  # URL-like rows
LIMIT = 3600  # seconds for one program on one problem
WARM = 2 << 30  # bytes


def problems(quick: bool) -> dict[str, tuple[Rows, Rows]]:
    """Return training and validation rows of each problem."""
    mails = spam()
    train, held_out = (TRAIN // 20, HELD_OUT // 20) if quick else (TRAIN, HELD_OUT)
    url = synthetic.url_like(train + held_out)
    parts = (url.take(0, train), url.take(train, train + held_out))
    cut = tuple(replace(part, first=0, total=len(part)) for part in parts)
    return {"spam": (mails.train, mails.validation), "URL-like": (cut[0], cut[1])}


def warm() -> None:
    """Touch memory, so that programs do not wait for a virtual machine to provide it."""
    np.empty(WARM, np.uint8).fill(1)


def one(peer: str, data: Data) -> dict[str, Any]:
    """Run one program on one problem, in its own process."""
    module = import_module(f"peers.{peer}")
    out = data.folder / f"{peer}.json"
    told = [peer, data.name, str(data.folder), str(data.features), str(int(data.quick))]
    warm()
    done = subprocess.run(
        [sys.executable, __file__, "--one", *told], check=False, timeout=LIMIT
    )
    if not out.exists():  # it may also crash while it ends, as Vowpal Wabbit does at times
        raise SystemExit(f"run_linear_peers: {peer} exited with {done.returncode}")
    about = {"peer": peer, "name": module.NAME, "threads": module.THREADS}
    return {**about, "held": module.HELD, "data": data.name, **json.loads(out.read_text())}


def run_one(peer: str, name: str, folder: str, features: str, quick: str) -> None:
    """Run in that process."""
    data = Data(name, Path(folder), int(features), quick == "1")
    try:
        found = asdict(import_module(f"peers.{peer}").run(data))
    except ImportError as error:
        print(f"{peer}: not installed ({error})", file=sys.stderr)
        found = {"version": "", "reading": None, "curves": []}
    (data.folder / f"{peer}.json").write_text(json.dumps(found))


def compare(
    name: str, rows: tuple[Rows, Rows], peers: list[str], quick: bool
) -> list[dict[str, Any]]:
    """Return one row per program."""
    folder = Path(tempfile.mkdtemp())
    try:
        data = Data(name, folder, rows[0].features, quick)
        write_svmlight(data.train, rows[0])
        write_svmlight(data.held_out, rows[1])
        facts = {"rows": len(rows[0]), "entries": rows[0].nnz, "features": rows[0].features}
        facts |= {"held_out_rows": len(rows[1]), "bytes": data.train.stat().st_size}
        found = []
        for peer in peers:
            found.append({**one(peer, data), **facts})
            show(found[-1])
        return found
    finally:
        shutil.rmtree(folder)


def show(row: dict[str, Any]) -> None:
    """Print the best loss of each setting."""
    print(row["data"], row["name"], row["version"] or "not installed", row["reading"])
    for curve in row["curves"]:
        points = zip(curve["passes"], curve["seconds"], curve["losses"], strict=True)
        told = " ".join(f"{n}:{s:.2f}s:{loss:.4f}" for n, s, loss in points)
        print(f"  {curve['setting']}: {told}", flush=True)


def main() -> None:
    """Run all programs; those that are left out keep their rows in the file."""
    if sys.argv[1:2] == ["--one"]:
        return run_one(*sys.argv[2:])
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    options.add_argument("--only", default=",".join(PEERS), help="programs, by file")
    options.add_argument("--data", default="spam,URL-like", help="problems")
    options.add_argument(
        "--quick",
        action="store_true",
        help="one setting per program and few epochs, as a trial",
    )
    chosen = options.parse_args()
    rows: list[Any] = []
    for name, parts in problems(chosen.quick).items():
        for peer in chosen.only.split(",") if name in chosen.data.split(",") else ():
            rows += compare(name, parts, [peer], chosen.quick)
            if chosen.json:  # at once: some take long, and may be stopped
                write_json(chosen.json, describe("", 0), merged(chosen.json, rows))
    return None


def merged(path: Path, rows: list[Any]) -> list[Any]:
    """Merge rows into those of the file, in the usual order."""
    before = json.loads(path.read_text())["rows"] if path.exists() else []
    new = {(row["data"], row["peer"]) for row in rows}
    rows = rows + [row for row in before if (row["data"], row["peer"]) not in new]
    return sorted(rows, key=lambda row: (row["data"], PEERS.index(row["peer"])))


if __name__ == "__main__":
    main()
