"""Overlap of computation and communication: `iallreduce` starts, `wait` returns the result.

sparcml run -n 2 examples/overlap.py      (without a launcher: one rank)
"""

import time

import numpy as np

import sparcml

LAYERS, SIZE = 8, 1_000_000


def backward(layer: int, rank: int) -> sparcml.Stream:
    """Return a sparse gradient after some work, like the backward pass of a layer."""
    rng = np.random.default_rng([layer, rank])
    work = rng.random((300, 300))
    for _ in range(5):
        work = np.tanh(work @ work.T / 300)
    indices = np.unique(rng.integers(0, SIZE, SIZE // 100))
    return sparcml.Stream(SIZE, indices, rng.random(len(indices)).astype(np.float32))


def main() -> None:
    """Run the same allreduces one after the other, and overlapped with the work."""
    with sparcml.world() as comm:
        comm.iallreduce(np.zeros(1, np.float32)).wait()  # opens the channel
        start = time.perf_counter()
        blocking = [comm.allreduce(backward(layer, comm.rank)) for layer in range(LAYERS)]
        middle = time.perf_counter()
        requests = [comm.iallreduce(backward(layer, comm.rank)) for layer in range(LAYERS)]
        overlapped = [request.wait() for request in requests]
        end = time.perf_counter()
        for one, other in zip(blocking, overlapped, strict=True):
            np.testing.assert_array_equal(one.values, other.values)
        if comm.rank == 0:
            print(
                f"one after the other {middle - start:.3f} s, overlapped {end - middle:.3f} s"
            )


if __name__ == "__main__":
    main()
