"""Claim 29: steps to a target against batch size, and sharpness against generalization.

The experiment is in benchmarks/batch_sizes.
"""

from __future__ import annotations

import math
from statistics import mean
from typing import TYPE_CHECKING

from batch_sizes.judge import (
    FLAT,
    PERFECT,
    averaged,
    best_curve,
    curve,
    last_gain,
    of_case,
    perfect_to,
    reach,
    slower,
    steps,
)
from batch_sizes.plan import (
    BATCHES,
    FITTED,
    LARGE,
    LAST_RATE,
    LOSS,
    LOWER,
    SEEDS,
    TARGET,
    TRIED,
    WARM_UP,
    Case,
    cases,
    limit,
    measure,
)
from batch_sizes.recipes import MIDDLE, MOMENTUM, RECIPES, RHO, TRUST
from tables import markdown

from .base import Answer, Claim, Row
from .large_batch_figures import scaling_figure, sharpness_figure

if TYPE_CHECKING:
    from batch_sizes.judge import Mean

ENOUGH = 8  # times the smallest batch: perfect scaling must reach that far


def answer(rows: list[Row]) -> Answer:
    """Hit if scaling is perfect at first and flat at last, and each recipe reaches further."""
    best, rule = best_curve(rows, "sgd"), curve(rows, "sgd")
    cold = curve(rows, "sgd", warm_up=0)
    others = {name: best_curve(rows, name) for name in RECIPES if name != "sgd"}
    perfect, gain = perfect_to(best), last_gain(best)
    scales = perfect >= ENOUGH * BATCHES[0] and gain <= FLAT
    warms = reach(rule) > reach(cold)
    reached = [RECIPES[n].title for n, c in others.items() if reach(c) == BATCHES[-1]]
    ours = (
        f"SGD needs {_number(best.get(BATCHES[0]))} steps to {TARGET:g} % at batch {BATCHES[0]}"
        f", {_number(best.get(MIDDLE))} at {MIDDLE} and {_number(best.get(BATCHES[-1]))} at "
        f"{BATCHES[-1]:,}: perfect scaling up to {perfect}, and the last doubling saves "
        f"{_gain(gain)}; linear scaling reaches the target up to batch {reach(rule):,} with "
        f"warm-up and {reach(cold):,} without; at {BATCHES[-1]:,}: "
        f"{', '.join(_at_largest(rows, name) for name in others)}; with compression "
        f"{', '.join(_compressed(rows, name) for name in RECIPES)} the steps"
    )
    hit = scales and warms and len(reached) == len(others)
    parts = [
        "averaging removes noise, and noise decides up to the critical batch; beyond it, steps "
        "are limited by curvature"
        if scales
        else f"perfect scaling ends at {perfect}, or the last doubling still saves {_gain(gain)}"
        if math.isfinite(gain)
        else f"scaling is perfect up to {perfect}, then flattens, but no rate that was tried "
        f"takes SGD to the target with all seeds at {BATCHES[-1]:,}",
        "the warm-up leaves the region of high curvature before the rate is high"
        if warms
        else "the warm-up does not extend linear scaling",
    ]
    if len(reached) < len(others):
        missed = [RECIPES[n].title for n in others if RECIPES[n].title not in reached]
        parts.append(f"{' and '.join(missed)} did not reach the target at {BATCHES[-1]:,}")
    if delayed(rows):
        parts.append(
            "TopK delays values by a number of steps, which is more of a run the fewer it has"
        )
    known = {tuple(row[key] for key in Case._fields) for row in rows}
    if missing := len(cases()) - len(known):
        text = f"not complete: {missing} of {len(cases())} cases are missing"
        return Answer(False, ours, text, _details(rows), complete=False)
    return Answer(hit, ours, "; ".join(parts), _details(rows))


def delayed(rows: list[Row]) -> bool:
    """Return whether TopK costs SGD more of its steps at the largest batch than at the first."""
    ratios = list(slower(rows, "sgd").values())
    return len(ratios) > 1 and ratios[-1] > ratios[0]


def fewer_bytes(rows: list[Row], recipe: str) -> float:
    """Return the compression ratio: bytes per step without and with compression."""
    dense, ours = (
        [r["sent"] for r in rows if r["recipe"] == recipe and r.get("compressed") is how
         and r["part"] == "steps"]
        for how in (False, True)
    )  # fmt: skip
    return mean(dense) / mean(ours) if dense and ours else math.nan


def _gain(factor: float) -> str:
    return f"{factor:.2f}x" if math.isfinite(factor) else "an unknown factor"


def _number(point: Mean | None) -> str:
    return "-" if point is None else f"{point.value:,.0f}"


def _at_largest(rows: list[Row], recipe: str) -> str:
    point = best_curve(rows, recipe).get(BATCHES[-1])
    return f"{RECIPES[recipe].title} {_number(point)}" if point else (
        f"{RECIPES[recipe].title} misses it"
    )  # fmt: skip


def _compressed(rows: list[Row], recipe: str) -> str:
    found = slower(rows, recipe)
    known = [ratio for ratio in found.values() if math.isfinite(ratio)]
    title = f"{RECIPES[recipe].title} ({RECIPES[recipe].method_title})"
    if not known:
        return f"{title} no batch within the limit of"
    missed = [batch for batch, ratio in found.items() if math.isinf(ratio)]
    text = f"{title} {min(known):.2f}x to {max(known):.2f}x"
    return text + (f" (more than the limit from batch {min(missed)} on)" if missed else "")


