"""The accuracy benchmark trains as DDP does, judges as it says, and resumes."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from sparcml import QSGD, Compressed, Dense, Method, TopK
from sparcml.errors import SparcmlError
from tests.torch_engine.jobs import outcomes

torch = pytest.importorskip("torch")

from accuracy import jobs, saved  # noqa: E402
from accuracy.aggregators import Aggregated, HalfMean, Mean, clip  # noqa: E402
from accuracy.judge import difference, judge, mean_and_error, table  # noqa: E402
from accuracy.ranks import RankPool, check_identical  # noqa: E402
from accuracy.roster import ROSTER, Setting, build  # noqa: E402
from accuracy.train import (  # noqa: E402
    TrainingRun,
    arrays_of,
    batches,
    optimizer_for,
    schedule,
)
from accuracy.workloads import WORKLOADS, Workload  # noqa: E402

TOPK = Compressed(TopK(0.05), algorithm="ssar_recursive_double")
SEED, RATE = 3, 0.05


def workload():
    """A GPT on the bundled chapters."""
    import gpt

    return Workload("test", lambda: gpt.task(None), "sgd", RATE, (RATE,), 16, 5)


def run_of(work, aggregator_of, rate=RATE):
    """Return a run before its first step."""
    torch.set_num_threads(1)
    task = work.task()
    torch.manual_seed(SEED)
    model = task.model()
    aggregator = aggregator_of(arrays_of(model))
    optimizer = optimizer_for(work, model, rate)
    return TrainingRun(work, task, model, optimizer, aggregator, SEED)


def trained(work, aggregator_of):
    run = run_of(work, aggregator_of)
    row = run.run()
    return {n: p.detach().clone() for n, p in run.model.named_parameters()}, row


def with_ddp(path):
    """Train the same with DDP, on each rank."""
    from torch import distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    import sparcml

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    work = workload()
    task = work.task()
    torch.manual_seed(SEED)
    model = DistributedDataParallel(task.model(), bucket_cap_mb=0.1)
    optimizer = optimizer_for(work, model, RATE)
    sparcml.torch.compress(model, TOPK, optimizer=optimizer)
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: schedule(work, step))
    for rows in batches(work, task.rows, SEED):
        optimizer.zero_grad()
        part = rows.chunk(dist.get_world_size())[dist.get_rank()]
        task.loss(model, part).backward()
        optimizer.step()
        rates.step()
    if dist.get_rank() == 0:
        torch.save(model.module.state_dict(), path)
    dist.destroy_process_group()


@pytest.mark.torch
def test_the_harness_trains_as_ddp_does(tmp_path):
    assert outcomes(2, with_ddp, tmp_path / "weights") == ["finished"] * 2
    expected = torch.load(tmp_path / "weights")
    with RankPool(2) as pool:
        weights, row = trained(workload(), lambda w: Aggregated(pool, TOPK, w))
    assert weights.keys() == expected.keys()
    for name, p in weights.items():
        assert torch.equal(p, expected[name]), name
    assert 0 < row["sent"] < 0.5 * 5 * 4 * row["values"]


def test_dense_ranks_equal_the_full_batch():
    plain, row = trained(workload(), lambda _: Mean(4))
    assert row["sent"] == 5 * 2 * 3 / 4 * 4 * row["values"]
    assert row["marks"][-1] == row["steps"] == 5
    with RankPool(4) as pool:
        ranks, other = trained(workload(), lambda w: Aggregated(pool, Dense(), w))
    half, _ = trained(workload(), lambda _: HalfMean(4))
    for name, p in plain.items():
        torch.testing.assert_close(ranks[name], p, rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(half[name], p, rtol=1e-2, atol=1e-4)
    assert other["losses"] == pytest.approx(row["losses"], rel=1e-5)
    assert other["sent"] == pytest.approx(row["sent"], rel=0.01)


def test_an_update_replaces_the_step_of_the_optimizer():
    class Updating:
        parts, returns_update, bytes_sent = 1, True, 0.0

        def aggregate(self, gradients, lr):
            assert lr == pytest.approx(RATE * schedule(work, 0))
            return {n: np.ones_like(g) for n, g in gradients[0].items()}

    work = replace(workload(), weight_decay=0.5, steps=1)
    run = run_of(work, lambda _: Updating())
    before = {n: p.detach().clone() for n, p in run.model.named_parameters()}
    run.step(torch.arange(16))
    for name, p in run.model.named_parameters():
        expected = before[name] * (1 - RATE * schedule(work, 0) * 0.5) - 1
        torch.testing.assert_close(p.detach(), expected)


def test_a_diverging_run_has_no_score():
    work = replace(workload(), steps=20)
    run = run_of(work, lambda _: Mean(2), rate=math.inf)
    row = run.run()
    assert row["score"] is None
    assert row["steps"] < 20


def test_batches_are_permutations_of_the_rows():
    work = replace(workload(), steps=7)
    seen = list(batches(work, 50, SEED))  # three per epoch
    assert [len(rows) for rows in seen] == [16] * 7
    first, second = torch.cat(seen[:3]), torch.cat(seen[3:6])
    assert len(set(first.tolist())) == len(set(second.tolist())) == 48
    assert first.tolist() != second.tolist()
    rates = [schedule(replace(work, steps=100), step) for step in range(100)]
    assert max(rates) == rates[5] == 1
    assert 0 < rates[-1] < 0.01
    assert 0 < rates[0] < 0.2


def test_gradients_are_clipped_together():
    gradient = {"a": np.full(9, 1.0, np.float32), "b": np.full(16, 1.0, np.float32)}
    clip(gradient, 10)
    assert gradient["a"][0] == 1
    clip(gradient, 1)
    assert gradient["a"] == pytest.approx(0.2)
    assert gradient["b"] == pytest.approx(0.2)


def test_ranks_compare_their_results():
    good = {"a": np.ones(3, np.float32)}
    check_identical([good, good])
    with pytest.raises(RuntimeError, match="'a' on rank 0 and rank 1"):
        check_identical([good, {"a": np.zeros(3, np.float32)}])


def test_an_error_on_one_rank_ends_all():
    with RankPool(3) as pool:
        method = Compressed(quantize=QSGD(4))
        states = [method.init({"a": (200, 200)}) for _ in range(3)]
        gradients = [{"a": np.zeros((200, 200), np.float32)} for _ in range(3)]
        gradients[1]["a"][0] = np.nan
        with pytest.raises(SparcmlError, match="rank 1: the gradient of 'a'"):
            pool.aggregate(method, gradients, states)


def test_the_roster_builds_all_methods():
    for work in WORKLOADS.values():
        assert work.batch % 16 == 0
        assert len(work.learning_rates) >= 3
        assert work.learning_rate in work.learning_rates
        for name in ROSTER:
            one, other = (build(name, Setting(work, 2, seed, 0.1)) for seed in (0, 0))
            assert type(one) is type(other)
            assert one == other or not isinstance(one, Method)


def row_of(job, score, scores=(1.0, 1.0)):
    about = {"score": score, "scores": list(scores), "marks": [200, 400], "steps": 400}
    return job.about | about | {"values": 1000, "sent": 16e3, "seconds": 1.0}


def test_differences_to_dense_are_averaged_over_seeds():
    work = WORKLOADS["gpt"]
    dense = [jobs.Job("gpt", "dense", 1, work.learning_rate, seed) for seed in range(3)]
    topk = [jobs.Job("gpt", "topk1", 2, work.learning_rate, seed) for seed in range(3)]
    rows = [row_of(job, score) for job, score in zip(dense, (2.0, 4.0, 1.0), strict=True)]
    scores = zip(topk, (2.2, 4.0, 1.2), strict=True)
    rows += [row_of(job, score, (1.5, 1.06)) for job, score in scores]
    rows += [rows[-1] | {"settings": "others", "score": 9.0}]
    rows += [rows[-1] | {"built": "TopK(0.5)", "score": 9.0}]
    plain, found = judge(rows)
    assert (plain.label, plain.difference, plain.error) == ("dense", 0, 0)
    assert found.difference == pytest.approx(-0.1)
    assert found.error == pytest.approx(0.1 / math.sqrt(3))
    assert not found.within
    assert found.worst == pytest.approx(-0.06)  # the first point is before step 300
    assert found.ratio == pytest.approx(2 * 1 / 2 * 4 * 1000 * 400 / 16e3)
    assert "-10.00 ± 5.77" in table([found])


def test_signs_and_divergence():
    accuracy, loss = WORKLOADS["fashion-mnist"], WORKLOADS["gpt"]
    assert difference(accuracy, 90.5, 90.0) == 0.5
    assert difference(loss, 1.5, 2.0) == 0.25
    assert difference(loss, None, 2.0) == -math.inf
    average, error = mean_and_error([-math.inf, 0.1])
    assert average == -math.inf
    assert math.isnan(error)
    assert math.isnan(mean_and_error([1.0])[1])


def test_rows_of_earlier_days_count_as_done(tmp_path):
    first, second = jobs.rate_jobs()[:2]
    saved.save(row_of(first, 1.0), "2.0", tmp_path)
    (path,) = tmp_path.iterdir()
    path.rename(tmp_path / "2026-01-01-accuracy.json")
    (tmp_path / "2026-01-01-other-accuracy.json").write_text("not ours")
    saved.save(row_of(second, 2.0), "2.0", tmp_path)
    assert {jobs.key_of(row) for row in saved.load(tmp_path)} == {first.key, second.key}
    saved.save(row_of(first, 3.0), "2.0", tmp_path)  # repeated: the newest counts
    scores = {row["learning_rate"]: row["score"] for row in saved.load(tmp_path)}
    assert scores == {first.learning_rate: 3.0, second.learning_rate: 2.0}
    assert json.loads((tmp_path / "2026-01-01-accuracy.json").read_text())["environment"]
