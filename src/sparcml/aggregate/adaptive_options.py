"""Options of Adaptive: the uniform method with another ratio or number of bits, and its error."""

from __future__ import annotations

from dataclasses import fields, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ..quantize.code import mix_seed
from ..sparsify import Sparsifier, TopK
from ..wire.sizes import expected_index_nbytes
from .compressed import Compressed
from .error_feedback import squared_norm

if TYPE_CHECKING:
    from ..stream.arrays import Values

MULTIPLE, BITS = "multiple", "bits"  # entries of the state
# Float32 values, so that means over any number of ranks are exact.
MULTIPLES = tuple(float(np.float32(2 ** (i / 3))) for i in range(-3, 4))
WIDTHS = tuple(map(float, range(2, 9)))


def squared_error(method: Compressed, x: Values, norm: float, seed: int) -> float:
    """Return the squared error of a method on a vector of this squared norm."""
    if isinstance(method.sparsify, TopK):
        return max(0.0, norm - squared_norm(method.sparsify.select(x).raw_values))
    assert method.quantize is not None
    quantizer = method.quantize.propagating()  # infinity is refused, or propagated, later
    decoded = quantizer.decode(quantizer.encode(x.astype(np.float32), seed))
    with np.errstate(invalid="ignore"):
        return squared_norm(x - decoded)


@lru_cache(maxsize=1024)
def with_option(
    method: Compressed, option: float, sparsifier: Sparsifier | None
) -> Compressed:
    """Return the method with one ratio or number of bits for all parameters and no warm-up.

    Args:
        method: The method.
        option: Multiple of the ratio, or number of bits.
        sparsifier: The sparsifier of the step.
    """
    settings = {f.name: getattr(method, f.name) for f in fields(Compressed)}
    settings |= {"warm_up": 0, "clip": None}
    if isinstance(sparsifier, TopK):
        settings["sparsify"] = multiple(sparsifier, option)
    else:
        bits = int(option)
        settings["quantize"] = replace(cast("Any", method.quantize), bits=bits)
        # Each number of bits is a group: another seed makes their errors independent.
        settings["seed"] = mix_seed(method.seed, bits)
    return Compressed(**settings)


def ratio_of(topk: TopK) -> float:
    """Return the ratio, or k if it does not depend on the size."""
    if topk.ratio is not None:
        return topk.ratio
    assert topk.k is not None
    return topk.k / (topk.bucket or 1)


def multiple(topk: TopK, factor: float) -> TopK:
    """Return a TopK of another ratio, at most 1."""
    if factor == 1:
        return topk
    if topk.ratio is not None:
        return replace(topk, ratio=min(1.0, topk.ratio * factor))
    assert topk.k is not None
    return replace(topk, k=max(1, round(topk.k * factor)))


def expected_nbytes(method: Compressed, size: int) -> float:
    """Return the expected bytes of a parameter in a message."""
    nnz, index = size, 0.0
    if isinstance(method.sparsify, TopK):
        nnz = method.sparsify.count(size)
        index = expected_index_nbytes(nnz, size) if nnz else 0.0
    values = 4 * nnz if method.quantize is None else method.quantize.nbytes(nnz)
    return values + index
