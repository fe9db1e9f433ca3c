"""Methods that the planner compares, derived from the registries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..collectives import ALLREDUCES
from ..quantize.base import QUANTIZERS
from ..sparsify.base import SPARSIFIERS
from .base import METHODS
from .compressed import Compressed

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


def _sparsifiers(ratios: Sequence[float] | None) -> list[Sparsifier]:
    sparsifiers: list[Sparsifier] = []
    for sparsifier in SPARSIFIERS.values():
        instances = sparsifier.planned()
        if ratios is not None and instances and sparsifier.option == "RATIO":
            distinct = sorted(set(ratios), reverse=True)
            instances = tuple(sparsifier.from_option(repr(ratio)) for ratio in distinct)
        sparsifiers += instances
    return sparsifiers
