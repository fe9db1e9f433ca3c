"""Settings of the wrong type: refused at once, in words that say what is wanted."""

import numpy as np
import pytest

from sparcml import (
    NUQSGD,
    QSGD,
    BlockTopK,
    OneBit,
    RandomK,
    Sign,
    TernGrad,
    Threshold,
    TopK,
)
from sparcml.quantize import Integer

WHOLE = [
    (QSGD, "bits", {}),
    (QSGD, "levels", {}),
    (QSGD, "bucket", {}),
    (NUQSGD, "bits", {}),
    (NUQSGD, "bucket", {}),
    (OneBit, "bucket", {}),
    (Sign, "bucket", {}),
    (Integer, "max", {"step": 1.0}),
    (TopK, "k", {}),
    (TopK, "bucket", {"k": 1}),
    (RandomK, "k", {}),
    (BlockTopK, "k", {}),
    (BlockTopK, "block", {"k": 1}),
]
REAL = [
    (TopK, "ratio", {}),
    (RandomK, "ratio", {}),
    (BlockTopK, "ratio", {}),
    (Threshold, "ratio", {}),
    (Threshold, "value", {}),
    (TernGrad, "clip", {}),
    (TernGrad, "scale", {}),
    (Sign, "scale", {}),
    (Integer, "step", {"max": 1}),
]


@pytest.mark.parametrize(("kind", "setting", "others"), WHOLE)
@pytest.mark.parametrize("wrong", [True, False, np.True_, 4.0, 2.5, "4", [4], 4j])
def test_whole_numbers(kind, setting, others, wrong):
    with pytest.raises(TypeError, match=f"{setting} must be an integer"):
        kind(**{setting: wrong}, **others)


@pytest.mark.parametrize(("kind", "setting", "others"), REAL)
@pytest.mark.parametrize("wrong", [True, False, np.True_, "0.5", [0.5], 0.5j])
def test_numbers(kind, setting, others, wrong):
    with pytest.raises(TypeError, match=f"{setting} must be a real number"):
        kind(**{setting: wrong}, **others)


@pytest.mark.parametrize(("kind", "setting", "others"), REAL)
@pytest.mark.parametrize("wrong", [-1, 0, float("nan"), float("inf")])
def test_numbers_out_of_range(kind, setting, others, wrong):
    with pytest.raises(ValueError, match=f"{setting} must be"):
        kind(**{setting: wrong}, **others)


@pytest.mark.parametrize(
    ("kind", "setting", "narrow"),
    [
        (QSGD, "bits", np.int8(8)),
        (QSGD, "levels", np.uint8(100)),
        (QSGD, "bucket", np.uint8(200)),
        (TopK, "k", np.int64(3)),
        (TopK, "ratio", np.float32(0.5)),
    ],
)
def test_numbers_of_numpy_are_as_good_as_others(kind, setting, narrow):
    made = kind(**{setting: narrow})
    assert made == kind(**{setting: narrow.item()})
    assert type(getattr(made, setting)) is type(narrow.item())


@pytest.mark.parametrize(("kind", "setting"), [(QSGD, "bits"), (NUQSGD, "bits")])
def test_what_must_be_given(kind, setting):
    with pytest.raises(TypeError, match=f"{setting} must be an integer, got None"):
        kind(**{setting: None})
