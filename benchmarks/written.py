"""Pages and pictures that are made from kept rows: written, or compared with what is there."""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def write_or_check(page: str, text: str, figures: dict[str, str]) -> None:
    """Write a page and its figures; with --check, end unless they are up to date already.

    Args:
        page: The file's name, in docs.
        text: What it is to hold.
        figures: SVG by name, for docs/figures.
    """
    files = {DOCS / page: text}
    files |= {DOCS / "figures" / f"{name}.svg": svg for name, svg in figures.items()}
    for path, content in files.items():
        if "--check" not in sys.argv[1:]:
            path.write_text(content)
        elif not path.exists() or path.read_text() != content:
            raise SystemExit(f"{path.name} is out of date; run: make docs")
