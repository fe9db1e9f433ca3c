"""Laws 1, 2, 4, 6, 10 and 12 with processes of torch.distributed."""

import pytest

from ..engine_checks import assert_check
from . import laws_on_torch
from .jobs import outcomes, torchrun

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("check", laws_on_torch.CHECKS)
@pytest.mark.parametrize("ranks", [1, 3])
def test_law(ranks, check, shared_folder):
    path = shared_folder / f"torch-{ranks}.jsonl"

    def run():
        ends = outcomes(ranks, laws_on_torch.main, path, patience=200, SPARCML_TIMEOUT="60")
        return "\n".join(map(str, ends))

    assert_check(path, check, run)


@pytest.mark.parametrize("check", laws_on_torch.UNDER_TORCHRUN)
def test_law_under_torchrun(check, shared_folder):
    path = shared_folder / "torchrun-2.jsonl"

    def run():
        program = "torch_engine/laws_on_torch.py"
        return torchrun(2, program, path, SPARCML_TIMEOUT="60").stderr

    assert_check(path, check, run)
