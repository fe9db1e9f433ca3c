"""Claim 5: averaging P estimators divides the variance by P, and so the steps needed.

Each rank measures a vector with noise and sends it in 4 bits. In the split allreduce, the
owner of a range quantizes the sum once more; that error does not shrink with P, so both are
shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

import sparcml

from .base import Answer, Claim, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

SIZE, SEED, TRIALS = 4096, 1, 12
RANKS = (1, 2, 4, 8, 16, 32)
NOISE, GOAL, MOST = 2.0, 0.02, 4000
CODE = sparcml.QSGD(bits=4, bucket=1024)
SUMS = {
    "exact sum": "every rank's 4-bit code, decoded and added in full precision",
    "split allreduce": "the same codes, and the sum quantized again to 4 bits by its owner",
    "float32": "no quantization",
}
NEAR = 0.1


def truth() -> NDArray[np.float32]:
    """Return the vector that is measured."""
    return np.random.default_rng(SEED).standard_normal(SIZE, np.float32)


def estimate(
    comm: sparcml.Communicator, x: NDArray[np.float32], how: str, seed: int
) -> Any:
    """Return the mean of the measurements of all ranks. Collective."""
    if how == "split allreduce" and comm.size > 1:
        return comm.allreduce(x, "mean", "dsar_split_allgather", CODE)
    if how != "float32":
        x = CODE.decode(CODE.encode(x, seed)).reshape(-1)
    return comm.allreduce(x, "mean", "recursive_double")


def measure(how: str, ranks: int, trials: int = TRIALS) -> list[Row]:
    """Return the squared error of a mean, and the SGD steps to a smaller one."""
    want = truth()

    def body(comm: sparcml.Communicator) -> tuple[float, int]:
        rng = np.random.default_rng([SEED, ranks, comm.rank])

        def once() -> NDArray[np.float64]:
            x = want + np.float32(NOISE) * rng.standard_normal(SIZE, np.float32)
            return np.asarray(
                estimate(comm, x, how, int(rng.integers(1 << 40))), np.float64
            )

        errors = [np.mean((once() - want) ** 2) for _ in range(trials)]
        steps, total = 1, once()
        # SGD on ‖x - truth‖^2 / 2 with rates 1/t is the running mean of what comes in.
        while steps < MOST and np.mean((total / steps - want) ** 2) > GOAL:
            total += once()
            steps += 1
        return float(np.mean(errors)), steps

    error, steps = sparcml.launch(body, ranks)[0]
    return [{"how": how, "ranks": ranks, "error": error, "steps": steps}]


def line(rows: list[Row], how: str, key: str) -> tuple[list[int], list[float]]:
    """Return one curve: ranks and values."""
    mine = [row for row in rows if row["how"] == how]
    return [row["ranks"] for row in mine], [row[key] for row in mine]


def fitted(rows: list[Row], how: str, key: str) -> float:
    """Return the slope of a curve on logarithmic axes."""
    ranks, found = line(rows, how, key)
    return float(np.polyfit(np.log(ranks), np.log(found), 1)[0])


def answer(rows: list[Row]) -> Answer:
    """Hit if error and steps fall as 1/P where the sum is exact."""
    slopes = {(h, k): fitted(rows, h, k) for h in SUMS for k in ("error", "steps")}
    exact = [slopes[h, k] for h in ("exact sum", "float32") for k in ("error", "steps")]
    hit = all(abs(found + 1) <= NEAR for found in exact)
    ours = (
        f"error ~ P^{slopes['exact sum', 'error']:.2f} and steps ~ "
        f"P^{slopes['exact sum', 'steps']:.2f} with 4-bit codes; "
        f"P^{slopes['float32', 'error']:.2f} and P^{slopes['float32', 'steps']:.2f} without; "
        f"P^{slopes['split allreduce', 'error']:.2f} if the sum is quantized again"
    )
    why = (
        "the codes of different ranks are independent and unbiased, so their errors average out; "
        "the owner's code of the sum adds one error that all ranks share"
        if hit
        else f"a slope is not within {NEAR} of -1"
    )
    return Answer(hit, ours, why, _details(rows))


def _details(rows: list[Row]) -> str:
    ranks = sorted({row["ranks"] for row in rows})
    lines = []
    for how in SUMS:
        for key, spec in (("error", ".4f"), ("steps", ".0f")):
            cells = [format(v, spec) for v in line(rows, how, key)[1]]
            what = "squared error" if key == "error" else f"steps to {GOAL:g}"
            lines.append([how, what, *cells, f"{fitted(rows, how, key):.2f}"])
    head = ["sum", "what", *(f"P = {p}" for p in ranks), "slope"]
    about = "; ".join(f"*{how}*: {text}" for how, text in SUMS.items())
    return (
        f"A vector of {SIZE:,} Gaussian values, measured by each rank with Gaussian noise of "
        f"standard deviation {NOISE:g}. The error is the mean squared error per value of one mean "
        f"over all ranks ({TRIALS} trials); steps are SGD steps with learning rate 1/t until the "
        f"error is below {GOAL:g}. {about}.\n\n{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot error and steps against ranks."""
    from matplotlib.ticker import NullFormatter

    from .drawing import BLUE, GREEN, ORANGE, axes

    canvas, sheets = axes(2, (8.0, 3.2), together=False)
    styles = dict(zip(SUMS, ((BLUE, "-o"), (ORANGE, "-s"), (GREEN, "--")), strict=True))
    for ax, key in zip(sheets, ("error", "steps"), strict=True):
        for how, (colour, style) in styles.items():
            ranks, found = line(rows, how, key)
            label = how if how == "float32" else f"4 bits, {how}"
            ax.plot(ranks, found, style, color=colour, ms=4, label=label)
        ax.set(xlabel="ranks", xscale="log", yscale="log")
        ax.set_xticks(ranks, [str(p) for p in ranks])
        ax.yaxis.set_minor_formatter(NullFormatter())
    sheets[0].set_ylabel("squared error of one mean")
    sheets[1].set_ylabel(f"steps until it is below {GOAL:g}")
    canvas.legend(
        *sheets[0].get_legend_handles_labels(),
        loc="outside upper center",
        ncols=3,
        frameon=False,
    )
    return canvas


CLAIM = Claim(
    number=5,
    title="The mean of P estimates",
    text="averaging P estimators divides the variance by P, and the steps needed fall like 1/P",
    source="a talk on communication in training",
    how="measured, on threads",
    seed=SEED,
    cases=[(how, ranks) for how in SUMS for ranks in RANKS],
    measure=measure,
    answer=answer,
    figures={"averaging": figure},
)
