"""The checks on torch.distributed; torchrun starts it as `laws_on_torch.py FILE`."""

import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import distributed as dist

sys.path.insert(0, str(Path(__file__).parents[2]))

import sparcml
from sparcml import decentralized as dec
from sparcml.collectives.compiled import ALGORITHMS
from sparcml.transport.gloo.frames import CAPACITY
from tests import rosters, waiting
from tests.engine_checks import law_checks, run_checks


def world(comm):
    assert comm.engine == "torch"
    assert not dist.is_initialized()


def ops_of(algorithm):
    # The engine's own allreduce has its own operations; for others, two suffice.
    return rosters.OPS if algorithm in ("auto", "native") else ("sum", "max")


def messages_of_any_size(comm):
    if comm.size == 1:
        return
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    for size in (0, 1, 5000, CAPACITY - 1, CAPACITY, CAPACITY + 1, 10_000_000):
        message = np.arange(size).astype(np.uint8)
        message.flags.writeable = False
        received = comm._transport.exchange(to, message, source)
        np.testing.assert_array_equal(received, message)


def many_messages_in_flight(comm):
    """More messages than the window holds, in both directions, before any receive."""
    transport = comm._transport
    peers = [p for p in range(comm.size) if p != comm.rank]
    sizes = [(7 * i) % 3000 for i in range(300)]
    sending = [
        transport.isend(p, np.full(n, comm.rank, np.uint8)) for n in sizes for p in peers
    ]
    for n in sizes:
        for p in peers:
            assert transport.receive(p).tolist() == [p] * n
    for pending in sending:
        pending.wait()


def compiled_collectives(comm):
    """They equal their definitions, also if only some ranks run them."""

    def bits(compiled):
        with comm.duplicate() as some:
            if comm.rank not in compiled:
                some._session.use_python()
            found = []
            for algorithm, entries, size in product(ALGORITHMS, (3, 2000), (5000, 1 << 20)):
                rng = np.random.default_rng((comm.rank, entries, size))
                indices = np.sort(rng.choice(size, entries, replace=False))
                values = rng.standard_normal(entries * 16, np.float32)
                x = sparcml.Stream(16 * size, indices, values, block=16)
                y = some.allreduce(x, algorithm=algorithm)
                found.append((y.is_dense, y.indices.tobytes(), y.values.tobytes()))
            some.barrier()
            return found, some.stats.messages, some.stats.bytes

    defined = bits(())
    assert bits(range(comm.size)) == defined
    assert bits(range(0, comm.size, 2)) == defined


def groups(comm):
    other = comm.duplicate()
    group = comm.split(comm.rank % 2, key=-comm.rank)
    want = sum(r for r in range(comm.size) if r % 2 == comm.rank % 2)
    for algorithm in ("auto", "native"):
        own = np.array([comm.rank], np.float64)
        assert group.allreduce(own, algorithm=algorithm)[0] == want
    assert other.allreduce(np.array([1], np.float32))[0] == comm.size
    group.close()
    other.close()
    assert comm.duplicate().allreduce(np.array([1], np.float32))[0] == comm.size


def tensors(comm):
    x = torch.zeros(5, 40)
    x[:, comm.rank] = 2
    result = comm.allreduce(x)
    assert result.shape == x.shape
    assert result.device == x.device
    assert result.sum() == 10 * comm.size


def torch_names(comm):
    """Operations of torch.distributed are accepted."""
    x = torch.tensor([comm.rank + 1.0])
    for op, name in (
        (dist.ReduceOp.SUM, "sum"),
        (dist.ReduceOp.AVG, "mean"),
        (dist.ReduceOp.MIN, "min"),
        (dist.ReduceOp.MAX, "max"),
        (dist.ReduceOp.PRODUCT, "prod"),
    ):
        assert comm.allreduce(x, op) == comm.allreduce(x, name)
        assert comm.allreduce(0.5, op) == comm.allreduce(0.5, name)
    with pytest.raises(ValueError, match=r"op must be one of sum, .* got 'band'"):
        comm.allreduce(x, dist.ReduceOp.BAND)


