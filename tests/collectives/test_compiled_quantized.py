"""Compiled split algorithms with QSGD against their definition."""

from itertools import product

import numpy as np
import pytest

from sparcml.collectives.base import ALLREDUCES
from sparcml.collectives.compiled import ALGORITHMS as COMPILED
from sparcml.errors import MismatchError, WireError
from sparcml.quantize import QSGD, TernGrad
from sparcml.stream import OPS, Stream
from sparcml.wire.header import SIZE, checksum

from .test_compiled import INPUTS, bits, run, vector

ALGORITHMS = tuple(name for name in COMPILED if ALLREDUCES[name].supports_quantization)
DTYPES = (np.float32, np.float64)
QUANTIZERS = (
    QSGD(8),
    QSGD(4),
    QSGD(3, bucket=64, norm="l2"),
    QSGD(2, bucket=None),
    QSGD(levels=5, bucket=7),
    QSGD(4, reduced_bits=6),
)
SEEDS = (None, 0, -1, 2**70 + 3)
EXTREMES = (1e-42, 3e38, 1e300, -1e-300)  # beyond the normal range of float32


def operand(rank, dtype, case, op="sum", extreme=False):
    x = vector(rank, dtype, case)
    values = x.raw_values.copy()
    if extreme:
        with np.errstate(over="ignore"):
            values[::3] = np.resize(EXTREMES, values[::3].size).astype(dtype)
    if op == "sum":
        return Stream.unchecked(x.size, x.raw_indices, values, x.block)
    fill = {"mean": 0.0, "min": np.inf, "max": -np.inf, "prod": 1.0}[op]
    return Stream.unchecked(x.size, x.raw_indices, values, x.block, fill)


def test_which_are_compiled():
    def body(comm):
        def has(algorithm, quantizer):
            return comm._session.compiled.has(algorithm, "sum", np.dtype("f4"), quantizer)

        assert all(has(a, q) for a, q in product(ALGORITHMS, QUANTIZERS))
        assert not has("ssar_split_allgather", QSGD(4, coder="rice"))
        assert not has("ssar_split_allgather", TernGrad())
        assert not has("oktopk", QSGD())
        return True

    assert run(body, 2, compiled=range(2))[0] == [True, True]


@pytest.mark.parametrize("ranks", range(1, 10))
def test_equals_the_definition(ranks):
    """All quantizers, types, operations and inputs in turn; ranks of both kinds too."""
    settings = product(ALGORITHMS, DTYPES, (*OPS, "mean"), QUANTIZERS)
    cases = [
        (*setting, INPUTS[(7 * i + ranks) % len(INPUTS)], SEEDS[i % 4], i % 5 == 0)
        for i, setting in enumerate(settings)
        if i % 2 == ranks % 2
    ]
    cases += [
        (a, np.float32, "sum", QSGD(8), case, None, False)
        for a, case in product(ALGORITHMS, INPUTS)
    ]

    def body(comm):
        assert ranks == 1 or (comm._session.compiled is None) != (comm.rank in group)
        found = []
        for algorithm, dtype, op, quantizer, case, seed, extreme in cases:
            if algorithm == "dsar_split_allgather" and case[0] > 1_000_000:
                continue  # its result is dense
            x = operand(comm.rank, dtype, case, op, extreme)
            coder = quantizer.propagating()  # 1e300 is infinite in float32
            keywords = {"algorithm": algorithm, "quantize": coder, "seed": seed}
            with np.errstate(all="ignore"):
                found.append(bits(comm.allreduce(x, op, **keywords)))
                if op in ("sum", "mean"):
                    pair = comm.allreduce(x, op, return_seen=True, **keywords)
                    found.append([bits(part) for part in pair])
        comm.barrier()
        stats = comm.stats
        return found, stats.messages, stats.bytes, stats.received_bytes

    group = range(0)
    defined, messages = run(body, ranks, compiled=())
    assert all(isinstance(found, tuple) for found in defined), defined
    for group in (range(ranks), range(0, ranks, 2)):
        results, sent = run(body, ranks, compiled=group)
        assert results == defined
        assert sent == messages


