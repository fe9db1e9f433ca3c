"""Pages and pictures that are made from kept rows: written, or compared with what is there."""

import sys
from collections.abc import Mapping
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def page_and_figures(page: str, text: str, figures: Mapping[str, str]) -> dict[Path, str]:
    """What the files of a page are to hold: it, and SVG by name."""
    pictures = {DOCS / "figures" / f"{name}.svg": svg for name, svg in figures.items()}
    return {DOCS / page: text, **pictures}


def write_or_check(files: Mapping[Path, str]) -> None:
    """Write them; with --check, end unless they are up to date already."""
    for path, content in files.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(content)
        elif not path.exists() or path.read_text() != content:
            raise SystemExit(f"{path.name} is out of date; run: make docs")
