"""Arguments and results of collectives: checks, conversion to streams and back."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool, kernels
from ..collectives import ALLREDUCES
from ..collectives.numbers import as_number, is_number
from ..quantize import Quantizer
from ..quantize.code import as_float32, first_nonfinite
from ..stream import MEAN, OPS, Stream, densify_if_smaller, identity
from ..stream.arrays import check_unmasked
from ..stream.convert import to_stream
from ..stream.reduction import refill
from ..validation import as_integer
from .collective_errors import aborting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..collectives.numbers import Number
    from .endpoint import Endpoint


# Operations of MPI on flags that others can replace.
LOGICAL = {"land": "; use min for flags 0 and 1", "lor": "; use max for flags 0 and 1"}


def check_reduction(
    function: str,
    op: Any,
    algorithm: str = "auto",
    quantize: Quantizer | None = None,
    *,
    return_seen: bool = False,
) -> str:
    """Return the name of the operation of a reduction.

    Raises:
        ValueError: If the arguments are invalid or do not fit together.
    """
    op = _op_name(op)
    for parameter, value, choices in (
        ("op", op, (*OPS, MEAN)),
        ("algorithm", algorithm, ("auto", *ALLREDUCES)),
    ):
        if value not in choices:
            remedy = LOGICAL.get(value, "") if isinstance(value, str) else ""
            raise ValueError(
                f"{function}: {parameter} must be one of {', '.join(choices)}, got {value!r}"
                f"{remedy}"
            )
    if quantize is not None and not isinstance(quantize, Quantizer):
        raise TypeError(
            f"{function}: quantize must be a quantizer such as sparcml.Half(), got "
            f"{quantize!r}"
        )
    quantizing = [name for name, a in ALLREDUCES.items() if a.supports_quantization]
    if quantize is not None and algorithm not in ("auto", *quantizing):
        raise ValueError(
            f"{function}: algorithm must be auto, {' or '.join(quantizing)} with quantize, got "
            f"{algorithm!r}, which is lossless"
        )
    once = algorithm in ALLREDUCES and ALLREDUCES[algorithm].quantized_only
    if once and quantize is not None and quantize.quantizes_own:
        raise ValueError(
            f"{function}: algorithm must not be {algorithm} with {quantize}, which "
            f"quantizes the sum as well; use auto"
        )
    if algorithm in ALLREDUCES and ALLREDUCES[algorithm].lossy and op not in ("sum", MEAN):
        raise ValueError(
            f"{function}: op must be sum or mean with algorithm {algorithm}, got {op!r}"
        )
    if return_seen and op not in ("sum", MEAN):
        raise ValueError(f"{function}: op must be sum or mean with return_seen, got {op!r}")
    name: str = op
    return name


def _op_name(op: Any) -> Any:
    """Return the name of an operation of mpi4py or torch.distributed; others unchanged."""
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is not None and isinstance(op, mpi.Op):
        others = ("land", "lor", "lxor", "band", "bor", "bxor", "minloc", "maxloc")
        known = (name for name in (*OPS, *others) if getattr(mpi, name.upper()) == op)
        return next(known, op)
    torch_op = getattr(sys.modules.get("torch.distributed"), "ReduceOp", None)
    if torch_op is not None and isinstance(op, torch_op):
        # AVG, BAND and so on: the enumeration names them all.
        names = {"AVG": MEAN, "PRODUCT": "prod"}
        name = str(getattr(op, "name", op))
        return names.get(name, name.lower())
    return op


def check_root(function: str, root: Any, size: int) -> int:
    """Return the root as an int; raise unless it is a rank."""
    number = as_integer(function, "root", root)
    if not 0 <= number < size:
        raise ValueError(f"{function}: root must be in [0, {size}), got {number}")
    return number


def check_vectors(function: str, vectors: Any, size: int) -> None:
    """Raise unless there is one vector per rank."""
    if not isinstance(vectors, (list, tuple)):
        raise TypeError(
            f"{function}: vectors must be a list with one vector per rank, got "
            f"{type(vectors).__name__}; use list(np.split(x, comm.size))"
        )
    if len(vectors) != size:
        raise ValueError(
            f"{function}: vectors must have one vector for each of {size} ranks, got "
            f"{len(vectors)}"
        )


def is_undefined(color: Any) -> bool:
    """Return whether a color is None, or mpi4py's UNDEFINED."""
    mpi = sys.modules.get("mpi4py.MPI")
    return color is None or (mpi is not None and bool(color == mpi.UNDEFINED))


def check_number(function: str, **arguments: Any) -> None:
    """Raise if an argument of a call is set that is for vectors only, not for numbers."""
    for parameter, value in arguments.items():
        if value:
            raise ValueError(
                f"{function}: {parameter} requires a vector, got a number; use an array of one "
                f"value"
            )


def check_integers(
    function: str,
    x: Stream,
    op: str,
    quantize: Quantizer | None = None,
    algorithm: str = "auto",
) -> None:
    """Raise if a vector of integers is reduced in a way that is for floats only."""
    if x.dtype.kind == "f":
        return
    lossy = algorithm in ALLREDUCES and ALLREDUCES[algorithm].lossy
    for needs_floats, argument, remedy in (
        (op == MEAN, "op mean", "use op sum and divide the result"),
        (quantize is not None, f"quantize={quantize!r}", "integers are sent without loss"),
        (lossy, f"algorithm {algorithm}", "use auto"),
    ):
        if needs_floats:
            raise TypeError(
                f"{function}: {argument} requires float values, got {x.dtype}; {remedy}"
            )


