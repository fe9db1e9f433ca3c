"""Gradients of an embedding: each rank touched a few rows; sum them without the others.

An entry of the stream is a whole row (`block=WIDTH`), so a row has one index, not WIDTH.

    sparcml run -n 4 examples/embedding_rows.py      (or alone: a world of one)
"""

import numpy as np

import sparcml

WORDS, WIDTH, BATCH = 50_000, 64, 300


def main() -> None:
    """Sum the rows that the ranks' batches touched."""
    with sparcml.world() as comm:
        rng = np.random.default_rng(comm.rank)
        words = rng.zipf(1.3, BATCH) % WORDS  # frequent words come often, also twice
        gradients = rng.standard_normal((BATCH, WIDTH)).astype(np.float32)
        mine = sparcml.Stream.from_pairs(WORDS * WIDTH, words, gradients, block=WIDTH)
        total = comm.allreduce(mine, op="mean")
        if comm.rank == 0:
            dense = WORDS * WIDTH * 4
            print(f"{mine.nnz} of {WORDS} rows here, {total.nnz} on all {comm.size} ranks")
            print(f"sent {comm.stats.bytes} bytes instead of some {2 * dense}")


if __name__ == "__main__":
    main()
