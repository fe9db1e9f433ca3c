"""The Ok-Topk of the examples: importing this module registers it."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "plugins"))

import oktopk  # noqa: F401  # registers itself
