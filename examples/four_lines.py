"""Training in four lines, of which only the first differs between ways to share a model.

    x = sync_model()
    a = get_data()
    g = get_grad(x, a)
    x = update(x, g)

Every rank has its own rows of a logistic regression. `SYNCS` has the first line of allreduce, a
parameter server, D-PSGD and DCD on a ring, and local SGD.

    python examples/four_lines.py                    # 8 ranks as threads
    sparcml run -n 4 examples/four_lines.py          # 4 MPI processes
"""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

import sparcml
from sparcml import decentralized as dec

ROWS, FEATURES, BATCH, STEPS, LEARNING_RATE = 500, 400, 20, 150, 30.0
LOCAL_STEPS = 10  # between two averages of local SGD

Sync = Callable[[np.ndarray], Any]  # from the model of this rank to the next one


def allreduce(comm: sparcml.Communicator) -> Sync:
    """Average the models of all ranks."""
    return lambda x: comm.allreduce(x, op="mean")


def parameter_server(comm: sparcml.Communicator) -> Sync:
    """Average on rank 0, which sends the result to all ranks, both along trees."""

    def sync_model(x: np.ndarray) -> Any:
        mean = comm.reduce(x, op="mean", root=0)
        return comm.broadcast(x if mean is None else mean, root=0)

    return sync_model


def dpsgd(comm: sparcml.Communicator) -> Sync:
    """Average with the two neighbours on a ring."""
    ring = dec.ring(comm.size)
    return lambda x: comm.neighbor_allreduce(x, ring)


def dcd(comm: sparcml.Communicator) -> Sync:
    """Average with the neighbours on a ring, and send differences in 8 bits per value."""
    method = dec.DCD(dec.ring(comm.size), sparcml.QSGD(bits=8))
    old = np.zeros(FEATURES, np.float32)
    state = method.init(old)

    def sync_model(x: np.ndarray) -> Any:
        nonlocal old, state
        old, state = method.step(comm, old, old - x, state, lr=1)
        return old

    return sync_model


def local_sgd(comm: sparcml.Communicator) -> Sync:
    """Average the models of all ranks every few steps."""
    steps = itertools.count()
    return lambda x: x if next(steps) % LOCAL_STEPS else comm.allreduce(x, op="mean")


SYNCS = {
    "allreduce": allreduce,
    "parameter server": parameter_server,
    "D-PSGD": dpsgd,
    "DCD": dcd,
    "local SGD": local_sgd,
}


def rows_of(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a rank, of unit norm, and their labels, +1 or -1."""
    truth = np.random.default_rng(0).standard_normal(FEATURES)
    rng = np.random.default_rng(1 + rank)
    rows = rng.standard_normal((ROWS, FEATURES))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(np.float32), np.sign(rows @ truth).astype(np.float32)


def train(comm: sparcml.Communicator, sync_model: Sync) -> np.ndarray:
    """Return the model of this rank after all steps."""
    rows, labels = rows_of(comm.rank)
    rng = np.random.default_rng(comm.rank)

    def get_data() -> np.ndarray:
        return rng.integers(0, ROWS, BATCH)

    def get_grad(x: np.ndarray, a: np.ndarray) -> Any:
        margin = labels[a] * (rows[a] @ x)
        return (-labels[a] / (1 + np.exp(margin))) @ rows[a] / BATCH

    def update(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        return x - np.float32(LEARNING_RATE) * g

    x = np.zeros(FEATURES, np.float32)
    for _ in range(STEPS):
        x = sync_model(x)
        a = get_data()
        g = get_grad(x, a)
        x = update(x, g)
    return x


def work(comm: sparcml.Communicator) -> None:
    """Train in each way; rank 0 prints the loss of the mean model on all rows."""
    rows, labels = rows_of(comm.rank)
    for name, build in SYNCS.items():
        comm.stats.reset()
        x = train(comm, build(comm))
        sent = comm.stats.bytes / 1e6
        mean = comm.allreduce(x, op="mean")
        loss = comm.allreduce(
            float(np.log1p(np.exp(-labels * (rows @ mean))).mean()), op="mean"
        )
        average, largest = comm.allreduce(sent, op="mean"), comm.allreduce(sent, op="max")
        if comm.rank == 0:
            print(
                f"{name:16} loss {loss:.4f}, {average:.2f} MB sent per rank, "
                f"{largest:.2f} MB by the busiest"
            )


def main() -> None:
    """Run on the ranks of a launcher, or on threads if there is none."""
    with sparcml.world() as comm:
        if comm.size > 1:
            work(comm)
            return
    sparcml.launch(work, ranks=8)


if __name__ == "__main__":
    main()
