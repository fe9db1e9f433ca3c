"""Generated pages and figures: write them, or compare them with the files."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def page_and_figures(page: str, text: str, figures: Mapping[str, str]) -> dict[Path, str]:
    """Return the content of the files of a page: its text, and SVG by name."""
    pictures = {DOCS / "figures" / f"{name}.svg": svg for name, svg in figures.items()}
    return {DOCS / page: text, **pictures}


def write_or_check(files: Mapping[Path, str]) -> None:
    """Write files; with --check, exit unless they are up to date."""
    for path, content in files.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(content)
        elif not path.exists() or _canonical(path.read_text()) != _canonical(content):
            raise SystemExit(f"{path.name} is out of date; run: make docs")


def _canonical(text: str) -> str:
    """Number the identifiers of an SVG file.

    matplotlib derives them from coordinates, whose last bits depend on the processor.
    """
    numbers: dict[str, int] = {}
    return re.sub(
        r"\b[a-z][0-9a-f]{10}\b",
        lambda found: f"id{numbers.setdefault(found[0], len(numbers))}",
        text,
    )
