"""Aggregation methods by specification, such as `topk:0.01,qsgd:4`, `powersgd:4` or `dense`.

A specification is a method of `METHODS`, or a sparsifier and a quantizer of their registries
(one or both, in any order), which give a `Compressed`. An option follows a colon.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..quantize.base import QUANTIZERS
from ..sparsify.base import SPARSIFIERS
from .base import METHODS
from .compressed import Compressed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .base import Method


def parse_method(text: str) -> Method:
    """Return the method that a specification describes.

    Example:
        >>> parse_method("powersgd:2").rank
        2

    Raises:
        ValueError: If a name is unknown, or an option is invalid.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and _name(parts[0]) in METHODS:
        method: Method = _build(METHODS[_name(parts[0])], parts[0])
        return method
    settings: dict[str, Any] = {}
    for part in parts:
        name = _name(part)
        if name in SPARSIFIERS and "sparsify" not in settings:
            settings["sparsify"] = _build(SPARSIFIERS[name], part)
        elif name in QUANTIZERS and "quantize" not in settings:
            settings["quantize"] = _build(QUANTIZERS[name], part)
        else:
            raise ValueError(f"parse_method: text must be {method_syntax()}, got {text!r}")
    return Compressed(**settings)


def method_syntax() -> str:
    """Return the specifications that `parse_method` accepts, for help texts and errors."""
    quantizers = [q for q in QUANTIZERS.values() if q.selectable]
    methods = [m for m in METHODS.values() if m is not Compressed]
    return (
        f"a sparsifier ({_names(SPARSIFIERS.values())}), a quantizer ({_names(quantizers)}), "
        f"both separated by a comma, or a method ({_names(methods)})"
    )


def _name(part: str) -> str:
    return part.partition(":")[0]


def _build(plug_in: Any, part: str) -> Any:
    try:
        return plug_in.from_option(part.partition(":")[2])
    except (TypeError, ValueError) as error:
        raise ValueError(f"parse_method: {part!r} is invalid: {error}") from None


def _names(plug_ins: Iterable[Any]) -> str:
    return ", ".join(f"{p.name}:{p.option}" if p.option else p.name for p in plug_ins)
