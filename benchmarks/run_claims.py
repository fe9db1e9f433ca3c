"""Run the experiments behind docs/claims.md, all or those with the given numbers.

Each writes its rows to benchmarks/results; `make docs` then generates the page.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

# Ranks are threads already: a matrix product of one must not take all cores as well.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from claims import CLAIMS, Claim, kept
from rich.console import Console
from rich.progress import track

from sparcml.bench.results import write_json
from sparcml.environment import describe

RESULTS = Path(__file__).resolve().parent / "results"


def chosen(words: list[str]) -> list[Claim]:
    """Return the claims with these numbers; all without numbers."""
    known = {str(claim.number): claim for claim in CLAIMS}
    if wrong := [word for word in words if word not in known]:
        raise SystemExit(f"run_claims: no claim {wrong[0]!r}; there are {', '.join(known)}")
    return [known[word] for word in words] or list(CLAIMS)


def run(claim: Claim, results: Path, console: Console) -> Path:
    """Measure and save the rows."""
    facts = describe(f"{claim.number}", claim.seed)
    title = f"claim {claim.number}: {claim.title}"
    cases = track(claim.cases, title, console=console)
    rows = [row for case in cases for row in claim.measure(*case)]
    path = results / f"{facts['date']}-{claim.file}.json"
    write_json(path, facts, rows)
    judged = kept(claim, results)
    if isinstance(judged, str):
        console.print(f"  open: run {judged}, too", highlight=False)
    else:
        found = claim.answer(judged["rows"])
        console.print(f"  {'hit' if found.hit else 'miss'}: {found.ours}", highlight=False)
    return path


def main() -> None:
    """Run the requested experiments."""
    console = Console()
    for claim in chosen(sys.argv[1:]):
        run(claim, RESULTS, console)


if __name__ == "__main__":
    main()