def _details(rows: list[Row]) -> str:
    return (
        f"Measured: a network of 196, 128, 64 and 10 units (34,122 parameters) on 20,000 images "
        f"of Fashion-MNIST, halved to 14 x 14 pixels; steps to {TARGET:g} % of 5,000 test images,"
        f" tested after 32 steps and then after every 5 % more; mean and standard error of "
        f"{len(SEEDS)} seeds. Momentum of SGD, LARS and SAM {MOMENTUM:g}; trust coefficient of "
        f"LARS {TRUST:g}; rho of SAM {RHO:g}, with each rank's own gradient in the first pass. "
        f"Learning rates are constant after a warm-up of "
        f"{WARM_UP} steps. They were chosen from dense runs at batch {MIDDLE}: the smallest "
        f"within one standard error of the fewest steps. From there they grow with the batch "
        f"(SGD, SAM), or with its square root (LARS, LAMB: steps of a length that does not "
        f"depend on the gradient's).\n\n{_rates(rows)}\n"
        f"A dash: not reached by all seeds within {limit(BATCHES[-1])} steps, or "
        f"{limit(BATCHES[0]) * BATCHES[0]:,} images if these are more. *Best*: the best of the "
        f"rule's rate and {LOWER[0]:g} of it, for SGD also "
        f"{' and '.join(f'{m:g}' for m in LOWER[1:])}, from batch {LARGE:,} on. "
        f"Perfect scaling uses at most {PERFECT:g} times the images of batch {BATCHES[0]}. "
        f"Compression is on 4 ranks: TopK 16 of 512 with error feedback, and for LAMB, which "
        f"bursts would harm, QSGD with 4 bits; they send {fewer_bytes(rows, 'sgd'):.0f} and "
        f"{fewer_bytes(rows, 'lamb'):.1f} times fewer bytes per step than a dense ring."
        f"\n\n{_scaling(rows)}\n"
        f"Sharpness is that of Keskar et al. (2017): 100 (max f(w + z) - f(w)) / (1 + f(w)) "
        f"over |z_i| <= 0.001 (|w_i| + 1), with f the training loss, by 10 steps of projected "
        f"gradient ascent. The networks are trained on {FITTED:,} images to a training loss of "
        f"{LOSS:g}, with the rule's learning rate, but at most that of batch {LAST_RATE:,}. "
        f"The gap is training less test accuracy.\n\n{_sharpness(rows)}"
    )


def _rates(rows: list[Row]) -> str:
    head = [f"steps at batch {MIDDLE}", *(f"{m:g}x" for m in TRIED), "chosen rate"]
    lines = [
        [recipe.title]
        + [_cell(steps(rows, name, MIDDLE, multiple=m)) for m in TRIED]
        + [f"{recipe.rate:g}"]
        for name, recipe in RECIPES.items()
    ]
    return markdown(head, lines)


def _scaling(rows: list[Row]) -> str:
    head = ["steps to the target", *(f"{batch:,}" for batch in BATCHES)]
    curves = {recipe.title: curve(rows, name) for name, recipe in RECIPES.items()}
    curves["SGD, no warm-up"] = curve(rows, "sgd", warm_up=0)
    for name, recipe in RECIPES.items():
        curves[f"{recipe.title}, best"] = best_curve(rows, name)
    measured = {label: set(BATCHES) for label in curves}
    measured["SGD, no warm-up"] = {batch for batch in BATCHES if batch >= MIDDLE}
    for name, recipe in RECIPES.items():
        label = f"{recipe.title}, {recipe.method_title}"
        curves[label] = curve(rows, name, compressed=True)
        measured[label] = set(slower(rows, name)) | set(curves[label])
    lines = [
        [label, *(_cell(points.get(b)) if b in measured[label] else "" for b in BATCHES)]
        for label, points in curves.items()
    ]
    return markdown(head, lines)


def _cell(point: Mean | None, digits: int = 0) -> str:
    if point is None:
        return "-"
    return f"{point.value:,.{digits}f} ± {point.error:,.{digits}f}"


def _sharpness(rows: list[Row]) -> str:
    head = ["", "batch", "rate", "steps", "sharpness", "gap (points)", "test accuracy (%)"]
    lines = []
    for row in rows:
        if row["part"] != "sharpness" or row["seed"] != SEEDS[0]:
            continue
        settings = row["recipe"], row["batch"], row["multiple"]
        case = of_case(rows, *settings, part="sharpness")
        cells = [RECIPES[row["recipe"]].title, f"{row['batch']:,}", f"{row['rate']:.3g}"]
        for key, digits in (("steps", 0), ("sharpness", 1), ("gap", 2), ("accuracy", 2)):
            point = averaged([other.get(key) for other in case])
            cells.append(_cell(point, digits))
        lines.append(cells)
    return markdown(head, lines)


CLAIM = Claim(
    number=29,
    title="Large batches",
    text=(
        "larger batches: perfect scaling, then a plateau; linear scaling and warm-up; LARS, "
        "LAMB, SAM"
    ),
    source="a lecture on parallel training",
    how="measured, on threads",
    seed=SEEDS[0],
    cases=cases(),
    measure=measure,
    answer=answer,
    figures={"large-batches": scaling_figure, "sharpness": sharpness_figure},
)
