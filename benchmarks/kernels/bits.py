"""Cases of the codes of one bit a value, of packed multiples, and of the Elias code.

Outputs are allocated beforehand, so that the kernel is timed and not the page faults; only coders,
which do not know their length before, allocate. Their references are too slow for all values, and
see the first ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from harness.stopwatch import copy_of

from kernels.case import Case
from sparcml import kernels
from sparcml.quantize import QSGD
from tests.kernels.reference import bitplane, coding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from kernels.case import Arrays

    Floats = NDArray[np.float32]
    Levels = NDArray[np.int8]

BUCKETS = (None, 512)
CHECKED = 1 << 12  # levels that slow references are asked about
RANKS = 8


def cases(size: int, rng: np.random.Generator) -> Iterator[Case]:
    """On Gaussian values, and on the levels that QSGD makes of them."""
    values = rng.standard_normal(size).astype(np.float32)
    for bucket in BUCKETS:
        yield from _one_bit(values, bucket)
    yield from _whole(values)
    norm = QSGD(levels=32, bucket=1024, norm="l2")
    _, levels = norm.quantize(values, seed=1)
    copy = copy_of(values)
    yield from _elias(levels, copy)


def _one_bit(values: Floats, bucket: int | None) -> Iterator[Case]:
    size, each = values.size, bucket or values.size
    named = "all" if bucket is None else str(bucket)
    buckets = -(-size // each)
    levels, scales = np.zeros(2 * buckets, np.float32), np.zeros(buckets, np.float32)
    plane, back = np.zeros(-(-size // 8), np.uint8), np.zeros_like(values)

    def case(what: str, run: Callable[[], Arrays], want: Arrays, each_bytes: float) -> Case:
        args = (f"{what}, {named}", size, run, want, values.nbytes, "GB/s", "memcpy")
        return Case(*args, copy, entry_bytes=each_bytes / size)

    def decode() -> Arrays:
        return (kernels.from_bitplane(*zero, size, each, back),)

    copy = copy_of(values)
    zero, mean = (
        bitplane.to_onebit(values, each),
        bitplane.to_onebit(values, each, mean=True),
    )
    two, one = levels.nbytes + plane.nbytes, scales.nbytes + plane.nbytes
    yield case(
        "OneBit", lambda: kernels.to_onebit(values, each, False, levels, plane), zero, two
    )
    yield case(
        "OneBit mean",
        lambda: kernels.to_onebit(values, each, True, levels, plane),
        mean,
        two,
    )
    signs = bitplane.to_sign(values, each)
    yield case("Sign", lambda: kernels.to_sign(values, each, scales, plane), signs, one)
    yield case("decode one bit", decode, (bitplane.from_bitplane(*zero, size, each),), two)


def _whole(values: Floats) -> Iterator[Case]:
    times = np.clip(np.rint(2 * values), -RANKS, RANKS).astype(np.float32)
    want = bitplane.to_integer(times, 1.0, RANKS)
    assert want is not None
    packed, back = np.zeros_like(want), np.zeros_like(times)
    rest = (values.nbytes, "GB/s", "memcpy", copy_of(values), None, want.size / times.size)

    def encode() -> Arrays:
        return (kernels.to_integer(times, 1.0, RANKS, packed),)

    def decode() -> Arrays:
        return (kernels.from_integer(want, times.size, 1.0, RANKS, back),)

    yield Case(f"Whole, {RANKS} ranks", times.size, encode, (want,), *rest)
    yield Case(f"decode Whole, {RANKS} ranks", times.size, decode, (times,), *rest)


def _elias(levels: Levels, copy: Callable[[], object]) -> Iterator[Case]:
    few, count = levels[:CHECKED], levels.size
    forms: tuple[tuple[str, bool, Callable[[Levels], str]], ...] = (
        ("dense", False, coding.elias_dense),
        ("sparse", True, coding.elias_sparse),
    )
    plan = kernels.elias_plan(levels)
    for name, sparse, reference in forms:
        code = kernels.elias_encode(levels, sparse)
        want = (coding.pack_word(reference(few)),)
        rest = (4 * count, "GB/s", "memcpy", copy, None, code.size / count)

        def encode(part: Levels = levels, sparse: bool = sparse) -> Arrays:
            return (kernels.elias_encode(part, sparse),)

        def decode(code: NDArray[np.uint8] = code, sparse: bool = sparse) -> Arrays:
            return (kernels.elias_decode(code, count, sparse, plan.nonzeros),)

        def check(encode: Callable[[Levels], Arrays] = encode) -> Arrays:
            return encode(few)

        yield Case(f"elias {name}", count, encode, want, *rest, output=check)
        yield Case(f"decode elias {name}", count, decode, (levels,), *rest)
