"""Rewrite the tables of docs/local.md from the rows in benchmarks/results.

The text of the page is written by hand; a section between `<!-- table: NAME -->` and `<!-- end -->`
is generated. With --check it writes nothing, and fails unless the page is up to date.
"""

from __future__ import annotations

from local.page import FILES, TABLES
from local.utilization import utilization_table
from tables import SECTION, newest
from written import DOCS, page_and_figures, write_or_check

PAGE = "local.md"
ORIGIN = "local-origin"
LOSSES = "local-loss"
UTILIZATION = "local-utilization"  # computed, not measured
COMMANDS = {
    "local-encode": "python benchmarks/run_local_encode.py",
    "local-speed": (
        "sparcml run --engine torch -n 4 --network 100mbit benchmarks/run_local_speed.py "
        "--network 100mbit"
    ),
    "local": "python benchmarks/run_local.py",
    "local-pilots": "python benchmarks/run_local.py --pilots",
}


def main() -> None:
    """Write the page and its figure, or check them."""
    text = SECTION.sub(
        lambda m: f"{m[1]}\n{section(m[2])}\n{m[3]}", (DOCS / PAGE).read_text()
    )
    from claims.drawing import svg
    from local.figures import figure

    found = newest(FILES[LOSSES])
    figures = {} if found is None else {LOSSES: svg(figure, found["rows"])}
    write_or_check(page_and_figures(PAGE, text, figures))


def section(name: str) -> str:
    """Return the text of a generated section."""
    if name == ORIGIN:
        return "".join(_origin(file) for file in COMMANDS)
    if name == UTILIZATION:
        return utilization_table()
    found = newest(FILES[name])
    if found is None:
        return f"Not measured yet: `{COMMANDS[FILES[name]]}`.\n"
    return TABLES[name](found["rows"])


def _origin(file: str) -> str:
    found = newest(file)
    if found is None:
        return ""
    facts = found["environment"]
    keys = ("date", "commit", "cpu", "isa", "python")
    origin = ", ".join(f"{key} {facts[key]}" for key in keys)
    return f"- `{COMMANDS[file]}`: {origin}.\n"


if __name__ == "__main__":
    main()
