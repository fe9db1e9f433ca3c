"""Benchmarks: one subject a file."""