def test_seen_is_what_the_others_added():
    """All ranks' parts add up to the result."""

    def body(comm):
        x = vector(comm.rank, np.float64, (5000, 1, 300, "spread"))
        values = np.nan_to_num(x.raw_values, posinf=0.0)
        x = Stream(x.size, x.raw_indices, values)
        result, seen = comm.allreduce(
            x, algorithm="ssar_split_allgather", quantize=QSGD(4), return_seen=True
        )
        assert comm._session.compiled is not None
        return result.to_dense(), seen.to_dense()

    results, _ = run(body, 5, compiled=range(5))
    total = sum(seen for _, seen in results)
    for result, _ in results:
        np.testing.assert_allclose(total, result, atol=1e-9)


@pytest.mark.parametrize(
    "other", [None, QSGD(4), QSGD(8, bucket=64), QSGD(8, coder="elias")]
)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_different_quantizers(algorithm, other):
    """Both ranks name both quantizers, as by the definition."""

    def body(comm):
        x = vector(comm.rank, np.float32, INPUTS[0])
        comm.allreduce(x, algorithm=algorithm, quantize=other if comm.rank else QSGD(8))

    defined, _ = run(body, 2, compiled=())
    for group in ((0, 1), (0,), (1,)):
        found, _ = run(body, 2, compiled=group)
        assert isinstance(found[0], MismatchError) or isinstance(found[1], MismatchError)
        texts = {str(error) for error in defined}
        assert {str(error) for error in found if isinstance(error, MismatchError)} <= texts


def changed(message, case, position):
    """Return a damaged message: with a wrong or a right checksum, or of another length."""
    if case == "shorter":
        return message[:position].copy()
    if case == "longer":
        return np.concatenate([message, np.zeros(8, np.uint8)])
    message = message.copy()
    message[position] ^= 0x5D
    if case == "repaired" and not SIZE - 4 <= position < SIZE:
        message[SIZE - 4 : SIZE].view("<u4")[0] = checksum(message)
    return message


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("case", ["damaged", "repaired", "shorter", "longer"])
def test_hostile_bytes(algorithm, case):
    """Each byte of a message changed: the error, or the result, of the definition."""
    x = Stream(300, [3, 120, 160, 170, 290], [1.0, -2.0, 3.0, 0.5, 7.0])
    quantizer = QSGD(8, bucket=2)

    def body(comm):
        if comm.rank == 1:
            send = comm._transport.isend

            def isend(peer, message):
                return send(peer, changed(message, case, position % len(message)))

            comm._transport.isend = isend
        result = comm.allreduce(x, algorithm=algorithm, quantize=quantizer)
        return bits(result)

    positions = (0,) if case == "longer" else range(0, 72, 5 if case == "damaged" else 1)
    for position in positions:
        (defined, _), _ = run(body, 2, compiled=(1,))  # rank 0 in Python
        (found, _), _ = run(body, 2, compiled=(0,))
        if isinstance(defined, Exception):
            assert isinstance(defined, (WireError, MismatchError)), defined
            assert (type(found), str(found)) == (type(defined), str(defined)), position
        else:
            assert found == defined, position


@pytest.mark.parametrize("quantizer", [None, QSGD(8), QSGD(4, bucket=8), QSGD(3, bucket=7)])
def test_ranges_longer_than_the_cache(quantizer):
    """Sums and results are written in several parts; the last one is shorter."""
    inputs = ((700_001, 1, 300_000, "spread"), (700_001, 1, 450_000, "dense zeros"))

    def body(comm):
        keywords = {"algorithm": "dsar_split_allgather", "quantize": quantizer}
        vectors = (vector(comm.rank, np.float32, case) for case in inputs)
        with np.errstate(all="ignore"):
            return [bits(comm.allreduce(x, **keywords)) for x in vectors]

    defined, messages = run(body, 2, compiled=())
    assert all(isinstance(found, list) for found in defined), defined
    assert run(body, 2, compiled=range(2)) == (defined, messages)
