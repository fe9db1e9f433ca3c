"""Methods that the planner compares, derived from the registries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES
from ..quantize.base import QUANTIZERS
from ..sparsify.base import SPARSIFIERS
from .base import METHODS
from .compressed import Compressed
from .evidence import ADAMW, PLANNED_STEPS, SGD, recommended_method

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sparsify import Sparsifier
    from .base import Method


def planned_methods(ratios: Sequence[float] | None = None) -> tuple[Method, ...]:
    """Return the methods that get rows in a plan, the least lossy first.

    These are the planned instances of every method and quantizer; then each planned
    sparsifier, without and with a quantizer; then the sparsifiers with allreduces that drop
    entries, which are never recommended by `auto`.

    Args:
        ratios: Ratios of the sparsifiers, in place of their planned ones.
    """
    sparsifiers = _sparsifiers(ratios)
    quantizers = [q for t in QUANTIZERS.values() for q in t.planned_with_sparsifier()]
    lossy = [a.name for a in ALLREDUCES.values() if a.planned and a.lossy]
    methods = [method for t in METHODS.values() for method in t.planned()]
    for sparsifier in sparsifiers:
        methods.append(Compressed(sparsifier))
        methods += [Compressed(sparsifier, quantizer) for quantizer in quantizers]
    methods += [Compressed(s, algorithm=name) for name in lossy for s in sparsifiers]
    return tuple(methods)


def methods_to_plan(ratios: Sequence[float] | None = None) -> tuple[Method, ...]:
    """Return `planned_methods` and the recommended methods, the least lossy first."""
    planned = planned_methods(ratios)
    sparse = [getattr(method, "sparsify", None) is not None for method in planned]
    quantized = [
        isinstance(method, Compressed) and not each
        for method, each in zip(planned, sparse, strict=True)
    ]
    low_rank = len(quantized) - quantized[::-1].index(True)  # after the quantizers
    first = sparse.index(True)
    falling = replace(recommended_method(SGD, PLANNED_STEPS), steps=PLANNED_STEPS)
    return (
        *planned[:low_rank],
        recommended_method(ADAMW),
        recommended_method(ADAMW, slow_link=True),
        *planned[low_rank:first],
        falling,
        *planned[first:],
    )


def _sparsifiers(ratios: Sequence[float] | None) -> list[Sparsifier]:
    sparsifiers: list[Sparsifier] = []
    for sparsifier in SPARSIFIERS.values():
        instances = sparsifier.planned()
        if ratios is not None and instances and sparsifier.option == "RATIO":
            distinct = sorted(set(ratios), reverse=True)
            instances = tuple(sparsifier.from_option(repr(ratio)) for ratio in distinct)
        sparsifiers += instances
    return sparsifiers
