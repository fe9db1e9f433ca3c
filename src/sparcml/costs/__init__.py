"""The cost model: what a collective sends and computes, and how long that takes."""
