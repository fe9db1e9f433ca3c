"""What comes in from callers and goes back to them: checked, opened, wrapped again."""

from __future__ import annotations

import operator
import os
import sys
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from ..collectives import ALLREDUCES, Workload
from ..quantize import Quantizer
from ..stream import MEAN, OPS, Stream, densify_if_smaller, identity
from ..stream.convert import to_stream
from ..stream.reduction import refill

if TYPE_CHECKING:
    from collections.abc import Callable

DEFAULT_TIMEOUT = 30.0


def seconds_to_wait(timeout: float | None) -> float:
    """How long a rank waits for another: `timeout`, else SPARCML_TIMEOUT, else 30."""
    name: str = "timeout"
    value: Any = timeout
    if timeout is None:
        name = "SPARCML_TIMEOUT"
        value = os.environ.get(name) or DEFAULT_TIMEOUT
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{name} must be a number of seconds > 0, got {value!r}")
    return seconds


def check_reduction(
    op: str,
    algorithm: str = "auto",
    quantize: Quantizer | None = None,
    *,
    return_seen: bool = False,
) -> None:
    """Raise unless a reduction can be done in this way."""
    for what, got, known in (
        ("op", op, (*OPS, MEAN)),
        ("algorithm", algorithm, ("auto", *ALLREDUCES)),
    ):
        if got not in known:
            raise ValueError(f"{what} must be one of {', '.join(known)}, got {got!r}")
    if quantize is not None and not isinstance(quantize, Quantizer):
        raise TypeError(
            f"quantize must be a quantizer such as sparcml.Half(), got {quantize!r}"
        )
    able = [name for name, a in ALLREDUCES.items() if a.supports_quantization]
    if quantize is not None and algorithm not in ("auto", *able):
        raise ValueError(
            f"quantize works with {', '.join(able)} or auto, got algorithm={algorithm!r}, "
            f"which is lossless"
        )
    if algorithm in ALLREDUCES and ALLREDUCES[algorithm].lossy and op not in ("sum", MEAN):
        raise ValueError(
            f"{algorithm} keeps the largest sums and goes with sum and mean, got {op!r}"
        )
    if return_seen and op not in ("sum", MEAN):
        raise ValueError(
            f"return_seen goes with sum and mean, got {op!r}: parts must add up"
        )


def candidates(op: str, quantize: Quantizer | None) -> tuple[str, ...]:
    """What `auto` may take.

    Engines may lose a NaN in min and max; ours do not.
    """
    coded = quantize is not None
    return tuple(
        name
        for name, a in ALLREDUCES.items()
        if (a.supports_quantization or not coded)
        and (name != "native" or op not in ("min", "max"))
    )


def check_root(name: str, root: int, size: int) -> None:
    """Raise unless root is a rank."""
    if not 0 <= root < size:
        raise ValueError(f"{name}: root must be in [0, {size}), got {root}")


def whole(name: str, value: Any) -> int:
    """A whole number that a double can carry."""
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, got {value!r}") from None
    if isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}")
    if abs(number) > 2**53:
        raise ValueError(f"{name} must lie within plus or minus 2^53, got {value}")
    return number


def to_stream_for(x: Any, op: str) -> tuple[Stream, Callable[[Stream], Any]]:
    """The caller's vector, ready for the operation."""
    fill = identity(op)
    stream, restore = to_stream(x, fill)
    if not stream.is_dense and stream.fill not in (0.0, fill):
        raise ValueError(
            f"what this stream does not store counts as {stream.fill}, which {op} cannot "
            f"use; make it dense with Stream.from_dense(x.to_dense())"
        )
    return densify_if_smaller(refill(stream, fill)), restore


def plain(op: str) -> str:
    """The operation that is carried out: a mean is a sum, divided at the end."""
    return "sum" if op == MEAN else op


def coded(workload: Workload, block: int, quantizer: Quantizer) -> Workload:
    """The same sum with values coded: what an entry then takes."""
    return replace(workload, entry_bytes=coded_bytes(block, quantizer))


@lru_cache(maxsize=256)
def coded_bytes(block: int, quantizer: Quantizer) -> float:
    """What the values of an entry take, coded."""
    return quantizer.nbytes(1024 * block) / 1024


def copied_if_alone(x: Stream, ranks: int) -> Stream:
    """A single rank's result must not change with its input: nothing else copies it."""
    if ranks > 1:
        return x
    values = x.raw_values.copy()
    values[np.isnan(values)] = np.nan  # the canonical one, as in every other result
    indices = None if x.raw_indices is None else x.raw_indices.copy()
    return Stream.unchecked(x.size, indices, values, x.block, x.fill)


def finished(x: Stream, op: str, ranks: int) -> Stream:
    """The result, divided if a mean was asked for."""
    if op != MEAN:
        return x
    values = buffer_pool.empty(len(x.raw_values), x.dtype)
    np.divide(x.raw_values, x.dtype.type(ranks), out=values)
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, x.fill)


def into(out: Any, x: Stream) -> Callable[[Stream], Any]:
    """A way back that writes into the caller's own array or tensor."""
    torch = sys.modules.get("torch")
    tensor = torch is not None and isinstance(out, torch.Tensor)
    array = out.detach().numpy() if tensor else out
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"out must be a NumPy array or a CPU tensor, got {type(out).__name__}"
        )
    if (array.size, array.dtype) != (x.size, x.dtype):
        raise ValueError(
            f"out must have {x.size} values of {x.dtype}, got {array.size} of {array.dtype}"
        )
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError("out must be contiguous and writable")

    def write(y: Stream) -> Any:
        flat = array.reshape(-1)
        flat[:] = y.raw_values if y.is_dense else y.to_dense()
        return out

    return write
