"""Cases of claim 29, and their measurement. A case has one row per seed."""

from __future__ import annotations

from typing import Any, NamedTuple

from .recipes import MIDDLE, RECIPES

BATCHES: tuple[int, ...] = tuple(1 << e for e in range(4, 14))
COMPRESSED_BATCHES = BATCHES[1::2]
SEEDS = (0, 1, 2)
TARGET = 83.0  # percent of the test images
WARM_UP = 50  # steps
IMAGES = 96_000  # limit of a run, but at least LIMIT steps
LIMIT = 300
TRIED = (1 / 2, 1.0, 2.0)  # multiples of the chosen rate, at the middle batch size
LOWER = (1 / 2, 1 / 4, 1 / 8)  # multiples of the rule's rate, for batches from LARGE on
LARGE = 2048

# Sharpness: networks that fit a smaller set of images equally well.
FITTED, LOSS, STEPS = 4096, 0.2, 4000
SMALL_BATCH, FULL_BATCH, LAST_RATE = 32, 4096, 1024

Row = dict[str, Any]


class Case(NamedTuple):
    """Settings of a run, without its seed.

    Attributes:
        part: "steps" (to the target) or "sharpness".
        recipe: Name of the recipe.
        batch: Batch size.
        multiple: Multiple of the rule's learning rate.
        warm_up: Number of warm-up steps.
        compressed: Whether gradients are compressed.
    """

    part: str
    recipe: str
    batch: int
    multiple: float = 1.0
    warm_up: int = WARM_UP
    compressed: bool = False


def cases() -> list[Case]:
    """Return all cases, without duplicates."""
    found = [Case("steps", name, MIDDLE, m) for name in RECIPES for m in TRIED]
    found += [Case("steps", name, batch) for name in RECIPES for batch in BATCHES]
    found += [
        Case("steps", name, batch, compressed=True)
        for name in RECIPES
        for batch in COMPRESSED_BATCHES
    ]
    found += [Case("steps", "sgd", b, warm_up=0) for b in BATCHES if b >= MIDDLE]
    large = [batch for batch in BATCHES if batch >= LARGE]
    found += [Case("steps", n, b, m) for n in RECIPES for b in large for m in lower(n)]
    found += [Case("sharpness", name, SMALL_BATCH) for name in RECIPES]
    # At most the rule's rate at LAST_RATE: with that at 4096, SGD diverges.
    shares = {name: rate_ratio(name, LAST_RATE, FULL_BATCH) for name in RECIPES}
    found += [Case("sharpness", name, FULL_BATCH, m) for name, m in shares.items()]
    found.append(Case("sharpness", "sgd", FULL_BATCH, shares["sgd"] / 4))
    return list(dict.fromkeys(found))


def lower(recipe: str) -> tuple[float, ...]:
    """Return the lower multiples of the rule's rate that are tried with large batches."""
    return LOWER if recipe == "sgd" else LOWER[:1]


def rate_ratio(recipe: str, batch: int, other: int) -> float:
    """Return the ratio of the rule's learning rates at two batch sizes."""
    return RECIPES[recipe].rate_at(batch) / RECIPES[recipe].rate_at(other)


def limit(batch: int) -> int:
    """Return the maximum number of steps to the target."""
    return max(LIMIT, IMAGES // batch)


def measure(
    part: str, recipe: str, batch: int, multiple: float, warm_up: int, compressed: bool
) -> list[Row]:
    """Return the rows of a case."""
    case = Case(part, recipe, batch, multiple, warm_up, compressed)
    run = _steps if part == "steps" else _sharpness
    return [case._asdict() | {"seed": seed} | run(case, seed) for seed in SEEDS]


def _steps(case: Case, seed: int) -> Row:
    """Train to the target."""
    from .problem import evaluate, images
    from .train import training

    recipe, (train, test) = RECIPES[case.recipe], images()
    rate = recipe.rate_at(case.batch) * case.multiple
    settings = recipe, train, case.batch, rate, case.warm_up, seed, case.compressed
    with training(*settings) as (run, model, aggregator):
        steps = run.until(lambda: evaluate(model, test)[1] >= TARGET, limit(case.batch))
        sent = aggregator.bytes_sent / max(1, run.steps)
    return {"rate": rate, "steps": steps, "made": run.steps, "sent": round(sent)}


def _sharpness(case: Case, seed: int) -> Row:
    """Train to a small training loss, and measure sharpness and generalization gap."""
    from .problem import Images, evaluate, images
    from .sharpness import sharpness
    from .train import training

    recipe, (train, test) = RECIPES[case.recipe], images()
    part = Images(train.pixels[:FITTED], train.labels[:FITTED])
    rate = recipe.rate_at(case.batch) * case.multiple
    settings = recipe, part, case.batch, rate, case.warm_up, seed, case.compressed
    with training(*settings) as (run, model, _):
        steps = run.until(lambda: evaluate(model, part)[0] <= LOSS, STEPS)
    if steps is None:
        return {"rate": rate, "steps": None}
    (loss, fitted), (test_loss, tested) = evaluate(model, part), evaluate(model, test)
    return {
        "rate": rate,
        "steps": steps,
        "loss": round(loss, 4),
        "test_loss": round(test_loss, 4),
        "accuracy": round(tested, 3),
        "gap": round(fitted - tested, 3),
        "sharpness": round(sharpness(model, part), 4),
    }
