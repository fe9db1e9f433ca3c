"""Functions that call optimizer.step() may be compiled: Dynamo leaves our hooks out."""

import pytest

from tests.torch_engine.jobs import outcomes

from . import compiling

pytestmark = pytest.mark.torch


@pytest.mark.parametrize(
    ("synchronous_steps", "closure"), [(0, False), (2, False), (2, True)]
)
def test_local_training_with_a_compiled_step(synchronous_steps, closure):
    said = outcomes(2, compiling.local, synchronous_steps, closure)
    assert said == ["finished"] * 2


def test_other_forms_with_a_compiled_step():
    assert outcomes(2, compiling.others) == ["finished"] * 2
