"""NaN, infinity, ranks that differ, states that do not fit: said, never silent."""

from __future__ import annotations

import numpy as np
import pytest

import sparcml
from sparcml import (
    QSGD,
    Compressed,
    Dense,
    MajorityVote,
    MismatchError,
    OneBit,
    PowerSGD,
    RandomK,
    Sign,
    TopK,
)

from ..rosters import METHODS
from .gradients import SHAPES, gradient


def passing(method):
    from dataclasses import replace

    return replace(method, nonfinite="propagate")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", METHODS)
def test_the_parameter_and_the_rank_are_named(name, bad):
    method = METHODS[name]

    def work(comm):
        g, state = gradient(comm.rank, 0), method.init(SHAPES)
        if comm.rank == 1:
            g["table"][3, 4] = bad
        with pytest.raises((ValueError, sparcml.TransportError), match="rank 1") as caught:
            method.aggregate(comm, g, state)
        assert "'table'" in str(caught.value)
        assert int(state["step"]) == 0
        return type(caught.value).__name__

    kinds = sparcml.launch(work, 3)
    assert kinds[1] == "ValueError"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("name", METHODS)
def test_or_it_is_handed_on(name, bad):
    method = passing(METHODS[name])

    def work(comm):
        g = gradient(comm.rank, 0)
        if comm.rank == 1:
            g["table"][3, 4] = bad
        mean, _ = method.aggregate(comm, g, method.init(SHAPES))
        return mean

    for mean in sparcml.launch(work, 3):
        if "vote" in name or "signum" in name:
            # Infinity has a sign; NaN takes the bucket that is coded with it along.
            assert np.isnan(mean["table"][3, 4]) == np.isnan(bad)
            continue
        # A place that was drawn by lot may not be sent now; where values are coded, the
        # whole bucket may come out as NaN.
        assert "randomk" in name or not np.isfinite(mean["table"]).all()
        for other in ("bias", "small"):
            assert np.isfinite(mean[other]).all()


