"""The laws on torch.distributed: run by test_laws.py."""

import sys
from pathlib import Path

import numpy as np
import torch
from torch import distributed as dist

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
from tests import laws, rosters
from tests.aggregate import gradients


def roster(comm):
    for algorithm in ("auto", *rosters.LOSSLESS):
        # The engine's own sums know operations; messages of others do not.
        ops = (
            ("sum", "min", "max", "prod")
            if algorithm in ("auto", "native")
            else ("sum", "max")
        )
        for case in laws.CASES:
            for op in ops:
                laws.same_sum(comm, algorithm, case, op)
    for algorithm in rosters.LOSSY:
        for case in laws.ROOM_FOR_ALL:
            laws.same_sum(comm, algorithm, case)
        for case in laws.CASES:
            laws.largest_sums(comm, algorithm, case)
    for algorithm, op in rosters.REDUCTIONS:
        laws.same_bits(comm, algorithm, op)
    for algorithm in rosters.COUNTED:
        for case in laws.CASES:
            laws.declared_cost(comm, algorithm, case)
    for name in rosters.METHODS:
        gradients.conserves(comm, name)


def messages_of_any_size(comm):
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (0, 1, 1006, 1007, 1008, 5000, 10_000_000):
        message = np.arange(size).astype(np.uint8)
        message.flags.writeable = False
        got = comm._transport.exchange(to, message, source)
        np.testing.assert_array_equal(got, message)


def many_messages_on_their_way(comm):
    """More than fit in the window, both ways, before anybody receives."""
    transport = comm._transport
    peers = [p for p in range(comm.size) if p != comm.rank]
    sizes = [(7 * i) % 3000 for i in range(300)]
    leaving = [
        transport.isend(p, np.full(n, comm.rank, np.uint8)) for n in sizes for p in peers
    ]
    for n in sizes:
        for p in peers:
            assert transport.receive(p).tolist() == [p] * n
    for pending in leaving:
        pending.wait()


def groups(comm):
    other = comm.duplicate()
    group = comm.split(comm.rank % 2, key=-comm.rank)
    want = sum(r for r in range(comm.size) if r % 2 == comm.rank % 2)
    for algorithm in ("auto", "native"):
        mine = np.array([comm.rank], np.float64)
        assert group.allreduce(mine, algorithm=algorithm)[0] == want
    assert other.allreduce(np.array([1], np.float32))[0] == comm.size
    group.close()
    other.close()
    assert comm.duplicate().allreduce(np.array([1], np.float32))[0] == comm.size


def tensors(comm):
    x = torch.zeros(5, 40)
    x[:, comm.rank] = 2
    total = comm.allreduce(x)
    assert total.shape == x.shape
    assert total.device == x.device
    assert total.sum() == 10 * comm.size


def the_users_group(comm):
    """Their messages on the same ranks go on while ours do, and their sub-groups work."""
    dist.init_process_group("gloo")
    ours = sparcml.world()
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    theirs = dist.irecv(mine := torch.zeros(3), source)
    leaving = dist.isend(torch.full((3,), float(comm.rank)), to)  # lost if not kept
    assert ours.allreduce(np.ones(7, np.float32)).tolist() == [comm.size] * 7
    theirs.wait()
    leaving.wait()
    assert mine.tolist() == [source] * 3
    some = list(range(1, comm.size))
    group = dist.new_group(some)
    if comm.rank in some:
        with sparcml.from_group(group) as part:
            assert part.rank == some.index(comm.rank)
            assert part.allreduce(np.ones(7, np.float32))[0] == len(some)
    dist.barrier()
    dist.destroy_process_group()
    assert ours.allreduce(np.ones(7, np.float32)).tolist() == [comm.size] * 7
    ours.close()


def main():
    with sparcml.world() as comm:
        assert comm.engine == "torch"
        assert not dist.is_initialized()
        roster(comm)
        groups(comm)
        tensors(comm)
        if comm.size > 1:
            messages_of_any_size(comm)
            many_messages_on_their_way(comm)
            the_users_group(comm)
    with sparcml.world() as comm:
        assert comm.allreduce(np.array([1], np.float32))[0] == comm.size
    if comm.rank == 0:
        print(f"all laws hold on {comm.size} ranks")


if __name__ == "__main__":
    main()
