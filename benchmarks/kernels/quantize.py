"""Cases of the quantizers: encoding and decoding, through their public calls.

Rates count the float32 values. Memory for the results comes from the pool, as in a sum.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case, Floor
from sparcml.quantize import NUQSGD, QSGD, Half, Natural, Quantizer, TernGrad, nuqsgd
from tests.kernels.reference import coding
from tests.kernels.reference import quantization as reference

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Bytes = NDArray[np.uint8]
    Codings = tuple[Callable[[Floats], Bytes], Callable[[Bytes, int], Floats]]

SEED = 3
PART = 1 << 18  # values that the slow references are asked about
ENCODE, DECODE = Floor(over_peer=2.5), Floor(over_peer=1.5)  # of QSGD


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """Each method beside a copy of memory, and the short floats of torch beside two."""
    values = rng.standard_normal(size).astype(np.float32)
    copy = copy_of(values)
    for bits in (8, 4, 2):
        coder = QSGD(bits)
        floors = (ENCODE, DECODE) if bits > 2 else (None, None)
        yield from _both(f"QSGD{bits}", coder, values, _grid(coder), "memcpy", copy, floors)
    length = QSGD(4, norm="l2")
    yield from _both("QSGD4 l2", length, values, _grid(length), "memcpy", copy)
    yield from _both("NUQSGD4", NUQSGD(4), values, _table(NUQSGD(4)), "memcpy", copy)
    yield from _both("TernGrad", TernGrad(), values, _ternary(TernGrad()), "memcpy", copy)
    powers = (lambda v: reference.to_natural(v, SEED)), reference.from_natural
    yield from _both("Natural", Natural(), values, powers, "memcpy", copy)
    for name, ours, theirs in (
        ("float16", Half(), _half()),
        ("QSGD8", QSGD(8), _grid(QSGD(8))),
        ("QSGD4", QSGD(4), _grid(QSGD(4))),
    ):
        yield from _beside_torch(name, ours, values, theirs)


def _both(
    name: str,
    coder: Quantizer,
    values: Floats,
    reference: Codings,
    peer: str,
    run_peer: Callable[[], object] | None,
    floors: tuple[Floor | None, Floor | None] = (None, None),
) -> Iterator[Case]:
    part = values[:PART]
    want = reference[0](part)
    code, short = coder.encode(values, SEED), coder.encode(part, SEED)
    each = code.nbytes / values.size

    def encode() -> tuple[Bytes]:
        return (coder.encode(values, SEED).data,)

    def decode() -> tuple[Floats]:
        return (coder.decode(code),)

    (to, back), (most, again) = (f"{name} encode", f"{name} decode"), floors
    if peer != "memcpy":
        to, back = f"{to}, {peer}", f"{back}, {peer}"
    size, rest = values.size, (values.nbytes, "GB/s", peer, run_peer)
    wide = reference[1](want, part.size)
    yield Case(
        *(to, size, encode, (want,), *rest, most, each),
        output=lambda: (coder.encode(part, SEED).data,),
    )
    yield Case(
        *(back, size, decode, (wide,), *rest, again, each),
        output=lambda: (coder.decode(short),),
    )


def _beside_torch(
    name: str, coder: Quantizer, values: Floats, reference: Codings
) -> Iterator[Case]:
    """Against the cast to float16 and back, on one core as well."""
    peers: list[Callable[[], object] | None] = [None, None]
    if find_spec("torch") is not None:
        import torch

        torch.set_num_threads(1)
        wide = torch.from_numpy(values)
        narrow, back = wide.to(torch.float16), torch.empty_like(wide)
        peers = [lambda: narrow.copy_(wide), lambda: back.copy_(narrow)]
    pairs = (_both(name, coder, values, reference, "torch fp16", p) for p in peers)
    yield from (tuple(both)[k] for k, both in enumerate(pairs))


def _grid(coder: QSGD) -> Codings:
    bucket, norm = (
        coder.bucket or 1,
        reference.MAX_NORM if coder.norm == "max" else reference.L2_NORM,
    )
    return (
        lambda v: reference.to_grid(v, bucket, coder.s, coder.bits, norm, 0.0, SEED),
        lambda c, n: reference.from_grid(c, n, bucket, coder.s, coder.bits),
    )


def _table(coder: NUQSGD) -> Codings:
    bucket, levels = coder.bucket or 1, nuqsgd.levels(coder.s)
    return (
        lambda v: reference.to_table(
            v, bucket, levels, coder.bits, reference.L2_NORM, 0.0, SEED
        ),
        lambda c, n: reference.from_table(c, n, bucket, levels, coder.bits),
    )


def _ternary(coder: TernGrad) -> Codings:
    def encode(v: Floats) -> Bytes:
        return reference.to_grid(
            v, v.size, 1, 2, reference.GIVEN_NORM, coder.scale_of(v), SEED
        )

    return encode, lambda c, n: reference.from_grid(c, n, n, 1, 2)


def _half() -> Codings:
    return (
        lambda v: coding.to_half(v).view(np.uint8),
        lambda c, n: coding.from_half(c.view(np.uint16)),  # noqa: ARG005
    )
