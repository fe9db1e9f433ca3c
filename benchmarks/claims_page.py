"""Write docs/claims.md and its figures from the rows in benchmarks/results.

With --check it writes nothing, and fails unless the page is up to date.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from claims import CLAIMS, Claim, kept
from tables import markdown
from written import page_and_figures, write_or_check

RESULTS = Path(__file__).resolve().parent / "results"

INTRODUCTION = """\
# Claims

Claims of talks, lectures and the paper about these methods, and our results. Each claim has a file
in `benchmarks/claims` with its experiment. `make claims` runs the experiments and saves their rows
in `benchmarks/results`; `make docs` generates this page from the newest rows.

How a result was obtained:

- **measured**: times or errors of real runs;
- **counted**: messages, entries and bytes of real runs, counted at the sender;
- **modelled**: from the declared costs of the collectives, and a network's latency and bandwidth;
- **emulated**: real runs on one machine, with a slow link per rank;
- **simulated**: the same programs under a virtual clock, which messages and declared work advance.

A *hit* means that the claim holds here; a *miss* states the reason why it does not; a claim
is *open* while runs are missing.
"""

Kept = dict[str, Any]


def page(results: Path) -> str:
    """Return the page."""
    found = [(claim, kept(claim, results)) for claim in CLAIMS]
    head = ["#", "claim", "source", "ours", "how", "verdict", "command"]
    table = markdown(head, [line(*each) for each in found]).replace("--:", ":--")
    return "\n".join([INTRODUCTION, table, *(section(*each) for each in found)])


def line(claim: Claim, data: Kept | str) -> list[str]:
    """Return the row of a claim in the table at the top."""
    cells = [str(claim.number), claim.text, claim.source]
    command = f"`{claim.command}`"
    if isinstance(data, str):
        return [*cells, f"no data; run `{data}`", claim.how, "open", command]
    found = claim.answer(data["rows"])
    verdict = f"{found.verdict}: {found.why}"
    return [*cells, found.ours, claim.how, verdict, command]


def section(claim: Claim, data: Kept | str) -> str:
    """Return the section of a claim."""
    title = f"## {claim.number}. {claim.title}\n"
    if isinstance(data, str):
        return f"{title}\nNo data; run `{data}`.\n"
    images = [f"![{claim.title}](figures/{name}.svg)\n" for name in claim.figures]
    facts = data["environment"]
    keys = ("date", "commit", "cpu", "isa", "numpy", "python", "seed")
    origin = ", ".join(f"{key} {facts[key]}" for key in keys)
    command = f"`{claim.command}`: {origin}.\n"
    details = claim.answer(data["rows"]).details
    return "\n".join([title, details, *images, command])


def figures(results: Path) -> dict[str, str]:
    """Return the figures of all claims with rows, as SVG."""
    from claims.drawing import svg

    return {
        name: svg(draw, data["rows"])
        for claim in CLAIMS
        if not isinstance(data := kept(claim, results), str)
        for name, draw in claim.figures.items()
    }


def main() -> None:
    """Write the page and the figures, or check them."""
    write_or_check(page_and_figures("claims.md", page(RESULTS), figures(RESULTS)))


if __name__ == "__main__":
    main()
