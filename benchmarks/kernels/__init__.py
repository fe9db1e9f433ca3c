"""Cases of run_kernels.py: one module per family of kernels, each with `cases(size, rng)`."""

from . import bits, coding, dense, linear, merges, quantize, select

FAMILIES = (merges, dense, linear, coding, select, quantize, bits)
