"""Gradients of an embedding: average the rows that the ranks used, and no others.

An entry of the stream is a full row (`block=WIDTH`), so a row has one index, not WIDTH.

    sparcml run -n 4 examples/embedding_rows.py      (without a launcher: one rank)
"""

import numpy as np

import sparcml

WORDS, WIDTH, BATCH = 50_000, 64, 300


def main() -> None:
    """Average the rows that occur in the batches of the ranks."""
    with sparcml.world() as comm:
        rng = np.random.default_rng(comm.rank)
        words = rng.zipf(1.3, BATCH) % WORDS  # some words occur several times
        gradients = rng.standard_normal((BATCH, WIDTH)).astype(np.float32)
        rows = sparcml.Stream.from_pairs(WORDS * WIDTH, words, gradients, block=WIDTH)
        total = comm.allreduce(rows, op="mean")
        if comm.rank == 0:
            dense = WORDS * WIDTH * 4
            print(
                f"{rows.nnz} of {WORDS} rows on rank 0, {total.nnz} on all {comm.size} ranks"
            )
            print(f"sent {comm.stats.bytes} bytes instead of about {2 * dense}")


if __name__ == "__main__":
    main()
