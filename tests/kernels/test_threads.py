"""Kernels on several threads: the same bits for any number, also after a fork."""

import os
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from sparcml import kernels
from sparcml.kernels import selection
from sparcml.kernels.reduction import Velocity
from sparcml.kernels.threads import default_threads, using_threads
from sparcml.quantize import NUQSGD, QSGD, TernGrad
from tests.kernels.reference import selection as reference

from .thread_counts import assert_equal, on_all


@pytest.mark.parametrize(
    "quantizer",
    [QSGD(4), QSGD(8, bucket=100), QSGD(2, bucket=64, norm="l2"), NUQSGD(4), TernGrad()],
    ids=str,
)
def test_quantizers_have_the_same_bits(quantizer):
    values = np.random.default_rng(1).standard_normal((1 << 19) + 77).astype(np.float32)

    def work():
        code = quantizer.encode(values, seed=5)
        return [code.data, quantizer.decode(code)]

    assert_equal(on_all(work))


def vectors():
    """Return long vectors: random, constant, large at one end, with NaN, few distinct values."""
    rng = np.random.default_rng(2)
    size = (1 << 19) + 777
    x = rng.standard_normal(size).astype(np.float32)
    yield "random", x
    yield "constant", np.ones(size, np.float32)
    yield "large at the end", x * np.where(np.arange(size) > size - 9000, 1e6, 1)
    yield "NaN", np.where(rng.random(size) < 1e-4, np.nan, x).astype(np.float32)
    yield "few values", rng.integers(-3, 4, size).astype(np.float64)


VECTORS = dict(vectors())


@pytest.mark.parametrize("k", [0, 1, 5000, 200_000])
@pytest.mark.parametrize("name", VECTORS)
def test_selection_has_the_same_bits(name, k):
    x = VECTORS[name]
    results = on_all(lambda: selection.top_k(x, k))
    assert_equal(results)
    assert_equal([results[0], reference.top_k(x, k)])


@pytest.mark.parametrize("velocity", [False, True], ids=["", "momentum"])
@pytest.mark.parametrize("name", VECTORS)
@pytest.mark.parametrize("select", ["top_k", "bucket_top_k", "buckets of 100", "add"])
def test_selection_with_residual_has_the_same_bits(select, name, velocity):
    gradient = VECTORS[name]
    residual = np.random.default_rng(3).standard_normal(gradient.size)
    residual = residual.astype(gradient.dtype)

    def work():
        out, u = residual.copy(), np.ones_like(gradient)
        found: tuple[Any, ...]
        given = Velocity(u, u, 0.9, nesterov=True) if velocity else None
        if select == "top_k":
            found = selection.top_k_with_residual(out, gradient, 5000, out, 0.9, given)
        elif select == "bucket_top_k":
            found = selection.bucket_top_k_with_residual(
                out, gradient, 4, 512, out, 0.9, given
            )
        elif select == "buckets of 100":
            found = selection.bucket_top_k_with_residual(
                out, gradient, 30, 100, out, 0.9, given
            )
        else:
            found = (selection.add_residual(out, gradient, out, 0.9, given),)
        return [*found, out, u]

    assert_equal(on_all(work))


@pytest.mark.parametrize("bucket", [100, 512, 4096, 300_000])
def test_buckets_have_the_same_entries(bucket):
    x = VECTORS["random"]
    results = on_all(lambda: selection.bucket_top_k(x, 7, bucket))
    assert_equal(results)
    assert_equal([results[0], reference.bucket_top_k(x, 7, bucket)])


def encoded(values):
    return QSGD(4).encode(values, seed=1).data.tobytes()


def test_callers_on_several_threads_and_after_a_fork():
    values = np.random.default_rng(2).standard_normal(1 << 18).astype(np.float32)
    wanted = encoded(values)
    found: list[bytes] = []

    def work():
        found.extend(encoded(values) for _ in range(20))

    with using_threads(3):
        callers = [threading.Thread(target=work) for _ in range(3)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        assert len(found) == 60
        assert set(found) == {wanted}
        child = os.fork()
        if child == 0:
            same = encoded(values) == wanted
            os._exit(0 if same else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def test_default_is_the_usable_processors_over_the_local_ranks(monkeypatch):
    for name in ("SPARCML_THREADS", "LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS"):
        monkeypatch.delenv(name, raising=False)
    usable = len(os.sched_getaffinity(0))
    assert default_threads() == usable
    monkeypatch.setenv("LOCAL_WORLD_SIZE", str(usable))
    assert default_threads() == 1
    monkeypatch.setenv("SPARCML_THREADS", "7")
    assert default_threads() == 7
    monkeypatch.setenv("SPARCML_THREADS", "all")
    with pytest.raises(ValueError, match="SPARCML_THREADS must be a positive integer"):
        default_threads()
    with pytest.raises(ValueError, match="at least 1"):
        kernels.set_threads(0)


def test_affinity_limits_the_default():
    code = """
import os
os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
import sparcml
from sparcml import kernels
print(kernels.threads())
"""
    clean = {"SPARCML_THREADS": "", "LOCAL_WORLD_SIZE": "", "MPI_LOCALNRANKS": ""}
    assert python(code, **clean).stdout == "1\n"
