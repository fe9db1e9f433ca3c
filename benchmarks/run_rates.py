"""Compare learning rates on a fifth of the training mails; the test mails are not used.

The default of `sparcml fit` and `sparcml demo` is a rule, 1 / (curvature of the loss x mean
squared norm of the rows); this shows the results of other learning rates and momentum.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

import sparcml
from sparcml.bench.results import write_json
from sparcml.environment import describe
from sparcml.linear import LOSSES, SGD, Constant, Rows, spam
from sparcml.linear.data.shuffle import train_validation_split
from sparcml.linear.solvers.objective import margins, mean_loss

RULE = 4.0  # logistic loss, rows of length 1
PASSES = 10
# of fit, and of the demo: rows of a step, momentum
SETTINGS = ((32, 0.0), (300, 0.0), (300, 0.9))


def judged(
    comm: sparcml.Communicator, solver: SGD, train: Rows, judge: Rows
) -> dict[str, Any]:
    """Return the loss and accuracy on the validation rows."""
    state = solver.run(comm, train)
    found = margins(judge, state.weights, state.intercept)
    loss = LOSSES[solver.loss]
    return {
        "loss": mean_loss(comm, judge, loss, state.weights, state.intercept),
        "right": float(np.mean((found > 0) == (judge.labels > 0))),
        "wrong": not np.isfinite(found).all(),
    }


def main() -> None:
    """Run all settings."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--json", type=Path)
    chosen = options.parse_args()
    rows = []
    with sparcml.world() as comm:
        train, judge = train_validation_split(comm, spam().train, 0.2, seed=0)
        for batch, momentum in SETTINGS:
            for times in (0.25, 0.5, 1.0, 2.0, 4.0):
                solver = SGD(
                    learning_rate=Constant(RULE * times),
                    batch_size=batch,
                    momentum=momentum,
                    epochs=PASSES,
                )
                about = {"batch": batch, "momentum": momentum, "times": times}
                rows.append(about | judged(comm, solver, train, judge))
                print(rows[-1], flush=True)
    if chosen.json:
        write_json(chosen.json, describe("", 0), rows)


if __name__ == "__main__":
    main()
