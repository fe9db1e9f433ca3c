"""Run the experiments behind docs/claims.md, all or those with the given numbers.

    python benchmarks/run_claims.py 8 29
    python benchmarks/run_claims.py 29 --resume   # with the rows of an interrupted run

Each writes its rows to benchmarks/results; `make docs` then generates the page. The rows of an
interrupted run are in unfinished-claim-NUMBER.json there.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

# Ranks are threads already: a matrix product of one must not take all cores as well.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from claims import CLAIMS, Claim, kept
from rich.console import Console
from rich.progress import track

from sparcml.bench.results import write_json
from sparcml.environment import describe

RESULTS = Path(__file__).resolve().parent / "results"
RESUME = "--resume"


def chosen(words: list[str]) -> list[Claim]:
    """Return the claims with these numbers; all without numbers."""
    known = {str(claim.number): claim for claim in CLAIMS}
    if wrong := [word for word in words if word not in known]:
        raise SystemExit(f"run_claims: no claim {wrong[0]!r}; there are {', '.join(known)}")
    return [known[word] for word in words] or list(CLAIMS)


def measured(
    claim: Claim, unfinished: Path, console: Console, *, resume: bool
) -> list[dict[str, Any]]:
    """Return the rows of all cases, and save them after each case.

    Args:
        claim: The claim.
        unfinished: File of the rows by case.
        console: Shows the progress.
        resume: Whether to use the rows in the file.
    """
    done: dict[str, list[dict[str, Any]]] = {}
    if resume and unfinished.exists():
        done = json.loads(unfinished.read_text())
    title = f"claim {claim.number}: {claim.title}"
    for case in track(claim.cases, title, console=console):
        if str(tuple(case)) not in done:
            done[str(tuple(case))] = claim.measure(*case)
            new = unfinished.with_suffix(".new")
            new.write_text(json.dumps(done))
            new.replace(unfinished)
    return [row for case in claim.cases for row in done[str(tuple(case))]]


def run(claim: Claim, results: Path, console: Console, *, resume: bool = False) -> Path:
    """Measure and save the rows."""
    facts = describe(f"{claim.number}", claim.seed)
    unfinished = results / f"unfinished-{claim.file}.json"
    rows = measured(claim, unfinished, console, resume=resume)
    path = results / f"{facts['date']}-{claim.file}.json"
    write_json(path, facts, rows)
    unfinished.unlink(missing_ok=True)
    judged = kept(claim, results)
    if isinstance(judged, str):
        console.print(f"  open: run {judged}, too", highlight=False)
    else:
        found = claim.answer(judged["rows"])
        console.print(f"  {found.verdict}: {found.ours}", highlight=False)
    return path


def main() -> None:
    """Run the requested experiments."""
    console, words = Console(), sys.argv[1:]
    for claim in chosen([word for word in words if word != RESUME]):
        try:
            run(claim, RESULTS, console, resume=RESUME in words)
        except FileNotFoundError as error:  # no data set
            sys.exit(f"run_claims: {error}")


if __name__ == "__main__":
    main()
