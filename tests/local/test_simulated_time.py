"""The same training code under the simulator's clock, against the planner's closed forms."""

import numpy as np
import pytest

import sparcml
from sparcml import local
from sparcml.aggregate.planning import planned_methods
from sparcml.local.planning import plan_local
from sparcml.planning.models import of_size
from sparcml.planning.plan import plan

RANKS, NETWORK, H, T = 4, "100mbit", 12, 0.05
SIZE = 400_000


def seconds_per_step(method, compute=T):
    """Return the simulated mean time of a step, after a first round."""
    start = np.random.default_rng(0).standard_normal(SIZE).astype(np.float32)

    def body(comm):
        x, state, ends = start, method.init(start), []
        for step in range(3 * H):
            comm.advance(compute)
            x, state = method.step(comm, x + np.float32(1e-3 * comm.rank * step), state)
            ends.append(comm.now())
        return (ends[-1] - ends[H - 1]) / (2 * H), state

    results = sparcml.simulate(body, RANKS, NETWORK, trace=0).results
    shared = [state["shared"].tobytes() for _, state in results]
    assert len(set(shared)) == 1
    return max(seconds for seconds, _ in results)


def test_a_simulated_round_takes_the_planned_time():
    base = plan(of_size(str(SIZE)), RANKS, NETWORK, T, methods=planned_methods((0.01,)))
    rows = {row.form.partition(",")[0]: row for row in plan_local(base, H)[:3]}
    diloco = seconds_per_step(local.DiLoCo(H))
    assert diloco == pytest.approx(rows["DiLoCo"].step, rel=0.05)
    averaging = seconds_per_step(local.LocalSGD(H))
    assert averaging == pytest.approx(rows["local SGD"].step, rel=0.05)
    sparse = seconds_per_step(local.SparseLoCo(H))
    assert sparse < T + (diloco - T) / 20


def test_an_exchange_hides_if_it_takes_less_than_the_delay():
    exchange = H * (seconds_per_step(local.DiLoCo(H)) - T)
    hidden = int(exchange / T) + 1  # steps, of a single fragment
    assert 1 < hidden < H
    assert seconds_per_step(local.DiLoCo(H, delay=hidden)) == pytest.approx(T, rel=0.02)
    partly = seconds_per_step(local.DiLoCo(H, delay=1))
    assert partly == pytest.approx(T + (exchange - T) / H, rel=0.03)
    split = seconds_per_step(local.DiLoCo(H, fragments=4, delay=2))
    assert split == pytest.approx(T, rel=0.02)
