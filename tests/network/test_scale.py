"""More ranks than any machine here has; benchmarks/run_simulate.py takes the time."""

import numpy as np
import pytest

import sparcml


def vector(rank):
    rng = np.random.default_rng(rank)
    indices = np.sort(rng.choice(1_000_000, 10, replace=False)).astype(np.uint32)
    return sparcml.Stream(1_000_000, indices, rng.integers(1, 9, 10).astype(np.float32))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("algorithm", "ranks"),
    [("ssar_recursive_double", 1024), ("ssar_split_allgather", 64), ("native", 64)],
)
def test_the_sum_is_right(algorithm, ranks):
    want = np.zeros(1_000_000, np.float32)
    for rank in range(ranks):
        want[vector(rank).indices] += vector(rank).values

    def work(comm):
        total = comm.allreduce(vector(comm.rank), algorithm=algorithm)
        return hash((total.indices.tobytes(), total.values.tobytes())), (
            comm.rank or np.array_equal(total.to_dense(), want)
        )

    sim = sparcml.simulate(work, ranks)
    bits, (first, *_) = zip(*sim.results, strict=True)
    assert len(set(bits)) == 1
    assert first
    assert sim.seconds < 1
