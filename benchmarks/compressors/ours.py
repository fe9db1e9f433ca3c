"""Our cases to compress: every sparsifier and quantizer."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from compressors.case import NONE, Case, Floor, Outcome
from sparcml import kernels, wire
from sparcml.bench.vectors import different

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from sparcml.quantize import Code, Quantizer

    Floats = NDArray[Any]

ENCODE, DECODE, FUSED, BUCKETS = Floor(2.5), Floor(1.5), Floor(3.0), Floor(3.0)
TOP = Floor(1.5, "torch.topk 1 % select", 40.0)
FEW = Floor(1.5, "torch.topk 0.1 % select", 40.0)


def cases(x: Floats) -> Iterator[Case]:
    """All of them, on one vector."""
    yield from _selections(x)
    yield from _codes(x)


def _selections(x: Floats) -> Iterator[Case]:
    scale = float(np.sqrt(np.mean(np.square(x), dtype=np.float64))) or 1.0
    large = float(f"{2.5 * scale:.2g}")
    top, few = sparcml.TopK(0.01), sparcml.TopK(0.001)
    bucket = sparcml.TopK(k=4, bucket=512)
    yield _select(top, x, TOP)
    yield _select(few, x, FEW)
    yield _select(bucket, x, BUCKETS)
    yield _select(sparcml.RandomK(0.01), x)
    yield _select(sparcml.RandomK(0.01, scaled=False), x)
    yield _select(sparcml.Threshold(value=large), x, name="Threshold(value=2.5 rms)")
    yield _select(sparcml.Threshold(ratio=0.01), x)
    strom = sparcml.Threshold(value=large, strom=True)
    yield _select(strom, x, name="Threshold(value=2.5 rms, strom=True)")
    yield _select(sparcml.BlockTopK(0.01, block=64), x)
    for sparsifier in (top, bucket, sparcml.Threshold(ratio=0.01)):
        yield _take(sparsifier, x)


def _select(
    sparsifier: sparcml.Sparsifier, x: Floats, floor: Floor = NONE, name: str | None = None
) -> Case:
    def outcome() -> Outcome:
        stream = sparsifier.select(x)
        return Outcome(stream.to_dense(), sent(stream), broken(sparsifier, x, stream))

    run = partial(sparsifier.select, x)
    return Case(name or label(sparsifier), "select", run, outcome, floor)


def _take(sparsifier: sparcml.Sparsifier, x: Floats) -> Case:
    """Residual + vector, selection and the new residual."""
    residual, out = x[::-1].copy(), np.zeros_like(x)
    state = sparsifier.initial_state()

    def outcome() -> Outcome:
        taken = sparsifier.select_with_residual(residual, x, out=out)
        owed, sent_part = residual + x, taken.sent.to_dense()
        return Outcome(None, sent(taken.sent), different(taken.residual, owed - sent_part))

    run = partial(sparsifier.select_with_residual, residual, x, state=state, out=out)
    return Case(label(sparsifier), "take", run, outcome, FUSED)


def sent(stream: sparcml.Stream) -> int:
    """Bytes of the message that carries it."""
    return len(wire.encode(stream, wire.Tag(0, 0))[0])


def broken(sparsifier: sparcml.Sparsifier, x: Floats, stream: sparcml.Stream) -> int:
    """Entries that are not the vector's own, too many or too few, or not the largest."""
    due, places = sparsifier.count(x.size), stream.indices
    wrong = 0 if due is None else abs(stream.nnz - due)
    rows = x[: stream.blocks * stream.block].reshape(-1, stream.block)
    own: Floats = rows[places].reshape(-1)
    value = getattr(sparsifier, "value", None)
    if getattr(sparsifier, "scaled", False):
        own = own * np.float32(x.size / max(1, stream.nnz))
    if getattr(sparsifier, "strom", False):
        own = np.copysign(np.float32(value), own)
    wrong += different(stream.values.reshape(-1), own)
    if isinstance(sparsifier, sparcml.TopK) and sparsifier.bucket is None:
        left = np.abs(x)
        least = left[places].min()
        left[places] = 0
        wrong += int(np.count_nonzero(left > least))
    if value is not None:
        reach = np.count_nonzero(np.abs(x) >= np.float32(value))
        wrong += abs(stream.nnz - int(reach))
    return wrong


def _codes(x: Floats) -> Iterator[Case]:
    for bits in (8, 4, 2):
        yield from _code(sparcml.QSGD(bits=bits), x, bits > 2)
    yield from _code(sparcml.QSGD(bits=4, norm="l2"), x)
    yield from _code(sparcml.NUQSGD(bits=4), x)
    yield from _code(sparcml.TernGrad(), x)
    yield from _code(sparcml.OneBit(bucket=1024), x)
    yield from _code(sparcml.Sign(bucket=1024), x)
    yield from _code(sparcml.Natural(), x)
    yield from _code(sparcml.Half(), x)
    yield from _code(sparcml.Half("bfloat16"), x)


def _code(quantizer: Quantizer, x: Floats, floors: bool = False) -> Iterator[Case]:
    name, ready = label(quantizer), quantizer.encode(x, 1)

    def outcome() -> Outcome:
        code = quantizer.encode(x, 1)
        wrong = abs(code.nbytes - quantizer.nbytes(x.size))
        wrong += elsewhere(quantizer, x, code)
        return Outcome(quantizer.decode(code).reshape(-1), code.nbytes, wrong)

    encode = partial(quantizer.encode, x, 1)
    yield Case(name, "encode", encode, outcome, ENCODE if floors else NONE)
    decode = partial(quantizer.decode, ready)
    yield Case(name, "decode", decode, outcome, DECODE if floors else NONE)


def elsewhere(quantizer: Quantizer, x: Floats, code: Code) -> int:
    """Bytes and values that other instruction sets compute differently."""
    active, wrong = kernels.isa(), 0
    want = quantizer.decode(code).reshape(-1)
    try:
        for isa in kernels.isas():
            kernels.use_isa(isa)
            again = quantizer.encode(x, 1)
            wrong += different(again.data, code.data)
            wrong += different(quantizer.decode(code).reshape(-1), want)
    finally:
        kernels.use_isa(active)
    return wrong


def label(method: object) -> str:
    """As one writes it: settings that differ from the usual, and the number of bits."""
    parts = []
    for field in dataclasses.fields(method):  # type: ignore[arg-type]
        value = getattr(method, field.name)
        if value == field.default and field.name != "bits":
            continue
        if field.name == "levels" and value == 2 ** (getattr(method, "bits", 0) - 1) - 1:
            continue  # they follow from the bits
        text = label(value) if dataclasses.is_dataclass(value) else repr(value)
        parts.append(text if field.name in SHORT else f"{field.name}={text}")
    return f"{type(method).__name__}({', '.join(parts)})"


SHORT = ("ratio", "bits", "sparsify", "dtype")
