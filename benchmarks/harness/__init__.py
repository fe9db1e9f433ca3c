"""Timing, arguments and verdicts shared by run_kernels.py and run_compression.py."""
