"""The checksum equals its definition, in one piece or several."""

import zlib

import numpy as np
import pytest

from sparcml import kernels
from sparcml.kernels import coding
from tests.kernels.reference import coding as reference

pytestmark = pytest.mark.usefixtures("isa")


def test_crc32c():
    check = np.frombuffer(b"123456789", np.uint8)
    assert kernels.crc32c(check) == 0xE3069283
    data = np.random.default_rng(1).integers(0, 256, 60_000, dtype=np.uint8)
    for n in [*range(40), 383, 384, 385, 777, 3071, 3072, 3459, 49_151, 49_152, 60_000]:
        assert kernels.crc32c(data[:n]) == reference.crc32c(data[:n])
        assert kernels.crc32c(data[n:], kernels.crc32c(data[:n])) == kernels.crc32c(data)


def test_crc32_spans():
    data = np.random.default_rng(2).integers(0, 256, 100, dtype=np.uint8)
    starts = np.repeat(np.arange(60), 40)
    stops = starts + np.tile(np.arange(40), 60)
    for modulus in (1, 1000, 2**32 - 1):
        want = [
            zlib.crc32(data[a:b].tobytes()) % modulus
            for a, b in zip(starts, stops, strict=True)
        ]
        assert coding.crc32_spans(data, starts, stops, modulus).tolist() == want


@pytest.mark.parametrize("span", [(-1, 2), (3, 2), (0, 5), (2**40, 2**40)])
def test_crc32_spans_stay_within_the_data(span):
    start, stop = (np.array([at]) for at in span)
    with pytest.raises(ValueError, match="within the data"):
        coding.crc32_spans(np.zeros(4, np.uint8), start, stop, 10)
    with pytest.raises(ValueError, match="modulus must be at least 1"):
        coding.crc32_spans(np.zeros(4, np.uint8), start, stop, 0)
