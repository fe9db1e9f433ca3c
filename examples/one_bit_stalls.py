"""One bit a value: stuck far from the goal, unless the error is carried over.

Least squares with rare, large mistakes: each of 4 ranks measures a vector again and again. In
nine of ten cases a measured value is too low by 1, else it is too high by 9 (for every other
value the other way round): the mean is right. SGD with all bits finds it. One bit a value
hears nine small pulls to one side and a single one, hardly larger, to the other; so it stops
where there are as many of each: at the median, which is off by 1.

With error feedback each rank keeps what its bits did not say, and adds it to its next gradient:
then the large pulls come through after all. Ranks are threads of this process.

    python examples/one_bit_stalls.py
"""

import numpy as np

import sparcml

SIZE, RANKS, STEPS, RATE = 1_000, 4, 200, 0.04
RARE, LARGE, SMALL = 0.1, 9.0, -1.0  # 0.1 * 9 - 0.9 * 1 = 0: right on average

Values = np.ndarray[tuple[int], np.dtype[np.float32]]


def measured(truth: Values, rng: np.random.Generator) -> Values:
    """The truth, and a mistake whose mean is 0 but whose median is not."""
    mistake = np.where(rng.random(SIZE) < RARE, LARGE, SMALL)
    mistake[1::2] *= -1
    return (truth + mistake).astype(np.float32)


def loss(method: sparcml.Method) -> float:
    """Mean squared distance to the truth, over the last fifty steps of SGD."""
    truth = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)

    def body(comm: sparcml.Communicator) -> float:
        rng = np.random.default_rng([1, comm.rank])
        x, state = np.zeros(SIZE, np.float32), method.init(SIZE)
        losses = []
        for _ in range(STEPS):
            gradient = x - measured(truth, rng)
            mean, state = method.aggregate(comm, gradient, state)
            x = x - np.float32(RATE) * mean
            losses.append(np.mean((x - truth) ** 2))
        return float(np.mean(losses[-50:]))

    return sparcml.launch(body, RANKS)[0]


def losses() -> dict[str, float]:
    """All bits, then one bit by both methods, without and with feedback."""
    found = {"dense": loss(sparcml.Dense())}
    for name, code in (("1-bit", sparcml.OneBit()), ("sign", sparcml.Sign())):
        for feedback in (False, True):
            method = sparcml.Compressed(quantize=code, error_feedback=feedback)
            label = f"{name}, {'with' if feedback else 'no'} feedback"
            found[label] = loss(method)
    return found


def main() -> None:
    """Print the losses and how they compare."""
    found = losses()
    for name, value in found.items():
        ratio = value / found["dense"]
        print(f"{name:21} loss {value:.4f}, {ratio:5.2f} times the dense one")


if __name__ == "__main__":
    main()
