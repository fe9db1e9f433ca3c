"""Generated pages and figures: write them, or compare them with the files."""

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
        elif not path.exists() or path.read_text() != content:
            raise SystemExit(f"{path.name} is out of date; run: make docs")
