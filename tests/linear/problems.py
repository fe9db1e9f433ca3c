"""Small problems for the solvers, and a reference SGD in NumPy."""

import numpy as np

from sparcml.linear import LOSSES, Rows
from sparcml.linear.data.shuffle import permuted_positions

from . import reference


def problem(count=120, features=300, each=9, *, signs=True, seed=0, dtype=np.float64):
    """Return rows with a few features each, some frequent, and mostly separable labels."""
    rng = np.random.default_rng(seed)
    X = np.zeros((count, features), dtype)
    for row in X:
        columns = np.unique((features * rng.random(each) ** 2).astype(int))
        row[columns] = rng.normal(size=columns.size)
    margin = X @ rng.normal(size=features) + 0.3 + 0.1 * rng.normal(size=count)
    return Rows.of(X, np.where(margin > 0, 1.0, -1.0) if signs else margin)


def dense(rows):
    return rows.to_scipy().toarray().astype(np.float64)


def reference_sgd(solver, rows):
    """Return the weights and intercept of SGD that updates all weights in every step."""
    X, y, total = dense(rows), rows.labels, rows.total
    penalty, loss = solver.penalty, LOSSES[solver.loss]
    w, m, b, drift = np.zeros(rows.features), np.zeros(rows.features), 0.0, 0.0
    squares, square = np.full(rows.features, solver.adaptive or 0.0), solver.adaptive
    ones = np.ones(total) if rows.weights is None else rows.weights
    for epoch in range(solver.epochs):
        order = np.arange(total)
        if solver.seed is not None:
            order = np.argsort(permuted_positions(order, total, solver.seed, epoch))
        for start in range(0, total, solver.batch_size):
            batch = order[start : start + solver.batch_size]
            rate = solver.learning_rate.at(np.array([epoch + start / total]))[0]
            slopes = ones[batch] * loss.derivative(X[batch] @ w + b, y[batch]) / len(batch)
            gradient = slopes @ X[batch]
            if square is not None:
                w, squares = reference.adaptive_step(
                    w, squares, gradient, rate, penalty.l1, penalty.l2
                )
                square += slopes.sum() ** 2
                own = rate * solver.intercept_rate / np.sqrt(square)
                b -= own * slopes.sum() * solver.intercept
                continue
            w, m = reference.step(
                w, m, gradient, rate, penalty.l1, solver.decay, solver.momentum
            )
            drift = solver.momentum * drift + slopes.sum()
            b -= rate * drift * solver.intercept * solver.intercept_rate
    return w, b
