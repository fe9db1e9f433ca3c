"""Nothing is lost if the method changes in mid-run."""

from typing import Any

import numpy as np
import pytest

from sparcml import QSGD, Compressed, Dense, TopK, local

from .training import flat, inner_step, model, simulate

EXACT: dict[str, Any] = {"chunk": 16, "decay": 1.0, "mean": "all"}
TOP = Compressed(TopK(0.1), dense_below=20)
FIRST = {
    "sparse_loco": local.SparseLoCo(2, k=1, **EXACT),
    "in flight": local.SparseLoCo(8, k=1, delay=5, **EXACT),  # sent after step 3
    "topk": local.LocalSGD(2, method=TOP),
}
SECOND = {
    "k and H": local.SparseLoCo(3, k=2, **EXACT),
    "top 10 %": local.LocalSGD(3, method=TOP),
    "dense": local.LocalSGD(3),
}


def residual_of(state, x):
    """Return the residual of a single fragment as a flat vector."""
    if "aggregate/0/residual" in state:
        return state["aggregate/0/residual"].reshape(-1)
    named = {n: state.get(f"aggregate/0/residual/{n}", 0 * v) for n, v in x.items()}
    return flat(named)


def steps(comm, method, x, state, count, changed):
    for _ in range(count):
        moved = inner_step(x, comm.rank, int(state["step"]))
        changed = changed + flat(x) - flat(moved)
        x, state = method.step(comm, moved, state)
    return x, state, changed


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("at", [4, 5, 7])
@pytest.mark.parametrize("second", SECOND)
@pytest.mark.parametrize("first", FIRST)
def test_applied_and_residuals_are_what_the_ranks_changed(first, second, at, ranks):
    """After 4 steps a round ends, after 5 and 7 the ranks' models differ."""
    a, b, start = FIRST[first], SECOND[second], model(np.float64)

    def body(comm):
        x, state, changed = steps(comm, a, start, a.init(start), at, np.zeros(338))
        new = b.init(x, state)
        if second != "dense":
            np.testing.assert_array_equal(residual_of(new, x), residual_of(state, x))
        x, state, changed = steps(comm, b, x, new, 9 - at, changed)
        return flat(start) - state["shared"], residual_of(state, x), changed

    results = simulate(body, ranks)
    applied = results[0][0]
    residual, changed = (np.mean([r[i] for r in results], axis=0) for i in (1, 2))
    np.testing.assert_allclose(applied + residual, changed, atol=1e-12)
    assert residual.any() == (second != "dense")


def test_finish_sends_what_changed_before_the_method():
    """After step 6, which would end a round of the new method, but did not."""
    a, b, start = local.LocalSGD(4), local.LocalSGD(3), model(np.float64)

    def body(comm):
        x, state, changed = steps(comm, a, start, a.init(start), 6, np.zeros(338))
        x, state = b.finish(comm, x, b.init(x, state))
        return flat(start) - flat(x), changed

    results = simulate(body, 2)
    np.testing.assert_allclose(
        results[0][0], np.mean([c for _, c in results], 0), atol=1e-12
    )


def test_fragments_keep_their_residuals():
    options = {**EXACT, "fragments": 2}
    a, b = local.SparseLoCo(4, k=1, **options), local.SparseLoCo(6, k=2, **options)
    start = model()

    def body(comm):
        x, state, _ = steps(comm, a, start, a.init(start), 4, 0)
        new = b.init(x, state)
        for key in ("aggregate/0/residual", "aggregate/1/residual"):
            np.testing.assert_array_equal(new[key], state[key])
        for other in (local.SparseLoCo(4), local.DiLoCo(6, fragments=3)):
            with pytest.raises(ValueError, match="no residual of other fragments"):
                other.init(x, state)

    simulate(body, 2)


def test_momentum_is_kept_by_methods_that_have_one():
    m, start = local.DiLoCo(2), model()

    def body(comm):
        x, state, _ = steps(comm, m, start, m.init(start), 2, 0)
        for other in (local.DiLoCo(3), local.BMUF(3)):
            np.testing.assert_array_equal(
                other.init(x, state)["momentum"], state["momentum"]
            )
        assert "momentum" not in local.LocalSGD(3).init(x, state)

    simulate(body, 2)


def test_a_method_without_residual_refuses_one():
    m, start = local.SparseLoCo(2, k=1, **EXACT), model()

    def body(comm):
        x, state, _ = steps(comm, m, start, m.init(start), 2, 0)
        for other in (local.SPARTA(), local.SparseLoCo(2, error_feedback=False)):
            with pytest.raises(ValueError, match=r"must have no residual.*LocalSGD"):
                other.init(x, state)
        lossy = Compressed(quantize=QSGD(4), error_feedback=False)
        with pytest.raises(ValueError, match="needs error feedback to keep the residual"):
            local.DiLoCo(2, method=lossy).init(x, state)
        dense = local.LocalSGD(1, method=Dense())
        _, state = dense.step(comm, x, dense.init(x, state))
        assert int(local.SPARTA().init(x, state)["step"]) == 3

    simulate(body, 2)
