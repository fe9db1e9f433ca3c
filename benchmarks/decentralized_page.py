"""Rewrite the tables and figures of docs/decentralized.md from the rows in benchmarks/results.

The text of the page is written by hand; a section between `<!-- table: NAME -->` and `<!-- end -->`
is generated. With --check it writes nothing, and fails unless the page is up to date.
"""

from __future__ import annotations

from decentralized.page import TABLES
from decentralized.rows import COMMAND, NAME
from tables import SECTION, newest
from written import DOCS, page_and_figures, write_or_check

PAGE = "decentralized.md"
ORIGIN = "decentralized-origin"


def main() -> None:
    """Write the page and its figures, or check them."""
    from claims.drawing import svg
    from decentralized.figures import FIGURES

    found = newest(NAME)
    if found is None:
        raise SystemExit(
            f"decentralized_page: no file named DATE-{NAME}.json; run: {COMMAND}"
        )
    rows, facts = found["rows"], found["environment"]
    keys = ("date", "commit", "cpu", "isa", "numpy", "python", "seed")
    origin = ", ".join(f"{key} {facts[key]}" for key in keys)
    cpu = sum({row["case"]: row["cpu"] for row in rows}.values())
    last = f"`{COMMAND}`: {origin}; {cpu / 60:.1f} minutes of one core.\n"
    text = SECTION.sub(
        lambda m: f"{m[1]}\n{last if m[2] == ORIGIN else TABLES[m[2]](rows)}\n{m[3]}",
        (DOCS / PAGE).read_text(),
    )
    figures = {name: svg(draw, rows) for name, draw in FIGURES.items()}
    write_or_check(page_and_figures(PAGE, text, figures))


if __name__ == "__main__":
    main()
