"""Benchmarks of allreduces: exact vectors, timed and checked trials, tables and JSON files.

`sparcml bench allreduce` and the scripts in `benchmarks/` share this package.
"""
