from collections.abc import Iterator

import pytest

from sparcml.kernels import _core


@pytest.fixture(params=_core.isas())
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the test on each instruction set of this processor."""
    before = _core.isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)
