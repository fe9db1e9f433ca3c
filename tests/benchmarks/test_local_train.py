"""Training runs of the benchmark of local training, on the first chapters of the text."""

from dataclasses import replace

import pytest

from sparcml import local

pytest.importorskip("torch")

from local.forms import Form
from local.train import train
from local.workloads import WORKLOADS


def _chapters():
    import gpt  # an example; the workloads make it importable

    return gpt.task(None)


WORK = replace(WORKLOADS["gpt"], task=_chapters, steps=6, batch=8)
PLAIN = Form(local.LocalSGD)


def results(row):
    return {key: value for key, value in row.items() if "seconds" not in key}


def test_a_saved_start_changes_nothing(tmp_path):
    saved = tmp_path / "start.pt"
    plain = train(WORK, Form(local.DiLoCo), 2, 2, 0, synchronous=2)
    first, second = (
        train(WORK, Form(local.DiLoCo), 2, 2, 0, synchronous=2, saved=saved)
        for _ in range(2)
    )
    assert results(plain) == results(first) == results(second)
    assert plain["steps"] == 6


@pytest.mark.parametrize(
    "change",
    [{"inner_lr": 0.5}, {"average": ("exp_avg", "exp_avg_sq")}],
)
def test_inner_settings_have_an_effect(change):
    plain = train(WORK, PLAIN, 2, 2, 0)
    changed = train(WORK, replace(PLAIN, **change), 2, 2, 0)
    assert changed["score"] != plain["score"]
    assert replace(PLAIN, **change).changes()
    assert not PLAIN.changes()