CHANGES = {
    "fewer": lambda g: g.pop("small"),
    "another shape": lambda g: g.update(table=g["table"].T.copy()),
    "another dtype": lambda g: g.update(table=g["table"].astype("f8")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_ranks_must_bring_the_same_parameters(change):
    def work(comm):
        g, method = gradient(comm.rank, 0), Compressed(TopK(0.1))
        if comm.rank == 2:
            CHANGES[change](g)
        with pytest.raises(MismatchError, match="differ in parameters"):
            method.aggregate(comm, g, method.init(g))
        assert comm.allreduce(np.ones(1))[0] == comm.size  # nothing was under way

    sparcml.launch(work, 3)


def test_ranks_must_use_the_same_method_and_step():
    def work(comm):
        g = gradient(comm.rank, 0)
        method = Compressed(TopK(0.1 if comm.rank else 0.2))
        with pytest.raises(MismatchError, match="differ in method"):
            method.aggregate(comm, g, method.init(g))
        method = Compressed(TopK(0.3))
        state = method.init(g)
        state["step"] = state["step"] + (comm.rank == 1)
        with pytest.raises(MismatchError, match="differ in step"):
            method.aggregate(comm, g, state)

    sparcml.launch(work, 2)


def test_a_stale_state_is_noticed_at_any_step():
    def work(comm):
        method, x = Compressed(RandomK(k=4, shared=True)), np.arange(1000, dtype="f4")
        first = method.init(1000)
        _, second = method.aggregate(comm, x, first)
        with pytest.raises((MismatchError, sparcml.TransportError)):
            method.aggregate(comm, x, first if comm.rank == 1 else second)

    sparcml.launch(work, 3)


def test_whatever_a_rank_raises_the_others_hear_of_it():
    def work(comm):
        method = Compressed(TopK(0.1))
        x = np.arange(5) if comm.rank == 1 else np.ones(5, "f4")
        with pytest.raises(
            (TypeError, sparcml.TransportError), match="floating point values, got int64"
        ):
            method.aggregate(comm, x, method.init(5))

    sparcml.launch(work, 3)


FORGETFUL = {
    "powersgd": PowerSGD(error_feedback=False),
    "qsgd": Compressed(quantize=QSGD(), error_feedback=False),
    "vote": MajorityVote(),
}


@pytest.mark.parametrize("name", FORGETFUL)
def test_debts_are_not_dropped_by_who_cannot_pay(name):
    comm, owing, method = sparcml.world(), Compressed(TopK(0.1)), FORGETFUL[name]
    _, state = owing.aggregate(comm, np.ones((30, 30), "f4"), owing.init((30, 30)))
    with pytest.raises(ValueError, match="one step with Dense"):
        method.init((30, 30), state)
    with pytest.raises(ValueError, match="one step with Dense"):
        method.aggregate(comm, np.ones((30, 30), "f4"), state)


@pytest.mark.parametrize("size", [1e-39, 1e-30, 3e38, 7e4])
@pytest.mark.parametrize("name", METHODS)
def test_finite_gradients_stay_finite(name, size):
    """Half and others have a narrow range, sums of squares overflow: values must not."""
    if size > 1e38 and "powersgd" in name:
        size = 1e36  # its products have n terms, and must be numbers themselves
    if size > 1e38 and "adam" in name:
        size = 1e18  # the second moment is a mean of squares

    def work(comm):
        method, state = METHODS[name], METHODS[name].init(SHAPES)
        for step in range(2):
            g = {n: x / 32 / comm.size for n, x in gradient(comm.rank, step).items()}
            g = {n: np.float32(size) * x for n, x in g.items()}
            mean, state = method.aggregate(comm, g, state)
            assert all(np.isfinite(m).all() for m in mean.values())
            assert all(np.isfinite(s).all() for s in state.values())

    sparcml.launch(work, 2)


def test_what_is_owed_is_looked_at_too():
    comm, method = sparcml.world(), Compressed(TopK(0.1))
    state = method.init(20)
    state["residual"][3] = np.nan
    with pytest.raises(ValueError, match="the residual has 1 values"):
        method.aggregate(comm, np.ones(20, "f4"), state)


def test_a_state_must_fit():
    comm, method = sparcml.world(), Compressed(TopK(0.1))
    with pytest.raises(ValueError, match=r"gradient \(20\), got 10; .*init\(\(20,\)\)"):
        method.aggregate(comm, np.ones(20, "f4"), method.init(10))
    with pytest.raises(ValueError, match="residual is lost"):
        Dense().init({"a": (3, 3)}, method.init({"b": (200, 300)}))
    with pytest.raises(ValueError, match="parameter has 9 values"):
        Dense().init(9, method.init(10))


def test_wrong_things_are_refused():
    comm, method = sparcml.world(), Compressed(TopK(0.1))
    with pytest.raises(TypeError, match="floating point values, got int64"):
        method.aggregate(comm, np.arange(5), method.init(5))
    with pytest.raises(TypeError, match="names of parameters"):
        method.init({3: (1, 2)})
    with pytest.raises(TypeError, match="an integer or a shape"):
        method.init((1.5, 2))
    with pytest.raises(ValueError, match="nonfinite must be raise or propagate"):
        Compressed(TopK(0.1), nonfinite="ignore")
    with pytest.raises(
        TypeError, match=r"sparsify must be None or an object such as sparcml.TopK"
    ):
        Compressed(0.1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"quantize must be None or an object such as"):
        Compressed(quantize="4 bits")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write Compressed\(quantize=QSGD\(bits=4\)\)"):
        Compressed(QSGD(4))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"write Compressed\(sparsify=TopK\(ratio=0.1\)\)"):
        Compressed(quantize=TopK(0.1))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="algorithm must be one of"):
        Compressed(algorithm="foo")
    with pytest.raises(ValueError, match="which is lossless"):
        Compressed(quantize=QSGD(), algorithm="ring")
    with pytest.raises(ValueError, match="must not have buckets"):
        Compressed(TopK(0.1), global_topk=TopK(k=1, bucket=10))
    with pytest.raises(TypeError, match="an integer"):
        PowerSGD(rank=2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("biased", [OneBit(), Sign()])
def test_a_biased_method_without_feedback_is_warned_of(biased):
    with pytest.warns(UserWarning, match="without error feedback may not converge"):
        Compressed(quantize=biased, error_feedback=False)


def test_an_unbiased_one_is_not():
    Compressed(quantize=QSGD(bits=4), error_feedback=False)  # warnings are errors here


def test_resharding_needs_states_and_ranks():
    state = Compressed(TopK(0.1)).init(5)
    later = {**state, "step": state["step"] + 1}
    for states, ranks in (([], 2), ([state], 0), ([state, later], 3)):
        with pytest.raises(ValueError, match="reshard"):
            sparcml.aggregate.reshard(states, ranks)
