"""Networks trained by DDP: what methods of compression cost and keep."""

import sys
from pathlib import Path

# They are those of the examples.
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "torch"))
