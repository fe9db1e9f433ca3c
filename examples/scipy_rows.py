"""Sum sparse rows of different ranks: scipy in, scipy out.

sparcml run -n 4 examples/scipy_rows.py      (without a launcher: one rank)
"""

import numpy as np
from scipy.sparse import random_array

import sparcml


def main() -> None:
    """Sum one row of counts per rank."""
    with sparcml.world() as comm:
        row = random_array((1, 1_000_000), density=0.001, rng=comm.rank, format="csr")
        row.data = np.ceil(9 * row.data)
        total = comm.allreduce(row)
        if comm.rank == 0:
            dense = row.data.itemsize * row.shape[1]
            print(f"{comm.size} rows with {row.nnz} nonzeros; their sum has {total.nnz}")
            print(f"sent {comm.stats.bytes} bytes, a dense row has {dense}")


if __name__ == "__main__":
    main()