def check_finite(
    comm: Endpoint,
    function: str,
    streams: Iterable[Stream],
    quantize: Quantizer | None,
) -> None:
    """Raise if the quantizer refuses values of this rank.

    An error is reported to all ranks, which would wait for this one.

    Args:
        comm: The communicator.
        function: Name of the collective.
        streams: Vectors of this rank.
        quantize: Quantizer of the call.

    Raises:
        ValueError: If a value is NaN or infinite, unless the quantizer propagates it.
    """
    if quantize is None or quantize.nonfinite == "propagate":
        return
    with aborting(comm):
        for x in streams:
            if (at := first_nonfinite(as_float32(x.raw_values))) is not None:
                comm._transport.operation = function  # which other ranks are told
                raise ValueError(
                    f"{function}: x must be finite in float32 for {quantize}, got "
                    f"{x.raw_values[at]} at index {_index_of(x, at)} on rank {comm.rank}; check "
                    f'it, or set nonfinite="propagate" of the quantizer'
                )


def _index_of(x: Stream, at: int) -> int:
    """Return the index in the vector of a value that a stream stores."""
    if x.raw_indices is None:
        return at
    return int(x.raw_indices[at // x.block]) * x.block + at % x.block


def to_operand(
    function: str, x: Any, op: str, *, dense: bool = False
) -> tuple[Stream, Callable[[Stream], Any]]:
    """Return a vector as a stream for the operation, and the function that converts back.

    With `dense`, dense vectors stay as they are, with the signs of their zeros.
    """
    fill = identity(op, np.dtype(np.float64))
    stream, restore = to_stream(x, fill, dense=dense, function=function)
    fill = identity(op, stream.dtype)
    if not stream.is_dense and stream.fill not in (0.0, fill):
        raise ValueError(
            f"{function}: the fill of a sparse stream must be {fill:g} for op {op}, got "
            f"{stream.fill:g}; make it dense with Stream.from_dense(x.to_dense())"
        )
    return densify_if_smaller(refill(stream, fill)), restore


def to_item(
    function: str, x: Any
) -> tuple[Stream | Number, Callable[[Stream | Number], Any]]:
    """Return a vector or number to send, and the function that restores received ones."""
    if is_number(x):
        return as_number(function, x), lambda item: item
    stream, restore = to_stream(x, bitwise=True, function=function)

    def restore_item(item: Stream | Number) -> Any:
        return restore(item) if isinstance(item, Stream) else item

    return densify_if_smaller(stream), restore_item


def reduction_of(op: str) -> str:
    """Return the operation of the collective: a mean is a sum that is divided at the end."""
    return "sum" if op == MEAN else op


def copy_if_single(x: Stream, ranks: int) -> Stream:
    """Return a copy on a single rank, whose result would otherwise share x's memory."""
    return copy_canonical(x) if ranks == 1 else x


def copy_canonical(x: Stream) -> Stream:
    """Return a copy in which every NaN is the canonical one, as in reduced results."""
    if x.dtype.kind == "f":  # the maximum of two equal values is that value
        values = kernels.combine_dense("max", x.raw_values, x.raw_values)
    else:
        values = buffer_pool.copy(x.raw_values)
    indices = None if x.raw_indices is None else x.raw_indices.copy()
    return Stream.unchecked(x.size, indices, values, x.block, x.fill)


def divide_if_mean(x: Stream, op: str, ranks: int) -> Stream:
    """Return the reduced stream, divided by the number of ranks if op is mean."""
    if op != MEAN:
        return x
    values = buffer_pool.empty(len(x.raw_values), x.dtype)
    np.divide(x.raw_values, x.dtype.type(ranks), out=values)
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, x.fill)


def check_out(
    function: str, out: Any, size: int | None, dtype: np.dtype[Any] | None
) -> Any:
    """Return `out`, an array or a tensor, as an array of one dimension.

    Args:
        function: Name of the collective.
        out: Array or tensor for results.
        size: Number of values that it must have, if known.
        dtype: Its dtype, if known.

    Raises:
        TypeError: If it is neither.
        ValueError: If its size, dtype or layout does not fit.
    """
    torch = sys.modules.get("torch")
    is_tensor = torch is not None and isinstance(out, torch.Tensor)
    array = out.detach().numpy() if is_tensor else out
    check_unmasked(function, "out", out)
    if not isinstance(array, np.ndarray):
        raise TypeError(
            f"{function}: out must be a NumPy array or a CPU tensor, got {type(out).__name__}"
        )
    size = array.size if size is None else size
    dtype = array.dtype if dtype is None else dtype
    if (array.size, array.dtype) != (size, dtype):
        raise ValueError(
            f"{function}: out must have {size} values of {dtype}, got {array.size} of "
            f"{array.dtype}"
        )
    if not array.flags.c_contiguous or not array.flags.writeable:
        raise ValueError(
            f"{function}: out must be contiguous and writable, got a "
            f"{'read-only' if array.flags.c_contiguous else 'strided'} array"
        )
    return array.reshape(-1)


def write_to(
    function: str, out: Any, size: int | None, dtype: np.dtype[Any] | None
) -> Callable[..., Any]:
    """Return a function that writes streams, one after the other, to an array or tensor.

    It returns `out`. The size and dtype are checked at once if they are known, and again
    when the streams are.
    """
    check_out(function, out, size, dtype)

    def write(*results: Any) -> Any:
        check_number(function, out=not all(isinstance(x, Stream) for x in results))
        flat = check_out(function, out, sum(x.size for x in results), results[0].dtype)
        at = 0
        for x in results:
            flat[at : at + x.size] = x.raw_values if x.is_dense else x.to_dense()
            at += x.size
        return out

    return write
