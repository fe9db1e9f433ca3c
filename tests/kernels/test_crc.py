"""The checksum equals its definition, in one piece or several."""

import numpy as np
import pytest

from sparcml.kernels import coding
from sparcml.kernels.reference import coding as reference

pytestmark = pytest.mark.usefixtures("isa")


def test_crc32c():
    check = np.frombuffer(b"123456789", np.uint8)
    assert coding.crc32c(check) == 0xE3069283
    data = np.random.default_rng(1).integers(0, 256, 60_000, dtype=np.uint8)
    for n in [*range(40), 383, 384, 385, 777, 3071, 3072, 3459, 49_151, 49_152, 60_000]:
        assert coding.crc32c(data[:n]) == reference.crc32c(data[:n])
        assert coding.crc32c(data[n:], coding.crc32c(data[:n])) == coding.crc32c(data)
