"""Tests of the package, and of the plug-ins among the examples."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "examples" / "plugins"))

import oktopk  # noqa: F401  # registers itself
