"""Computing once what several tests inspect, also in other workers of pytest-xdist."""

from __future__ import annotations

import fcntl
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def once(path: Path, compute: Callable[[], Any]) -> Any:
    """Return what `compute` returns; the first caller of all processes runs it.

    Args:
        path: Where the result is saved, in `shared_folder`.
        compute: Returns something that JSON can hold. If it raises, every caller does.
    """
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            try:
                saved = {"result": compute()}
            except Exception as error:
                path.write_text(json.dumps({"error": f"{type(error).__name__}: {error}"}))
                raise
            path.write_text(json.dumps(saved))
    saved = json.loads(path.read_text())
    if "error" in saved:
        raise AssertionError(saved["error"])
    return saved["result"]
