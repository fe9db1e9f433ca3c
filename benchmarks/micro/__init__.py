"""The paper's micro-benchmarks: allreduce of streams with random indices.

`simulated` uses a virtual clock, `emulated` ranks with slow links; both reduce the same
vectors and return the same rows.
"""
