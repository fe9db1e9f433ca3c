"""One clear line for each wrong setting or argument."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import local
from sparcml.errors import MismatchError

from .training import model, simulate, train

ANY: Any = {"30": "30", "dense": "dense", "2": 2, "3": 3}  # of wrong types

SETTINGS = [
    (lambda: local.DiLoCo(30, fragments=4), "fragments must divide sync_every, 30, got 4"),
    (lambda: local.DiLoCo(30, fragments=0), "fragments must be >= 1, got 0"),
    (lambda: local.DiLoCo(30, fragments=()), "fragments must divide sync_every, 30, got 0"),
    (
        lambda: local.DiLoCo(30, delay=30),
        "delay must be below sync_every / fragments, 30, got 30",
    ),
    (
        lambda: local.SparseLoCo(30, fragments=3, delay=12),
        "delay must be below sync_every / fragments, 10, got 12; only one fragment may be in",
    ),
    (lambda: local.DiLoCo(0), "sync_every must be >= 1, got 0"),
    (lambda: local.DiLoCo(2, mix=1.5), "mix must be from 0 to 1, got 1.5"),
    (
        lambda: local.DiLoCo(2, outer_lr=0),
        "outer_lr must be a finite number above 0, got 0",
    ),
    (lambda: local.DiLoCo(2, outer_momentum=1), "outer_momentum must be from 0 to below 1"),
    (
        lambda: local.BMUF(2, block_momentum=-0.1),
        "block_momentum must be from 0 to below 1",
    ),
    (lambda: local.LocalSGD(4, warm_up=1, fragments=2), "warm_up must be 0 with fragments"),
    (
        lambda: local.SparseLoCo(2, mean="median"),
        "mean must be all or senders, got 'median'",
    ),
    (lambda: local.SparseLoCo(2, k=-1), "k must be >= 0, got -1"),
    (lambda: local.SPARTA(ratio=2), "ratio must be above 0 and at most 1, got 2"),
    (lambda: local.DeMo(decay=2), "decay must be from 0 to 1, got 2"),
]


@pytest.mark.parametrize(("build", "message"), SETTINGS)
def test_settings(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: local.DiLoCo(ANY["30"]), "sync_every must be an integer, got '30'"),
        (
            lambda: local.DiLoCo(2, method=ANY["dense"]),
            "method must be an aggregation method",
        ),
        (
            lambda: local.SparseLoCo(2, quantize=ANY["2"]),
            "quantize must be a quantizer such as",
        ),
    ],
)
def test_types_of_settings(build, message):
    with pytest.raises(TypeError, match=message):
        build()


def single(body):
    return simulate(body, 1)[0]


def test_a_method_whose_result_is_no_mean():
    with pytest.raises(ValueError, match="method must return a mean"):
        local.DiLoCo(2, method=sparcml.MajorityVote())


def test_arguments_of_a_step():
    m = local.DiLoCo(1)
    x = np.zeros(4)

    def body(comm):
        with pytest.raises(TypeError, match="comm must be a Communicator, got 3"):
            m.step(ANY["3"], x, m.init(x))
        with pytest.raises(TypeError, match="state must be a result of init"):
            m.step(comm, x, {"momentum": x})
        with pytest.raises(ValueError, match=r"as many values as the state \(4\), got 5"):
            m.step(comm, np.zeros(5), m.init(x))
        with pytest.raises(TypeError, match="must be float32 or float64"):
            m.init(np.zeros(4, np.int32))
        with pytest.raises(ValueError, match="got one of SPARTA, which has none; use av"):
            local.SPARTA().shared(x, local.SPARTA().init(x))
        with pytest.raises(ValueError, match=r"x of rank 0 must be finite, got 1 values"):
            m.step(comm, np.array([0, np.nan, 0, 0]), m.init(x))

    single(body)


def test_more_fragments_than_parameters():
    with pytest.raises(
        ValueError,
        match=r"^DiLoCo: fragments must be at most the number of parameters, 4, got 5",
    ):
        local.DiLoCo(5, fragments=5).init(model())


@pytest.mark.parametrize(
    ("fragments", "message"),
    [
        (
            (("head",), ("blocks.0.w",)),
            "some that lack 'blocks.1.w', 'blocks.2.w'; use the names",
        ),
        ((tuple(model()), ("tail",)), "some that have unknown 'tail'; use the names"),
        ((tuple(model()), ("head",)), "some that repeat 'head'; use the names"),
        ((tuple(model()), ()), "some that have an empty fragment '1'; use the names"),
        (
            (("head", "tail"), ("head",)),
            "lack .* and some that have unknown .* and some that re",
        ),
    ],
)
def test_names_of_fragments(fragments, message):
    with pytest.raises(
        ValueError, match=r"^SparseLoCo: fragments must contain each"
    ) as caught:
        local.SparseLoCo(2, fragments=fragments).init(model())
    caught.match(message)


def test_names_of_fragments_need_named_parameters():
    with pytest.raises(
        ValueError, match=r"^DiLoCo: fragments must be a number if x is a sing"
    ):
        local.DiLoCo(2, fragments=(("a",), ("b",))).init(np.zeros(3))
    for wrong in (["head", "blocks.0.w"], [1, 2], [["head"], 3], [[3]]):
        with pytest.raises(
            TypeError, match=r"^DiLoCo: fragments must be a number, or a list"
        ):
            local.DiLoCo(2, fragments=wrong)  # type: ignore[arg-type]


def differing(build, start=lambda rank: model()):
    """Return the errors of two ranks that differ in something."""

    def body(comm):
        m, x = build(comm.rank), start(comm.rank)
        with pytest.raises(MismatchError) as caught:
            train(comm, m, x, m.init(x), 6)
        return str(caught.value)

    return sparcml.launch(body, 2)


def test_different_order_of_fragments_on_two_ranks():
    names = sorted(model())
    halves = tuple(names[:2]), tuple(names[2:])
    errors = differing(lambda rank: local.DiLoCo(4, fragments=halves[:: 1 - 2 * rank]))
    assert all(
        "differ in method" in e and "fragments in the same order" in e for e in errors
    )


def test_different_settings_and_models_on_two_ranks():
    errors = differing(lambda rank: local.DiLoCo(4, delay=1, outer_lr=0.5 + rank / 10))
    assert all(
        "differ in method; all ranks must pass the same settings" in e for e in errors
    )
    other = {n: v + 1 for n, v in model().items()}
    errors = differing(
        lambda rank: local.DiLoCo(4), lambda rank: other if rank else model()
    )
    assert all("differ in shared model; all ranks must start" in e for e in errors)
    errors = differing(lambda rank: local.SPARTA(seed=rank))
    assert all("differ in method" in e for e in errors)
