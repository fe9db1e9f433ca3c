"""Networks trained with DDP: time of a step with compression methods."""

import sys
from pathlib import Path

# The networks are those of the examples.
sys.path.append(str(Path(__file__).resolve().parents[2] / "examples" / "torch"))
