"""The measured accuracy of methods, and the recommended ones."""

from dataclasses import replace

import pytest

from sparcml import QSGD, Compressed, Dense, PowerSGD, TopK
from sparcml.aggregate.evidence import (
    ADAMW,
    MEASURED_WITH,
    SGD,
    accuracy,
    measured_methods,
    recommended_method,
    results,
)
from sparcml.aggregate.planning import methods_to_plan

FALLING = recommended_method(SGD, 10_000)
THREE_BITS = recommended_method(ADAMW)
SLOW_LINK = recommended_method(ADAMW, slow_link=True)


def test_recommended_methods_keep_the_accuracy():
    for optimizer, method in (("sgd", FALLING), ("adamw", THREE_BITS), ("adam", THREE_BITS),
                              ("adamw", SLOW_LINK)):  # fmt: skip
        found = accuracy(method, optimizer)
        assert found.verdict == "kept"
        assert found.measurement.endswith("ranks; docs/training.md")


def test_recommended_methods_are_planned():
    planned = [
        replace(m, steps=None) for m in methods_to_plan() if isinstance(m, Compressed)
    ]
    for method in (FALLING, THREE_BITS, SLOW_LINK):
        assert planned.count(method) == 1


def test_every_row_is_of_a_method_that_is_planned():
    planned = [
        accuracy(method, name) for method in methods_to_plan() for name in (SGD, ADAMW)
    ]
    cited = " ".join(found.measurement for found in planned)
    for optimizer in (SGD, ADAMW):
        rows = [r for r in results() if r.optimizer == optimizer]
        assert {r.method for r in rows} <= measured_methods(optimizer).keys()
        for name in {r.method for r in rows}:
            worst = max((r for r in rows if r.method == name), key=lambda r: r.excess)
            assert f"{worst.difference} on the {worst.network}" in cited


@pytest.mark.parametrize(
    ("method", "optimizer", "verdict"),
    [
        (Dense(), "adamw", "exact"),
        (Dense(), "other", "exact"),
        (Compressed(quantize=QSGD(4), error_feedback=False), "adamw", "kept"),
        (Compressed(quantize=QSGD(4), error_feedback=False), "other", "not measured"),
        (Compressed(quantize=QSGD(4)), "adamw", "not measured"),  # feedback delays
        (Compressed(quantize=QSGD(8), error_feedback=False), "sgd", "not measured"),
        (PowerSGD(rank=4), "sgd", "not kept"),
        (PowerSGD(rank=4), "adam", "not kept"),
        (PowerSGD(rank=2), "adamw", "not measured"),
        (Compressed(TopK(0.01)), "adamw", "not kept"),
        (Compressed(TopK(0.001), QSGD(8)), "adamw", "not kept"),  # less than 1 %
        (Compressed(TopK(0.01), algorithm="oktopk"), "sgd", "not kept"),
        (Compressed(TopK(0.02)), "adamw", "not measured"),
        (Compressed(TopK(k=4, bucket=512)), "adamw", "not measured"),
        (FALLING, "adamw", "not measured"),
        (THREE_BITS, "sgd", "not measured"),
    ],
    ids=str,
)  # fmt: skip
def test_verdicts(method, optimizer, verdict):
    assert accuracy(method, optimizer).verdict == verdict


def test_settings_that_do_not_matter():
    method = Compressed(quantize=QSGD(4), error_feedback=False)
    same = replace(method, algorithm="dsar_split_allgather", seed=3, dense_below=7)
    for optimizer in MEASURED_WITH:
        assert accuracy(same, optimizer) == accuracy(method, optimizer)
    other = replace(method, quantize=QSGD(4, bucket=64))
    assert accuracy(other, ADAMW).verdict == "not measured"


def test_results_of_adam_are_those_of_adamw():
    for method in methods_to_plan():
        assert accuracy(method, "adam") == accuracy(method, ADAMW)
