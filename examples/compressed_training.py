"""Logistic regression with a fraction of the bytes: the same steps by several methods.

Every rank has its own rows and computes its own gradient; an aggregation method averages them.
With error feedback, entries that are not sent now are sent later, so 1 % per step is enough.

    python examples/compressed_training.py                    # 4 ranks as threads
    sparcml run -n 4 examples/compressed_training.py          # 4 MPI processes
"""

import numpy as np

import sparcml

ROWS, FEATURES, STEPS, LEARNING_RATE = 100, 10_000, 200, 10.0

METHODS = {
    "dense": sparcml.Dense(),
    "1 % of the entries": sparcml.Compressed(sparcml.TopK(0.01)),
    "1 % in 4 bits": sparcml.Compressed(sparcml.TopK(0.01), sparcml.QSGD(bits=4)),
    "1 bit per value": sparcml.Compressed(quantize=sparcml.OneBit()),
    "PowerSGD, rank 1": sparcml.PowerSGD(rank=1),
}


def rows_of(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a rank, of unit norm, and their labels, +1 or -1."""
    truth = np.random.default_rng(0).standard_normal(FEATURES)
    rng = np.random.default_rng(1 + rank)
    scale = 1 / (1 + np.arange(FEATURES)) ** 0.5  # few features have large weights
    x = rng.standard_normal((ROWS, FEATURES)) * scale
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x.astype(np.float32), np.sign(x @ truth).astype(np.float32)


def train(comm: sparcml.Communicator, method: sparcml.Method) -> tuple[float, float]:
    """Return the loss after the last step and the megabytes sent per rank."""
    x, y = rows_of(comm.rank)
    w = np.zeros((100, FEATURES // 100), np.float32)
    state = method.init(w.shape)
    comm.stats.reset()
    for _ in range(STEPS):
        margin = y * (x @ w.reshape(-1))
        slope = -y / (1 + np.exp(margin))
        gradient = (slope @ x / ROWS).reshape(w.shape)
        mean, state = method.aggregate(comm, gradient, state)
        w -= LEARNING_RATE * mean
    sent = comm.stats.bytes / 1e6
    loss = np.mean(np.log1p(np.exp(-y * (x @ w.reshape(-1)))))
    return float(comm.allreduce(np.array([loss]), op="mean")[0]), sent


def work(comm: sparcml.Communicator) -> None:
    """Train with each method; rank 0 prints."""
    for name, method in METHODS.items():
        loss, sent = train(comm, method)
        if comm.rank == 0:
            print(f"{name:20} loss {loss:.4f}, {sent:8.2f} MB sent per rank")


def main() -> None:
    """Run on the ranks of a launcher, or on threads if there is none."""
    with sparcml.world() as comm:
        if comm.size > 1:
            work(comm)
            return
    sparcml.launch(work, ranks=4)


if __name__ == "__main__":
    main()
