"""Closed forms of local training, against the published table of Streaming DiLoCo."""

import numpy as np
import pytest

from sparcml.aggregate.planning import planned_methods
from sparcml.local.planning import bandwidth_for, plan_local, streaming
from sparcml.planning.models import of_size
from sparcml.planning.plan import plan

GRID = np.logspace(-1, 3, 50)  # Gbit/s; the published values lie on it
PARTS = (0.5, 0.8, 0.9, 0.95, 0.99)
HIDDEN = 2 / 3
METHODS = planned_methods((0.01,))

# Gbit/s for 50, 80, 90, 95 and 99 %: data parallel, DiLoCo with H = 100, streaming fragments of
# 3 layers, with overlap of one step, and with 4 bits. By parameters, layers and seconds per step.
PUBLISHED = {
    (1e9, 24, 0.1): [
        (86.8, 152.6, 184.2, 222.3, 569),
        (1.4, 6.2, 13.3, 23.3, 86.8),
        (1.4, 5.2, 9.1, 16, 28.1),
        (1.4, 4.3, 6.2, 9.1, 11),
        (0.4, 0.9, 1.7, 2, 3),
    ],
    (1e10, 48, 0.8): [
        (104.8, 222.3, 222.3, 268.3, 471.5),
        (1.7, 7.5, 16, 33.9, 104.8),
        (1.7, 5.2, 9.1, 13.3, 19.3),
        (1.7, 3.6, 5.2, 6.2, 7.5),
        (0.4, 0.9, 1.4, 1.4, 1.7),
    ],
    (1e11, 108, 4.9): [
        (184.2, 323.8, 390.7, 390.7, 471.5),
        (3, 11, 23.3, 49.4, 184.2),
        (2.4, 6.2, 9.1, 11, 19.3),
        (1.7, 3.6, 4.3, 5.2, 5.2),
        (0.5, 0.9, 1.1, 1.1, 1.4),
    ],
}


def place(gigabits):
    """Return the place on the grid of a published value, which has one digit after the point."""
    return int(np.argmin(np.abs(np.log(GRID / gigabits))))


def test_the_published_table_of_utilization():
    exact = near = cells = 0
    for (size, layers, T), forms in PUBLISHED.items():
        bits = 0.9 * 16 * size
        fragments = {"every": 100, "fragments": layers // 3}
        settings = [
            (bits, {"layers": layers}),
            (bits, {"every": 100}),
            (bits, fragments),
            (bits, {**fragments, "delay": 1}),
            (bits / 4, {**fragments, "delay": 1}),
        ]
        for row, (sent, options) in zip(forms, settings, strict=True):
            for part, published in zip(PARTS, row, strict=True):
                needed = bandwidth_for(part, sent, T, HIDDEN, **options) / 1e9
                found = int(np.searchsorted(GRID, needed))  # the next on the grid
                away = abs(found - place(published))
                exact, near, cells = exact + (away == 0), near + (away <= 1), cells + 1
    assert (exact, near, cells) == (56, 74, 75)


def test_bandwidth_and_time_agree():
    for fragments, delay in ((4, 2.0), (1, 0.0)):
        B = bandwidth_for(0.8, 1e9, 0.5, 0.5, every=20, fragments=fragments, delay=delay)
        step = streaming(0.5, 1e9 / B, 0.5, 20, fragments, delay)
        assert 0.5 / step == pytest.approx(0.8)


def test_rows_beside_a_plan():
    base = plan(of_size("20M"), 4, "100mbit", 1.2, methods=METHODS)
    dense, averaging, diloco, stream, sparse = plan_local(base, 30)
    assert dense.step == pytest.approx(base.dense.step, rel=0.05)
    assert diloco.step == pytest.approx(1.2 + base.dense.communication / 30, rel=1e-6)
    assert (averaging.step, averaging.nbytes) == (diloco.step, diloco.nbytes)
    assert "LocalSGD(model, optimizer, 30)" in averaging.line
    assert stream.step == pytest.approx(1.2)  # hidden behind 5 steps per fragment
    assert sparse.nbytes < dense.nbytes / 30 / 90
    assert "fragments=3, delay=5" in stream.line
    far = plan_local(base, 30, sites=2, wan="50mbit")
    assert all(
        a.step >= b.step
        for a, b in zip(far, (dense, averaging, diloco, stream, sparse), strict=True)
    )
    # A ring through 4 ranks: each direction of a site's link carries 1.5 models.
    assert far[0].exchange == pytest.approx(1.5 * 20e6 * 32 / 50e6, rel=0.01)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"every": 0}, "local_steps must be"),
        ({"every": 30, "sites": 3, "wan": "1gbit"}, "sites must divide the 4 ranks, got 3"),
        ({"every": 30, "sites": 2}, "wan must be the bandwidth between sites"),
        ({"every": 30, "wan": "1gbit"}, "wan must be the bandwidth between sites"),
    ],
)
def test_wrong_settings(options, message):
    base = plan(of_size("1M"), 4, "1gbit", 0.1, methods=METHODS)
    with pytest.raises(ValueError, match=message):
        plan_local(base, **options)
