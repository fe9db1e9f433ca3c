"""Bad input of decentralized methods: one clear line, and no rank that waits."""

from typing import Any

import numpy as np
import pytest

import sparcml
from sparcml import MismatchError, OneBit, RandomK, TopK
from sparcml import decentralized as dec

X = np.zeros(4)
COLUMNS = dec.from_matrix(
    [[0.5, 0.5, 0.25], [0.25, 0.5, 0], [0.25, 0, 0.75]], stochastic="columns"
)
ROWS = dec.from_matrix([[0.5, 0.25, 0.25], [0.5, 0.5, 0], [0, 0.5, 0.5]])
CYCLE = dec.from_matrix((np.eye(4) + np.roll(np.eye(4), 1, axis=1)) / 2)  # directed
DOUBLY: list[Any] = [dec.DPSGD, dec.NaiveQuantized, dec.DCD, dec.ECD, dec.Choco, dec.D2]
DOUBLY += [dec.GradientTracking, lambda t: dec.Moniqua(t, 1.0)]
SYMMETRIC: list[Any] = [
    dec.DCD,
    dec.ECD,
    dec.Choco,
    dec.D2,
    lambda t: dec.Moniqua(t, 1.0),
    dec.ADPSGD,
]


def refused(build, *arguments, match):
    with pytest.raises((TypeError, ValueError), match=match) as raised:
        build(*arguments)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("build", DOUBLY)
@pytest.mark.parametrize("topology", [COLUMNS, ROWS], ids=["columns", "rows"])
def test_not_doubly_stochastic(build, topology):
    refused(
        build, topology, match=r"\w+: topology must be doubly stochastic .* for PushSum"
    )


def test_not_column_stochastic():
    refused(dec.PushSum, ROWS, match="PushSum: topology must be column-stochastic")


@pytest.mark.parametrize("build", SYMMETRIC)
def test_directed(build):
    refused(
        build, CYCLE, match=r"\w+: topology must be symmetric, got from_matrix\(4 ranks"
    )


@pytest.mark.parametrize("build", [dec.DCD, dec.ECD, dec.Choco, dec.D2, dec.ADPSGD])
def test_changing_from_step_to_step(build):
    topology = dec.base_graph(6)
    assert topology.is_symmetric
    refused(build, topology, match=r"\w+: topology must be the same in every step")


def test_not_connected():
    refused(dec.from_matrix, np.eye(3), match="from_matrix: graph must be connected")


@pytest.mark.parametrize("build", DOUBLY)
def test_not_a_topology(build):
    refused(build, np.eye(3), match=r"\w+: topology must be one of sparcml.decentralized")


@pytest.mark.parametrize("build", [dec.DCD, dec.ECD])
@pytest.mark.parametrize(
    "compress", [TopK(0.1), OneBit(), RandomK(0.1, scaled=False)], ids=str
)
def test_biased_compressors_where_the_theorem_needs_unbiased_ones(build, compress):
    match = r"\w+: compress must be unbiased, got .*; use Choco"
    refused(build, dec.ring(4), compress, match=match)


@pytest.mark.parametrize("build", [dec.DCD, dec.ECD])
def test_sparsifiers_whose_errors_would_grow(build):
    match = (
        r"\w+: compress must keep at least half of the entries, got RandomK.*; use Choco"
    )
    refused(build, dec.ring(8), RandomK(0.1), match=match)
    refused(build, dec.ring(8), RandomK(0.49), match=match)
    build(dec.ring(8), RandomK(0.5))


@pytest.mark.parametrize("build", [dec.DCD, dec.ECD, dec.Choco, dec.NaiveQuantized])
def test_not_a_compressor(build):
    match = r"\w+: compress must be a sparsifier or a quantizer .* got 0.01"
    refused(build, dec.ring(4), 0.01, match=match)


@pytest.mark.parametrize("gamma", [0, 1.5, -1])
def test_gamma(gamma):
    refused(lambda g: dec.Choco(dec.ring(4), gamma=g), gamma, match="Choco: gamma must be")


@pytest.mark.parametrize("build", [dec.DCD, dec.ECD, dec.Choco, dec.ADPSGD])
@pytest.mark.parametrize("seed", ["1", 0.5, None, True])
def test_seeds(build, seed):
    match = r"\w+: seed must be an integer, got "
    refused(lambda s: build(dec.ring(4), seed=s), seed, match=match)


def test_momentum():
    refused(lambda: dec.DPSGD(dec.ring(4), momentum=1.0), match="DPSGD: momentum must be")


def fails(body, error, match, ranks=2):
    with pytest.raises(error, match=match):
        sparcml.launch(body, ranks, timeout=30)


def test_a_topology_for_another_number_of_ranks():
    def body(comm):
        method = dec.DPSGD(dec.ring(8))
        method.step(comm, X, X, method.init(X), lr=0.1)

    fails(body, ValueError, r"step: topology must be for 2 ranks, got ring\(8\) for 8")


