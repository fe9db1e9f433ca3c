"""docs/memory.md states what each method keeps and uses; both are measured here."""

import gc
import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml import aggregate, buffer_pool, quantize, sparsify

PAGE = Path(__file__).parents[2] / "docs" / "memory.md"
ROW = re.compile(r"^\| `(.*?)` \| ([\d.]+) \| .* \| ([\d.]+) \|$", re.MULTILINE)
NAMES = vars(aggregate) | vars(quantize) | vars(sparsify)
SIDE, RANKS = 1000, 2


def measured(method):
    """Return bytes per value: of the state, and of everything else but the gradient."""

    def train(comm):
        rng, state = np.random.default_rng(comm.rank), method.init({})
        gradient = np.empty((SIDE, SIDE), np.float32)
        for _ in range(3):
            rng.standard_normal(out=gradient, dtype=np.float32)
            _, state = method.aggregate(comm, {"w": gradient}, state, overwrite=True)
            comm.barrier()
        return sum(array.nbytes for array in state.values())

    gc.collect()
    buffer_pool.DEFAULT_POOL.release()
    tracemalloc.start()
    try:
        sizes = sparcml.launch(train, RANKS)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    state = sizes[0] / SIDE**2
    return state, peak / RANKS / SIDE**2 - 4 - state


@pytest.mark.parametrize(("method", "state", "work"), ROW.findall(PAGE.read_text()))
def test_bytes_per_value(method, state, work):
    for _ in range(5):  # the peaks of the ranks do not coincide each time on a busy machine
        kept, used = measured(eval(method, NAMES))
        if used >= 0.5 * float(work):
            break
    assert kept == pytest.approx(float(state), abs=0.005)
    assert 0.5 * float(work) <= used <= float(work)


def test_every_method_has_a_row():
    rows = ROW.findall(PAGE.read_text())
    named = {type(eval(method, NAMES)) for method, _, _ in rows}
    assert named == set(aggregate.METHODS.values())
