"""Rows of run_compression.py: sparcml's methods (`ours`, `steps`) and their peers."""
