"""Decentralized methods by specification, such as `dpsgd`, `choco:0.04` or `moniqua:2`."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..aggregate import Compressed
from ..aggregate.parse import parse_method as parse_aggregation
from ..quantize import QSGD
from ..sparsify import TopK
from .base import METHODS

if TYPE_CHECKING:
    from .base import Method
    from .compression import Compressor
    from .topologies import Topology

OPTIONS = {"dpsgd": "momentum", "choco": "gamma", "moniqua": "theta"}  # after a colon
REQUIRED = {"moniqua": "moniqua:2"}
COMPRESS: dict[str, Compressor] = {  # if none is given
    "naive_quantized": QSGD(bits=8),
    "dcd": QSGD(bits=4),
    "ecd": QSGD(bits=8),
    "choco": TopK(0.01),
}


def parse_method(
    text: str, topology: Topology, compress: str | None = None, seed: int = 0
) -> Method:
    """Return the method that a specification describes.

    Args:
        text: Name of a method; a colon and an option may follow, see `method_syntax`.
        topology: The neighbours.
        compress: Specification of a sparsifier or a quantizer, such as `topk:0.01`.
        seed: Random seed, if the method has one.

    Raises:
        ValueError: If a name is unknown, an option is invalid, or the method excludes the
            topology or the compressor.
    """
    name, _, option = text.partition(":")
    if name not in METHODS:
        raise ValueError(f"parse_method: method must be {method_syntax()}, got {text!r}")
    names = {f.name for f in fields(METHODS[name])}
    settings: dict[str, Any] = {"seed": seed} if "seed" in names else {}
    if "compress" in names:
        settings["compress"] = COMPRESS[name] if compress is None else compressor(compress)
    elif compress is not None:
        raise ValueError(
            f"parse_method: compress must be left out with {name}, which sends models; the "
            f"methods that compress are {', '.join(COMPRESS)}"
        )
    if option:
        if name not in OPTIONS:
            raise ValueError(f"parse_method: method {name} has no option, got {option!r}")
        settings[OPTIONS[name]] = _number(name, option)
    elif name in REQUIRED:
        raise ValueError(
            f"parse_method: method {name} needs {OPTIONS[name]}, such as {REQUIRED[name]}"
        )
    return METHODS[name](topology, **settings)


def compressor(text: str) -> Compressor:
    """Return the sparsifier or quantizer of a specification."""
    method = parse_aggregation(text)
    parts = (
        [part for part in (method.sparsify, method.quantize) if part is not None]
        if isinstance(method, Compressed)
        else []
    )
    if len(parts) != 1:
        raise ValueError(
            f"parse_method: compress must be one sparsifier or one quantizer for a decentralized "
            f"method, such as topk:0.01 or qsgd:4, got {text!r}"
        )
    return parts[0]  # type: ignore[return-value]  # not a schedule, which has no specification


def method_syntax() -> str:
    """Return the specifications that `parse_method` accepts, for help texts and errors."""
    return ", ".join(f"{n}:{OPTIONS[n].upper()}" if n in OPTIONS else n for n in METHODS)


def _number(name: str, option: str) -> float:
    try:
        return float(option)
    except ValueError:
        raise ValueError(
            f"parse_method: {OPTIONS[name]} of {name} must be a number, got {option!r}"
        ) from None
