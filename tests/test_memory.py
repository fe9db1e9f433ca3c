"""Pooled arrays: as NumPy's own, never two in one place, and never more than the bound."""

import gc
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparcml
from sparcml import buffer_pool
from sparcml.buffer_pool import (
    DEFAULT_POOL,
    LARGE,
    SLACK,
    BufferPool,
    _PooledBuffer,
    _rounded,
)
from sparcml.kernels import _core

BYTE = np.dtype(np.uint8)


def array(pool, nbytes=LARGE):
    return np.asarray(_PooledBuffer(pool, nbytes, BYTE))


def address(a):
    return a.__array_interface__["data"][0]


def books(pool):
    pool.update_counts()
    return pool.used, pool.unused


@pytest.mark.parametrize("dtype", [np.uint8, np.uint32, np.float32, np.float64])
@pytest.mark.parametrize("nbytes", [0, 8, LARGE - 8, LARGE, LARGE + 8, 3 * LARGE])
def test_arrays_are_as_those_of_numpy(nbytes, dtype):
    count = nbytes // np.dtype(dtype).itemsize
    new = buffer_pool.empty(count, dtype)
    assert (new.shape, new.dtype, new.nbytes) == ((count,), dtype, nbytes)
    assert new.flags.writeable
    assert new.flags.aligned
    assert new.flags.c_contiguous
    assert isinstance(new.base, _PooledBuffer) == (nbytes >= LARGE)
    np.testing.assert_array_equal(
        buffer_pool.full(count, 7, dtype), np.full(count, 7, dtype)
    )
    every_other = np.arange(2 * count, dtype=dtype)[::2]
    np.testing.assert_array_equal(buffer_pool.copy(every_other), every_other)
    parts = [every_other, every_other[:0], every_other[:9]]
    np.testing.assert_array_equal(buffer_pool.concatenate(parts), np.concatenate(parts))


def test_memory_is_used_again_once_nobody_refers_to_it():
    pool = BufferPool()
    first = array(pool)
    view = first[100:200].view(np.uint32)
    view[:] = 5
    where = address(first)
    del first
    assert books(pool) == (LARGE, 0)
    other = array(pool)
    other.fill(9)
    assert address(other) != where
    assert (view == 5).all()
    del view
    assert books(pool) == (LARGE, LARGE)
    assert address(array(pool)) == where


@pytest.mark.parametrize(
    "wrap", [memoryview, lambda a: pytest.importorskip("torch").from_numpy(a)]
)
def test_others_that_look_at_an_array_keep_it(wrap):
    pool = BufferPool()
    seen = wrap(array(pool))
    assert books(pool) == (LARGE, 0)
    array(pool).fill(1)
    assert books(pool) == (LARGE, LARGE)
    del seen
    assert books(pool) == (0, 2 * LARGE)


def test_a_pickled_array_is_a_copy():
    mine = buffer_pool.full(LARGE, 3, np.uint8)
    back = pickle.loads(pickle.dumps(mine))
    np.testing.assert_array_equal(back, mine)
    assert not np.shares_memory(back, mine)
    assert not isinstance(back.base, _PooledBuffer)


@given(st.integers(0, 2**40))
def test_little_is_lost_by_rounding(nbytes):
    size = _rounded(nbytes)
    assert nbytes <= size <= nbytes * 1.125
    assert _rounded(size) == size


actions = st.one_of(
    st.tuples(st.just("take"), st.integers(1, 3000)),
    st.tuples(st.just("put"), st.integers(0, 50)),
    st.tuples(st.just("release"), st.just(0)),
)


@given(st.lists(actions, max_size=60))
def test_the_books_are_those_of_a_simple_model(steps):
    """The newest of a size is taken; the oldest of all goes, until the bound holds."""
    pool, peak = BufferPool(), 0
    held: list[tuple[np.ndarray, bool]] = []  # and whether it will be kept
    free: list[tuple[int, int]] = []  # size, address
    for action, number in steps:
        if action == "take":
            new = array(pool, number)
            assert not any(np.shares_memory(new, other) for other, _ in held)
            sizes = [size for size, _ in free]
            if _rounded(number) in sizes:
                at = len(sizes) - 1 - sizes[::-1].index(_rounded(number))
                assert free.pop(at)[1] == address(new)
            held.append((new, True))
            used = sum(_rounded(a.nbytes) for a, _ in held)
            peak = max(peak, used)
            while free and used + sum(size for size, _ in free) > SLACK * peak:
                free.pop(0)
            del new
        elif action == "put" and held:
            old, kept = held.pop(number % len(held))
            if kept:
                free.append((_rounded(old.nbytes), address(old)))
            del old
        elif action == "release":
            pool.release()
            held, free = [(a, False) for a, _ in held], []
            peak = sum(_rounded(a.nbytes) for a, _ in held)
        want = sum(_rounded(a.nbytes) for a, _ in held), sum(size for size, _ in free)
        assert books(pool) == want
        assert pool.peak == peak
        assert pool.used + pool.unused <= SLACK * pool.peak


