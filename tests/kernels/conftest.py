import pytest

from sparcml.kernels import _core


@pytest.fixture(params=_core.isas())
def isa(request):
    before = _core.isa()
    _core.use_isa(request.param)
    yield request.param
    _core.use_isa(before)
