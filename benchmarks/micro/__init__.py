"""The paper's micro-benchmarks: sums of streams at random places, timed one by one.

`simulated` takes the time on a virtual clock, `emulated` on ranks behind slow links; both
sum the same vectors and make the same rows.
"""