def integer_tensors(comm):
    for dtype in (torch.int32, torch.int64):
        x = torch.full((4, 2), comm.rank, dtype=dtype)
        result = comm.allreduce(x, "max")
        assert (result.dtype, result.shape) == (dtype, x.shape)
        assert result.unique().tolist() == [comm.size - 1]
        rows = torch.sparse_coo_tensor([[comm.rank]], [[1, 2]], (9, 2), dtype=dtype)
        assert comm.allreduce(rows).to_dense().sum() == 3 * comm.size
    with pytest.raises(TypeError, match=r"int32 or int64, got torch\.uint8"):
        comm.allreduce(x.byte())


def tensor_outputs(comm):
    out = torch.zeros(comm.size, 3)
    assert comm.allgather(torch.full((3,), float(comm.rank)), out=out) is out
    assert out[:, 0].tolist() == list(range(comm.size))


def neighbor_tensors(comm):
    x = torch.full((2, 3), float(comm.rank))
    result = comm.neighbor_allreduce(x, dec.complete(comm.size))
    assert result.shape == x.shape
    assert result.unique().tolist() == pytest.approx([(comm.size - 1) / 2])
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    peers = ([to], [source]) if comm.size > 1 else ([], [])
    parts, seen = comm.neighbor_exchange(x, *peers, sparcml.Half(), return_seen=True)
    assert torch.equal(seen, x)
    assert all(torch.equal(part, torch.full((2, 3), float(r))) for r, part in parts.items())


def user_group(comm):
    """The user's own messages do not mix with ours, and their subgroups work."""
    if comm.size == 1:
        return
    dist.init_process_group("gloo")
    ours = sparcml.world()
    to, source = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
    receiving = dist.irecv(received := torch.zeros(3), source)
    sending = dist.isend(torch.full((3,), float(comm.rank)), to)  # lost without a reference
    assert ours.allreduce(np.ones(7, np.float32)).tolist() == [comm.size] * 7
    receiving.wait()
    sending.wait()
    assert received.tolist() == [source] * 3
    members = list(range(1, comm.size))
    group = dist.new_group(members)
    if comm.rank in members:
        with sparcml.from_group(group) as part:
            assert part.rank == members.index(comm.rank)
            assert part.allreduce(np.ones(7, np.float32))[0] == len(members)
    dist.barrier()
    dist.destroy_process_group()
    assert ours.allreduce(np.ones(7, np.float32)).tolist() == [comm.size] * 7
    ours.close()


def second_world(comm):
    del comm
    with sparcml.world() as other:
        assert other.allreduce(np.array([1], np.float32))[0] == other.size


CHECKS = {
    "world": world,
    **law_checks(ops_of),
    "compiled_collectives": compiled_collectives,
    "groups": groups,
    "tensors": tensors,
    "torch_names": torch_names,
    "tensor_outputs": tensor_outputs,
    "integer_tensors": integer_tensors,
    "neighbor_tensors": neighbor_tensors,
    "messages_of_any_size": messages_of_any_size,
    "many_messages_in_flight": many_messages_in_flight,
    "user_group": user_group,
    "second_world": second_world,
    **waiting.CHECKS,
}


# Under torchrun only the start differs.
UNDER_TORCHRUN = {
    name: check
    for name, check in CHECKS.items()
    if not name.startswith(
        ("same_bits", "declared_cost", "integers", "conserves", "compiled")
    )
    and (not name.startswith("same_sum") or name == "same_sum-auto")
}


def main(path, checks=CHECKS):
    with sparcml.world() as comm:
        run_checks(comm, checks, path)


if __name__ == "__main__":
    main(Path(sys.argv[1]), UNDER_TORCHRUN)
