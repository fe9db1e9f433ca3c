"""What is read: the first three chapters of Moby-Dick."""

from __future__ import annotations

import gzip
from importlib import resources


def chapters() -> str:
    """46,000 characters, in the public domain."""
    file = resources.files(__package__).joinpath("moby-dick.txt.gz")
    return gzip.decompress(file.read_bytes()).decode()
