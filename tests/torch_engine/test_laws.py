"""Laws 1, 2, 4, 6 and 10 with processes of torch.distributed."""

import pytest

from . import laws_on_torch
from .jobs import outcomes, torchrun

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("ranks", [1, 3])
def test_laws(ranks):
    said = outcomes(ranks, laws_on_torch.main, patience=200, SPARCML_TIMEOUT="60")
    assert said == ["finished"] * ranks


def test_laws_under_torchrun():
    job = torchrun(2, "torch_engine/laws_on_torch.py", SPARCML_TIMEOUT="60")
    assert job.returncode == 0, job.stderr[-3000:]
    assert job.stdout == "all laws hold on 2 ranks\n"
