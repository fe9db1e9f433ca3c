"""What each rank does in test_auto.py."""

from itertools import pairwise

import torch
from torch import distributed as dist

import sparcml
from sparcml import QSGD, Compressed, Dense, Half, TopK
from sparcml.torch.step_timer import StepTimer, StepTimes

from .models import compressed, ddp, group, loss_of, same, train

STEPS = range(12)


class SlowNetwork(StepTimer):
    """Measures what a link of some Mbit/s would have given."""

    def measure(self, comm):
        return StepTimes(step=2.0, communication=1.9, exposed=1.8, backward=0.1)


class FastNetwork(StepTimer):
    """Measures what a link of 100 Gbit/s would have given."""

    def measure(self, comm):
        return StepTimes(step=2.0, communication=1e-5, exposed=0.0, backward=1.0)


def as_it_is_measured():
    """Whatever is found, all ranks do the same, and say it."""
    with group() as (rank, _):
        model, handle = compressed("auto")
        assert "still measuring" in handle.explain()
        assert str(handle.stats).startswith("auto: still measuring plain DDP, 0 of 8 steps")
        train(model, rank, STEPS)
        assert handle.decision.measured.step > handle.decision.measured.exposed > 0
        assert bool(model._comm_hooks) == (handle.decision.method is not None)
        assert handle.explain().startswith("auto: ")
        on_a_fast_network(rank)
        told_what_to_do(rank)


def told_what_to_do(rank):
    """A user's word counts, before auto has decided and after."""
    method = Compressed(TopK(0.05), dense_below=100)
    for before in (2, 12):
        model, handle = compressed("auto")
        handle._timer = FastNetwork()
        train(model, rank, range(before))
        handle.change(method)
        train(model, rank, STEPS)
        assert handle.method == method
        assert handle.stats.steps == len(STEPS)
        assert handle.explain().startswith(f"method      {method}")
    owing = handle.state_dict()
    model, handle = compressed("auto")
    handle._timer = FastNetwork()
    train(model, rank, STEPS)
    handle.load_state_dict(owing)
    assert "no hook" in handle.explain()
    assert "buckets" in handle.explain()  # but one that pays
    train(model, rank, range(1))
    assert not handle.state_dict()["state"]


def on_a_fast_network(rank):
    """Plain DDP stays as it is."""
    plain = train(ddp(), rank, STEPS)
    model, handle = compressed("auto")
    handle._timer = FastNetwork()
    same(train(model, rank, STEPS), plain)
    assert not model._comm_hooks
    assert not model._forward_pre_hooks
    assert handle.explain().startswith("auto: no hook: dense")
    assert handle.state_dict()["state"] == {}
    nothing_to_count(handle)


def nothing_to_count(handle):
    """Statistics of what plain DDP does would be zeros."""
    stats = handle.stats
    text = str(stats)
    assert text.startswith("auto: no hook: dense: no method is more than 5% faster")
    assert text.endswith("; plain DDP averages the gradients")
    assert "no hook: dense" in stats._repr_html_()
    assert "compression ratio" not in stats._repr_html_()
    written = Notebook()
    handle.log(written)
    assert written.rows == {}


def on_a_slow_network():
    with group() as (rank, _):
        model, handle = compressed("auto")
        handle._timer = SlowNetwork()
        train(model, rank, range(8))
        assert not model._comm_hooks
        train(model, rank, range(8, 12))
        assert model._comm_hooks
        assert handle.method != Dense()
        assert str(handle.method) in handle.explain()
        assert handle.stats.steps == 4
        assert handle.stats.compression_ratio > 1
        paying_what_is_owed(rank)
        dropped_in_training(rank)


class Disappointing(StepTimer):
    """Measures a slow network, and steps with methods that are slower than estimated."""

    def __init__(self):
        super().__init__()
        self.steps = iter((100.0, 50.0, 20.0, 30.0))

    def measure(self, comm):
        return StepTimes(next(self.steps), communication=1.0, exposed=90.0, backward=1.0)


