"""Logistic regression with a fraction of the bytes: the same steps, other methods.

Every rank has rows of its own and computes its own gradient; a method makes the mean of all. With
error feedback what is not sent now is sent later, so 1 % of the entries a step is enough.

    python examples/compressed_training.py                    # 4 ranks as threads
    sparcml run -n 4 examples/compressed_training.py          # 4 MPI processes
"""

import numpy as np

import sparcml

ROWS, FEATURES, STEPS, RATE = 100, 10_000, 200, 10.0

METHODS = {
    "dense": sparcml.Dense(),
    "1 % of the entries": sparcml.Compressed(sparcml.TopK(0.01)),
    "1 % in 4 bits": sparcml.Compressed(sparcml.TopK(0.01), sparcml.QSGD(bits=4)),
    "1 bit a value": sparcml.Compressed(quantize=sparcml.OneBit()),
    "PowerSGD, rank 1": sparcml.PowerSGD(rank=1),
}


def rows_of(rank: int) -> tuple[np.ndarray, np.ndarray]:
    """This rank's data: points of unit length and labels of +1 and -1."""
    truth = np.random.default_rng(0).standard_normal(FEATURES)
    rng = np.random.default_rng(1 + rank)
    scale = 1 / (1 + np.arange(FEATURES)) ** 0.5  # few features matter much
    x = rng.standard_normal((ROWS, FEATURES)) * scale
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x.astype(np.float32), np.sign(x @ truth).astype(np.float32)


def train(comm: sparcml.Communicator, method: sparcml.Method) -> tuple[float, float]:
    """The loss after the last step, and the megabytes that a rank has sent."""
    x, y = rows_of(comm.rank)
    w = np.zeros((100, FEATURES // 100), np.float32)
    state = method.init(w.shape)
    comm.stats.reset()
    for _ in range(STEPS):
        margin = y * (x @ w.reshape(-1))
        slope = -y / (1 + np.exp(margin))
        gradient = (slope @ x / ROWS).reshape(w.shape)
        mean, state = method.aggregate(comm, gradient, state)
        w -= RATE * mean
    sent = comm.stats.bytes / 1e6
    loss = np.mean(np.log1p(np.exp(-y * (x @ w.reshape(-1)))))
    return float(comm.allreduce(np.array([loss]), op="mean")[0]), sent


def work(comm: sparcml.Communicator) -> None:
    """Train with each method and let one rank print."""
    for name, method in METHODS.items():
        loss, sent = train(comm, method)
        if comm.rank == 0:
            print(f"{name:20} loss {loss:.4f}, {sent:8.2f} MB sent by each rank")


def main() -> None:
    """On the ranks of a launcher, or on threads if there is none."""
    with sparcml.world() as comm:
        if comm.size > 1:
            work(comm)
            return
    sparcml.launch(work, ranks=4)


if __name__ == "__main__":
    main()
