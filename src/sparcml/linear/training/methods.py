"""Compression by name: what to keep of a gradient, and in how many bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sparcml.aggregate import Compressed
from sparcml.quantize import NUQSGD, QSGD, Half, Natural, OneBit, Quantizer, TernGrad
from sparcml.sparsify import RandomK, Sparsifier, Threshold, TopK

if TYPE_CHECKING:
    from collections.abc import Callable

    from sparcml.aggregate import Method

# name: (how to make it, what its number is, or None if it has none)
SPARSIFIERS: dict[str, tuple[Callable[..., Sparsifier], type]] = {
    "topk": (lambda ratio: TopK(ratio=ratio), float),
    "randomk": (lambda ratio: RandomK(ratio=ratio), float),
    "threshold": (lambda value: Threshold(value=value), float),
}
QUANTIZERS: dict[str, tuple[Callable[..., Quantizer], type | None]] = {
    "qsgd": (lambda bits: QSGD(bits=bits), int),
    "nuqsgd": (lambda bits: NUQSGD(bits=bits), int),
    "terngrad": (TernGrad, None),
    "natural": (Natural, None),
    "half": (Half, None),
    "onebit": (OneBit, None),
}
KNOWN = (
    "topk:SHARE, randomk:SHARE or threshold:VALUE, and qsgd:BITS, nuqsgd:BITS, "
    "terngrad, natural, half or onebit"
)


def parse_method(text: str) -> Method:
    """A method such as topk:0.01, qsgd:8 or topk:0.01,qsgd:4.

    Raises:
        ValueError: If it is none.
    """
    found: dict[str, Any] = {}
    for part in text.split(","):
        name, _, number = part.strip().partition(":")
        if name in SPARSIFIERS and "sparsify" not in found:
            found["sparsify"] = _made(*SPARSIFIERS[name], part, number)
        elif name in QUANTIZERS and "quantize" not in found:
            found["quantize"] = _made(*QUANTIZERS[name], part, number)
        else:
            raise ValueError(f"compress must be {KNOWN}, got {text!r}")
    return Compressed(**found)


def _made(make: Callable[..., Any], kind: type | None, part: str, number: str) -> Any:
    if kind is None:
        if number:
            raise ValueError(
                f"compress: {part.partition(':')[0]} takes no number: {part!r}"
            )
        return make()
    try:
        value = kind(number)
    except ValueError:
        raise ValueError(
            f"compress: {part.partition(':')[0]} takes a number, such as {KNOWN}; got {part!r}"
        ) from None
    return make(value)
