"""Aggregation methods by specification, such as `topk:0.01,qsgd:4`, `powersgd:4` or `dense`.

A specification is a method of `METHODS`, or a sparsifier and a quantizer of their registries
(one or both, in any order), which give a `Compressed`. An option follows a colon.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..quantize.base import QUANTIZERS, Quantizer
from ..sparsify.base import SPARSIFIERS, Sparsifier
from .base import METHODS, Method
from .compressed import Compressed
from .fence import LIMIT, needs_fence
from .schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterable


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


def as_method(function: str, method: Any) -> Method:
    """Return the method; a quantizer or sparsifier gets error feedback around it.

    `OneBit` and `TernGrad` without a sparsifier get a fence, see `sparcml.aggregate.fence`.

    Args:
        function: Name of the function whose argument it is, for errors.
        method: A method, a quantizer, a sparsifier or a schedule of sparsifiers.

    Raises:
        TypeError: If it is something else.
    """
    if isinstance(method, Quantizer):
        method = Compressed(quantize=method)
    if isinstance(method, Compressed) and needs_fence(method):
        return replace(method, fence=LIMIT)
    if isinstance(method, Method):
        return method
    if isinstance(method, Sparsifier | Schedule):
        return Compressed(method)
    raise TypeError(
        f"{function}: method must be a method such as sparcml.Dense(), a quantizer such as "
        f"sparcml.QSGD(4), a sparsifier such as sparcml.TopK(0.01), 'auto' or 'recommended', "
        f"got {method!r}"
    )


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
