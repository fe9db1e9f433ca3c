"""Shared-memory segments of MPICH, which remain in /dev/shm if ranks are killed."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

_PREFIX = "/dev/shm/mpich"


def segments(process: int | str = "self") -> set[Path]:
    """Return the named segments that a process has mapped."""
    try:
        maps = Path(f"/proc/{process}/maps").read_text()
    except OSError:  # not Linux, or it has ended
        return set()
    lines = (line.split(maxsplit=5) for line in maps.splitlines() if _PREFIX in line)
    names = (line[5] for line in lines)
    return {Path(n) for n in names if n.startswith(_PREFIX) and "(deleted)" not in n}


def unlink(paths: set[Path]) -> None:
    """Remove the names of segments; processes that have mapped them keep them."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)