@pytest.mark.parametrize("nbytes", [2**62, 2**63, 2**80])
def test_a_request_that_fails_changes_nothing(nbytes):
    pool = BufferPool()
    mine, other = array(pool), array(pool)
    del other
    with pytest.raises((MemoryError, ValueError)):
        array(pool, nbytes)
    assert books(pool)[0] == LARGE
    assert pool.peak <= 2 * LARGE
    if nbytes == 2**62:
        assert books(pool) == (LARGE, 0)  # it was given back before giving up
    del mine
    assert books(pool)[0] == 0


def test_threads_never_share_a_block():
    pool, wrong = BufferPool(), []

    def body(me):
        rng = np.random.default_rng(me)
        held = []
        for _ in range(200):
            held.append(array(pool, int(rng.integers(1, 5)) * 4096))
            held[-1].fill(me)
            if len(held) > 4:
                old = held.pop(int(rng.integers(5)))
                wrong.extend(old[old != me])
            if rng.random() < 0.01:
                pool.release()

    threads = [threading.Thread(target=body, args=(me,)) for me in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    used, unused = books(pool)
    assert used == 0
    assert unused <= SLACK * pool.peak


def test_leases_may_end_inside_any_call():
    """The collector runs all the time, and finds arrays of ever new sizes in cycles."""
    pool = BufferPool()
    before = gc.get_threshold()
    gc.set_threshold(1, 1, 1)
    try:
        for nbytes in range(1000, 3000, 10):
            cycle = [array(pool, nbytes)]
            cycle.append(cycle)
            del cycle
            array(pool, 5000 - nbytes)
            if nbytes % 700 == 0:
                pool.release()
    finally:
        gc.set_threshold(*before)
    gc.collect()
    used, unused = books(pool)
    assert used == 0
    assert unused == sum(
        block.nbytes for stack in pool._free.values() for _, block in stack
    )


def run(program):
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_forked_process_does_not_wait_for_threads_it_does_not_have():
    run("""
import os, signal, threading
from sparcml import buffer_pool
mine = buffer_pool.full(1 << 20, 1, "u1")
buffer_pool.empty(1 << 20, "u1")
holding, done = threading.Event(), threading.Event()
def hold():
    with buffer_pool.DEFAULT_POOL._lock:
        holding.set()
        done.wait()
threading.Thread(target=hold).start()
holding.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    again = buffer_pool.full(1 << 20, 2, "u1")
    os._exit(not (mine.all() and again.all() and buffer_pool.DEFAULT_POOL.unused == 0))
done.set()
raise SystemExit(os.waitpid(child, 0)[1])
""")


def test_an_interpreter_ends_in_the_midst_of_it():
    run("""
import faulthandler, sys, threading, time
from sparcml import buffer_pool
faulthandler.dump_traceback_later(30, exit=True)
sys.mine = buffer_pool.empty(1 << 20, "u1")  # what lives there ends last
held = threading.Event()
def use():
    while True:
        buffer_pool.empty(1 << 20, "u1")
def hold():
    with buffer_pool.DEFAULT_POOL._lock:
        held.set()
        time.sleep(100)
for body in (use, use, hold):
    threading.Thread(target=body, daemon=True).start()
held.wait()
""")


def test_closing_gives_back_what_is_unused_and_others_go_on():
    def body(comm):
        x = np.arange(1, 100_001, dtype=np.float32)
        with comm.duplicate() as other:
            first = other.allreduce(x, algorithm="sharded")
            comm.barrier()
        if comm.rank == 0:  # there is another one, which may need it
            assert books(DEFAULT_POOL)[1] > 0
        comm.barrier()
        again = comm.allreduce(x, algorithm="sharded")
        np.testing.assert_array_equal(first, comm.size * x)
        np.testing.assert_array_equal(again, first)
        comm.close()
        return again

    results = sparcml.launch(body, 3)
    assert isinstance(results[0], np.ndarray)
    del results
    gc.collect()
    assert books(DEFAULT_POOL)[1] == 0


@pytest.mark.parametrize("nbytes", [1 << 15, (1 << 15) + 1, 400_000, (1 << 20) - 1])
def test_memory_of_messages_is_used_again_once_nobody_refers_to_it(nbytes):
    first = np.frombuffer(_core.message_memory(nbytes), np.uint8)
    assert first.nbytes == nbytes
    assert first.flags.writeable
    assert address(first) % 64 == 0
    view, where = first[100:200], address(first)
    view[:] = 5
    del first
    other = np.frombuffer(_core.message_memory(nbytes), np.uint8)
    other.fill(9)
    assert not np.shares_memory(other, view)
    assert (view == 5).all()
    del view
    assert address(np.frombuffer(_core.message_memory(nbytes), np.uint8)) == where
    _core.release_messages()


def test_unused_memory_of_messages_is_bounded_and_threads_never_share_it():
    wrong = []

    def body(me):
        rng, held = np.random.default_rng(me), []
        for _ in range(300):
            nbytes = int(rng.integers(1, 400)) * 4096
            held.append(np.frombuffer(_core.message_memory(nbytes), np.uint8))
            held[-1].fill(me)
            if len(held) > 4:
                old = held.pop(int(rng.integers(5)))
                wrong.extend(old[old != me])

    threads = [threading.Thread(target=body, args=(me,)) for me in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    blocks = [np.frombuffer(_core.message_memory(1 << 20), np.uint8) for _ in range(40)]
    blocks.clear()
    assert _core.release_messages() <= 16 << 20  # of 40 MiB
    assert _core.release_messages() == 0
