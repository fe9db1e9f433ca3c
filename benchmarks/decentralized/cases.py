"""All cases of the experiments, cheap ones first; a case is (function, arguments)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import (
    compressed,
    constants,
    convergence,
    different_data,
    rate,
    residual,
    slow_node,
    times,
)

if TYPE_CHECKING:
    from collections.abc import Callable

Row = dict[str, Any]

MEASURES: dict[str, Callable[..., list[Row]]] = {
    "map": times.declared,
    "slow node": slow_node.measure,
    "rate": rate.measure,
    "convergence": convergence.measure,
    "compressed": compressed.measure,
    "few images": compressed.measure,
    "constants": constants.measure,
    "check": compressed.check,
    "bytes": compressed.count,
    "different data": different_data.measure,
    "times": times.simulated,
    "resnet": residual.measure,
}

_COMPRESSED = [(method, bits) for bits in compressed.BITS for method in compressed.METHODS]
_COUNTED = [("D-PSGD", 0), *_COMPRESSED[: len(compressed.METHODS)]]

CASES: list[tuple[str, tuple[Any, ...]]] = [
    *(("map", (ranks, model)) for ranks in times.RANKS for model in times.SIZES),
    *(("slow node", (m, slow)) for m in slow_node.METHODS for slow in (False, True)),
    *(("rate", (nodes, steps)) for nodes in rate.NODES for steps in rate.STEPS),
    *(
        ("convergence", (method, *setting))
        for setting in convergence.SETTINGS
        for method in convergence.METHODS
        if method != convergence.METHODS[-1]
    ),
    *(("compressed", each) for each in [("centralized", 0), ("D-PSGD", 0), *_COMPRESSED]),
    *(
        ("few images", (*each, compressed.FEW))
        for each in [("D-PSGD", 0), ("naive", 4), ("DCD", 4)]
    ),
    *(("constants", (steps,)) for steps in constants.AFTER),
    *(("check", each) for each in _COUNTED),
    *(("bytes", (*each, nodes)) for each in _COUNTED for nodes in compressed.COUNTED),
    *(("different data", (method,)) for method in different_data.METHODS),
    *(("times", point) for point in times.POINTS),
    ("convergence", (convergence.METHODS[-1], *convergence.LONG)),
    *(("resnet", (m, lr)) for lr in residual.RATES for m in residual.METHODS),
]