@pytest.mark.parametrize(
    ("x", "gradient", "error", "match"),
    [
        (np.zeros(4, np.int64), X, TypeError, "init: x must be float32 or float64"),
        (np.zeros(4, np.float16), X, TypeError, "keep a float32 copy of the model"),
        ({}, {}, TypeError, "init: x must have values of one dtype"),
        ({"a": X, "b": X.astype("f4")}, X, TypeError, "one dtype, float32 or float64"),
        ({1: X}, X, TypeError, "names of parameters must be nonempty strings"),
        (X, np.zeros(5), ValueError, "step: gradient must have the shape of x"),
        (X, {"a": X}, ValueError, "step: gradient must have the names of x"),
        (X, np.array(["a"] * 4), TypeError, "step: gradient must have real values"),
        (
            X,
            np.array([0, np.nan, 0, 0]),
            ValueError,
            "the gradient of rank . must be finite",
        ),
        (np.array([np.inf, 0, 0, 0]), X, ValueError, "the model of rank . must be finite"),
        (sparcml.Stream(4, [1], [1.0]), X, TypeError, "init: x must be dense"),
    ],
)
def test_models_and_gradients(x, gradient, error, match):
    def body(comm):
        method = dec.DPSGD(dec.ring(2))
        method.step(comm, x, gradient, method.init(x), lr=0.1)

    fails(body, error, match)


@pytest.mark.parametrize("lr", [-1.0, np.nan, np.inf, "0.1", True])
def test_learning_rates(lr):
    def body(comm):
        method = dec.DPSGD(dec.ring(2))
        method.step(comm, X, X, method.init(X), lr=lr)

    fails(body, ValueError, "step: lr must be a finite number >= 0")


@pytest.mark.parametrize("state", [None, {}, {"step": np.array(0)}])
def test_states(state):
    def body(comm):
        dec.DPSGD(dec.ring(2)).step(comm, X, X, state, lr=0.1)

    fails(
        body, TypeError, r"step: state must be a result of init\(\) or of the last step\(\)"
    )


def test_a_state_of_another_size():
    def body(comm):
        method = dec.DPSGD(dec.ring(2))
        method.step(comm, X, X, method.init(np.zeros(5)), lr=0.1)

    fails(body, ValueError, "step: x must have as many values as the state")


def test_a_communicator_is_required():
    method = dec.DPSGD(dec.ring(1))
    with pytest.raises(TypeError, match="step: comm must be a Communicator, got 3"):
        method.step(3, X, X, method.init(X), lr=0.1)  # type: ignore[arg-type]


def one_rank_fails(bad):
    """A body in which rank 1 does something else, and all ranks raise."""

    def body(comm):
        method, x, gradient, state = bad(comm.rank == 1)
        method.step(comm, x, gradient, state, lr=0.1)

    return body


def test_ranks_that_differ_in_method():
    def bad(other):
        method = dec.DPSGD(dec.ring(4), adapt_then_combine=other)
        return method, X, X, method.init(X)

    fails(one_rank_fails(bad), MismatchError, "differ in method", 4)


def test_ranks_that_differ_in_the_step():
    def bad(other):
        method = dec.DPSGD(dec.ring(4))
        return method, X, X, {**method.init(X), "step": np.array(7 if other else 0)}

    fails(one_rank_fails(bad), MismatchError, "differ in step", 4)


def test_ranks_that_differ_in_the_model():
    def bad(other):
        method, x = dec.DPSGD(dec.ring(4)), np.zeros(5 if other else 4)
        return method, x, x, method.init(x)

    fails(one_rank_fails(bad), MismatchError, "differ in parameters", 4)


def test_a_rank_that_lost_its_replicas():
    method = dec.DCD(dec.ring(4))

    def body(comm):
        x, state = method.step(comm, X, X, method.init(X), lr=0.1)
        x, state = method.step(comm, x, X, state, lr=0.1)
        if comm.rank == 1:
            state = {k: v for k, v in state.items() if not k.startswith("replica/")}
        # A new communicator compares what it has not compared yet.
        method.step(comm.duplicate(), x, X, state, lr=0.1)

    fails(body, MismatchError, "differ in entries of the state", 4)


def test_replicas_of_another_topology():
    def body(comm):
        x, state = X, dec.DCD(dec.ring(4)).init(X)
        x, state = dec.DCD(dec.ring(4)).step(comm, x, X, state, lr=0.1)
        dec.DCD(dec.complete(4)).step(comm, x, X, state, lr=0.1)

    fails(body, ValueError, "call change_topology if the topology changes", 4)


def test_a_gradient_that_fails_on_one_rank_ends_all():
    def bad(other):
        method = dec.Choco(dec.ring(4), TopK(0.5))
        return method, X, X * (np.nan if other else 1), method.init(X)

    fails(one_rank_fails(bad), ValueError, "the gradient of rank 1 must be finite", 4)


def test_another_number_of_ranks_needs_reshard():
    method = dec.DPSGD(dec.ring(4))
    with pytest.raises(ValueError, match="use reshard to change the world size"):
        method.change_topology(dec.ring(5), method.init(X))
    with pytest.raises(ValueError, match="must be those of all 4 ranks, got 2 and 2"):
        method.reshard([X, X], [method.init(X)] * 2, dec.ring(2))


def test_an_exchange_of_another_step():
    def body(comm):
        method = dec.DPSGD(dec.ring(2))
        state = method.init(X)
        begun = method.begin(comm, X, state)
        x, state = method.step(comm, X, X, state, lr=0.1, begun=begun)
        method.step(comm, x, X, state, lr=0.1, begun=begun)

    fails(body, ValueError, r"begun must be the result of begin\(\) in this step, 1")
