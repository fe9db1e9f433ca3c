"""One bit per value stalls far from the optimum, unless there is error feedback.

Least squares with rare, large errors: each of 4 ranks measures a vector repeatedly. In nine of
ten cases a measured value is too low by 1, otherwise it is too high by 9 (with opposite signs
for every other value), so the mean is right. SGD with full precision converges to it. With one
bit per value, a rank sees nine small errors to one side and a single one, hardly larger, to the
other; SGD stalls near the median, which is off by 1.

With error feedback each rank adds the quantization error to its next gradient, and the large
errors count in full. Ranks are threads of this process.

    python examples/one_bit_stalls.py
"""

import numpy as np

import sparcml

SIZE, RANKS, STEPS, LEARNING_RATE = 1_000, 4, 200, 0.04
RARE, LARGE, SMALL = 0.1, 9.0, -1.0  # 0.1 * 9 - 0.9 * 1 = 0: the mean is right

Values = np.ndarray[tuple[int], np.dtype[np.float32]]


def measured(truth: Values, rng: np.random.Generator) -> Values:
    """Return the truth plus an error whose mean is 0 but whose median is not."""
    error = np.where(rng.random(SIZE) < RARE, LARGE, SMALL)
    error[1::2] *= -1
    return (truth + error).astype(np.float32)


def loss(method: sparcml.Method) -> float:
    """Return the mean squared distance to the truth over the last 50 steps of SGD."""
    truth = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)

    def body(comm: sparcml.Communicator) -> float:
        rng = np.random.default_rng([1, comm.rank])
        x, state = np.zeros(SIZE, np.float32), method.init(SIZE)
        losses = []
        for _ in range(STEPS):
            gradient = x - measured(truth, rng)
            mean, state = method.aggregate(comm, gradient, state)
            x = x - np.float32(LEARNING_RATE) * mean
            losses.append(np.mean((x - truth) ** 2))
        return float(np.mean(losses[-50:]))

    return sparcml.launch(body, RANKS)[0]


def losses() -> dict[str, float]:
    """Return the losses of dense SGD and of two 1-bit methods without and with feedback."""
    results = {"dense": loss(sparcml.Dense())}
    for name, quantizer in (("1-bit", sparcml.OneBit()), ("sign", sparcml.Sign())):
        for feedback in (False, True):
            method = sparcml.Compressed(quantize=quantizer, error_feedback=feedback)
            label = f"{name}, {'with' if feedback else 'no'} feedback"
            results[label] = loss(method)
    return results


def main() -> None:
    """Print the losses relative to the dense one."""
    results = losses()
    for name, value in results.items():
        ratio = value / results["dense"]
        print(f"{name:21} loss {value:.4f}, {ratio:5.2f} times the dense one")


if __name__ == "__main__":
    main()
