"""Cases of run_kernels.py: one module per family of kernels, each with `cases(size, rng)`."""

import sys
from pathlib import Path

# The definitions in NumPy, with which results are compared, are among the tests.
sys.path.append(str(Path(__file__).resolve().parents[2]))

from . import bits, coding, dense, linear, merges, quantize, select

FAMILIES = (merges, dense, linear, coding, select, quantize, bits)
