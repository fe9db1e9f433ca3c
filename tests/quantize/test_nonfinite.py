"""NaN and infinity in every quantizer: refused by default, or propagated and never a number."""

import math

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Stream, TransportError
from sparcml.decentralized import ring
from sparcml.quantize import Codebook, Integer, OneBit, Sign, TernGrad
from sparcml.quantize.base import QUANTIZERS

ROSTER = [
    quantizer
    for quantizer_class in QUANTIZERS.values()
    for quantizer in quantizer_class.examples() or (Integer(0.25, 31),)
]
SPREADING = (OneBit, Sign, Codebook)  # without a code for a single value that is not finite
roster = pytest.mark.parametrize("quantizer", ROSTER, ids=str)
in_messages = pytest.mark.parametrize(
    "quantizer", [q for q in ROSTER if not isinstance(q, Integer)], ids=str
)
each_bad = pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
SIZE, AT = 3000, 1234


def vector(bad=None):
    """Return small multiples of a quarter, with one other value."""
    values = np.random.default_rng(0).integers(-31, 32, SIZE).astype(np.float32) / 4
    if bad is not None:
        values[AT] = bad
    return values


@roster
@each_bad
def test_it_is_refused_by_default(quantizer, bad):
    why = (
        rf"encode: values must be finite in float32 for .*, got {bad} at index 1234; .*prop"
    )
    assert quantizer.nonfinite == "raise"
    with pytest.raises(ValueError, match=why):
        quantizer.encode(vector(bad))
    with pytest.raises(ValueError, match=why):
        quantizer.encode(vector(bad).reshape(30, 100))


@roster
def test_numbers_beyond_float32_are_refused_too(quantizer):
    values = vector().astype(np.float64)
    values[AT] = -1e300
    with pytest.raises(ValueError, match=r"got -1e\+300 at index 1234"):
        quantizer.encode(values)
    if not isinstance(quantizer, Integer):
        largest = float(np.finfo(np.float32).max)  # whose squares overflow
        quantizer.encode(np.where(np.arange(SIZE) % 2, largest, -largest))


@roster
@each_bad
def test_it_is_propagated(quantizer, bad):
    coder = quantizer.propagating()
    assert coder.nonfinite == "propagate"
    decoded = coder.decode(coder.encode(vector(bad), seed=3))
    assert not math.isfinite(decoded[AT])
    assert math.isnan(decoded[AT]) or decoded[AT] == bad
    others = np.delete(decoded, AT)
    if isinstance(quantizer, SPREADING):
        bucket = quantizer.bucket or SIZE
        is_elsewhere = np.arange(SIZE) // bucket != AT // bucket
        assert np.isfinite(decoded[is_elsewhere]).all()
        return
    if not isinstance(quantizer, TernGrad):  # whose scale depends on all values
        zero = coder.decode(coder.encode(vector(0.0), seed=3))
        np.testing.assert_array_equal(others, np.delete(zero, AT))
    assert np.isfinite(others).all()


@roster
@pytest.mark.parametrize("wrong", ["pass", "", None])
def test_other_settings_are_refused(quantizer, wrong):
    name = type(quantizer).__name__
    arguments = (0.5, 3) if isinstance(quantizer, Integer) else ()
    with pytest.raises(ValueError, match=f"{name}: nonfinite must be raise or propagate"):
        type(quantizer)(*arguments, nonfinite=wrong)


@roster
def test_it_is_no_part_of_the_code(quantizer):
    coder = quantizer.propagating()
    assert coder == quantizer
    assert hash(coder) == hash(quantizer)
    assert repr(coder) == repr(quantizer)
    assert "nonfinite='propagate'" in str(coder)
    values = vector()
    assert bytes(coder.encode(values, 1)) == bytes(quantizer.encode(values, 1))


@in_messages
@pytest.mark.parametrize("shape", ["dense", "sparse"])
def test_an_allreduce_refuses_it_on_all_ranks(quantizer, shape):
    def body(comm):
        values = vector(np.inf if comm.rank == 1 else None)
        if shape == "sparse":
            x = Stream(
                30 * SIZE, np.arange(0, 10 * SIZE, 10), np.repeat(values, 3), block=3
            )
        else:
            x = values
        try:
            comm.allreduce(x, quantize=quantizer)
        except (ValueError, TransportError) as error:
            return f"{type(error).__name__}: {error}"

    first, second, third = sparcml.launch(body, 3)
    index = 1234 if shape == "dense" else 3 * 10 * 1234
    assert second.startswith("ValueError: allreduce: x must be finite in float32 for ")
    assert f"got inf at index {index} on rank 1; check it, or set nonfinite=" in second
    for other in (first, third):
        assert other.startswith("TransportError")
        assert f"got inf at index {index}" in other


@in_messages
@each_bad
@pytest.mark.parametrize("in_python", [False, True])
def test_an_allreduce_propagates_it(quantizer, bad, in_python):
    def body(comm):
        if in_python:
            comm._session.use_python()
        values = vector(bad if comm.rank == 1 else None)
        return comm.allreduce(values, quantize=quantizer.propagating(), seed=4)

    results = sparcml.launch(body, 3)
    for result in results:
        assert not math.isfinite(result[AT])
        np.testing.assert_array_equal(result, results[0])
        if not isinstance(quantizer, SPREADING):
            assert np.isfinite(np.delete(result, AT)).all()


@pytest.mark.parametrize("algorithm", ["ssar_split_allgather", "dsar_split_allgather"])
@pytest.mark.parametrize("bits", [2, 4, 8])
@each_bad
def test_the_compiled_loop_propagates_the_same_bits(algorithm, bits, bad):
    def body(comm):
        values = vector(bad if comm.rank == 2 else None)
        values[AT + 1] = bad if comm.rank == 0 else values[AT + 1]
        x = Stream.from_dense(np.where(np.arange(SIZE) % 3 == 0, values, 0))
        found = []
        for compiled in (True, False):
            if not compiled:
                comm._session.use_python()
            for vector_type in (x, values):
                coder = QSGD(bits, bucket=64, nonfinite="propagate")
                pair = comm.allreduce(
                    vector_type, "sum", algorithm, coder, return_seen=True, seed=4
                )
                found.append([np.asarray(to_dense(y)).tobytes() for y in pair])
        return found

    for compiled, compiled_dense, defined, defined_dense in sparcml.launch(body, 3):
        assert compiled == defined
        assert compiled_dense == defined_dense


def to_dense(x):
    return x.to_dense() if isinstance(x, Stream) else x


@pytest.mark.parametrize("call", ["neighbor_allreduce", "neighbor_exchange"])
def test_neighbours_refuse_it(call):
    def body(comm):
        x = vector(np.nan if comm.rank == 0 else None)
        peers = [(comm.rank + 1) % 3, (comm.rank + 2) % 3]
        try:
            if call == "neighbor_allreduce":
                comm.neighbor_allreduce(x, ring(3), quantize=QSGD())
            else:
                comm.neighbor_exchange(x, peers, peers, QSGD())
        except (ValueError, TransportError) as error:
            return f"{type(error).__name__}: {error}"

    found = sparcml.launch(body, 3)
    assert found[0].startswith(
        f"ValueError: {call}: x must be finite in float32 for QSGD()"
    )
    for text in found:
        assert "got nan at index 1234 on rank 0" in text
