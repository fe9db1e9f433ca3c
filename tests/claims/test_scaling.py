"""Strong scaling, small: what its rows must obey."""

from claims import scaling_runs, strong_scaling


def test_more_ranks_compute_less_and_keep_the_batch():
    once = scaling_runs.computing("alexnet", 1)
    assert [n * scaling_runs.computing("alexnet", n) for n in (2, 16)] == [once, once]


def test_the_model_is_close_to_the_simulation():
    """Of a tenth on slower links and processors, and of the whole."""
    rows = [row for kind in ("simulated", "modelled") for row in
            scaling_runs.measure(kind, "resnet50", 4)]  # fmt: skip
    off = strong_scaling.deviations(rows)
    assert len(off) == len(scaling_runs.METHODS)
    assert max(map(abs, off)) < 0.25