def dropped_in_training(rank):
    """Every choice turns out to be slow; the fastest of them is used in the end.

    float16 needs error feedback, and QSGD under Adam has none: a dense step is between them.
    """
    model = ddp()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    handle = sparcml.torch.compress(model, "auto", optimizer=optimizer)
    handle._timer = Disappointing()
    used, sent = [], []
    for step in range(40):
        optimizer.zero_grad()
        loss_of(model, rank, step).backward()
        optimizer.step()
        used.append(handle.method)
        sent.append(handle.stats.bytes)
        if step == 12:
            assert "now measuring Compressed(quantize=Half()" in handle.explain()
            assert not handle.decision.final
    half, four = (
        Compressed(quantize=Half()),
        Compressed(quantize=QSGD(4), error_feedback=False),
    )
    three = sparcml.torch.recommended(optimizer)
    assert (
        used
        == [Dense()] * 8 + [half] * 9 + [Dense()] + [four] * 9 + [three] * 9 + [four] * 4
    )
    assert handle.decision.final
    assert handle.decision.method == four
    assert handle.explain().startswith(f"auto: {four}: a step takes 2e+04 ms (measured)")
    assert handle.stats.steps == 32
    steps = [after - before for before, after in pairwise(sent)]
    assert sent[7] == 0
    assert steps[8] == steps[15]  # of float16, without what was sent to compare methods
    assert steps[18] == steps[25] == steps[-1]
    assert len(model._forward_pre_hooks) == 1  # the timer is removed
    everyones = [None] * dist.get_world_size()
    dist.all_gather_object(everyones, float(model.module[0].weight.detach().sum()))
    assert len(set(everyones)) == 1


def with_a_table():
    """Its rows are tried together with the method, and travel without loss under the hook."""
    with group() as (rank, ranks):
        torch.manual_seed(0)
        table = torch.nn.EmbeddingBag(50, 150, sparse=True, mode="sum")
        inside = torch.nn.Sequential(table, torch.nn.Linear(150, 120))
        model, handle = compressed("auto", inside)
        handle._timer = SlowNetwork()
        before = table.weight.detach().clone()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in STEPS:
            optimizer.zero_grad()
            model(torch.tensor([[rank, 7]])).sum().backward()
            optimizer.step()
        assert handle._rows_used == {"0.weight": 2}
        assert model._comm_hooks
        used = torch.zeros(50, dtype=torch.bool)
        used[[*range(ranks), 7]] = True
        changed = (table.weight != before).any(1)
        torch.testing.assert_close(changed, used)


def paying_what_is_owed(rank):
    """A state that owes something is paid, even if no method is chosen."""
    model, handle = compressed(Compressed(TopK(0.01), dense_below=100))
    train(model, rank, range(2))
    owing = handle.state_dict()
    assert owing["state"]
    model, handle = compressed("auto")
    handle.load_state_dict(owing)
    handle._timer = FastNetwork()
    train(model, rank, STEPS)
    assert handle.decision.method is None
    assert model._comm_hooks
    assert not handle.state_dict()["state"]


def figures():
    with group() as (rank, ranks):
        method = Compressed(TopK(0.05), dense_below=100)
        model, handle = compressed(method)
        assert "no step" in handle.explain()
        train(model, rank)
        stats = handle.stats
        values = sum(p.numel() for p in model.parameters())
        assert stats.steps == 4
        assert stats.dense_bytes == 4 * 2 * (ranks - 1) * 4 * values // ranks
        assert 2 < stats.compression_ratio < 40
        assert 0 < stats.selected_norm < 1
        assert stats.residual_norm > 0
        assert sum(stats.buckets) == 4 * values
        assert stats.active_seconds > 0
        assert "MB" in handle.explain()
        later = train(model, rank) and handle.stats.since(stats)
        assert later.steps == 4
        assert later.bytes == handle.stats.bytes - stats.bytes
        logging(handle)
        wide = torch.nn.Sequential(torch.nn.Linear(20, 6000), torch.nn.Linear(6000, 5))
        left, handle = compressed(method, wide, leave="*")
        train(left, rank)
        assert 0.9 < handle.stats.compression_ratio < 1.1  # by the engine's own sums
        dense, handle = compressed(Dense())
        train(dense, rank)
        assert handle.stats.bytes == handle.stats.dense_bytes


class Notebook:
    """As a SummaryWriter of TensorBoard, which is not needed for it."""

    def __init__(self):
        self.rows = {}

    def add_scalar(self, tag, value, step):
        self.rows[tag] = value, step


def logging(handle):
    first, second = Notebook(), Notebook()
    handle.log(first)
    handle.log(second, step=100)  # nothing was done in between
    names = {"bytes", "compression_ratio", "residual_norm", "selected_norm", "seconds/wait"}
    assert {f"sparcml/{name}" for name in names} <= first.rows.keys()
    assert first.rows["sparcml/bytes"] == (handle.stats.bytes / 8, 8)
    assert second.rows["sparcml/bytes"] == (0, 100)
