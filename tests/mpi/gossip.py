"""Decentralized training on some ranks: started by test_gossip.py.

usage: gossip.py FOLDER [torch], which writes the digests of each rank, or gossip.py dies
"""

import hashlib
import os
import signal
import sys
from pathlib import Path

import numpy as np

import sparcml
from sparcml import decentralized as dec
from sparcml.costs import ONE_MACHINE
from sparcml.decentralized.methods import choco

SIZE, STEPS, BAD = 3000, 5, 2


def methods(n):
    return (
        dec.DPSGD(dec.ring(n), momentum=0.5),
        dec.Choco(dec.ring(n), sparcml.TopK(0.05), gamma=0.1),
        dec.PushSum(dec.one_peer_exponential(n)),
    )


def steps(comm, method):
    """Yield model and state of this rank after each step."""
    rng = np.random.default_rng(comm.rank)
    target = rng.standard_normal(SIZE).astype(np.float32)
    x = np.ones(SIZE, np.float32)
    state = method.init(x)
    for _ in range(STEPS):
        begun = method.begin(comm, x, state)
        x, state = method.step(comm, x, x - target, state, lr=0.1, begun=begun)
        yield x, state


def digests(comm):
    """Return one digest of the last model and state per method."""
    found = []
    for method in methods(comm.size):
        *_, (x, state) = steps(comm, method)
        distance = method.consensus_distance(comm, x)
        parts = (x, method.mean(comm, x, state), np.array(distance), *state.values())
        bits = b"".join(np.asarray(part).tobytes() for part in parts)
        found.append(hashlib.sha256(bits).hexdigest())
    return found


def torch_digests(comm):
    """The same with a model of torch, on the communicator of the launcher."""
    import torch

    torch.set_num_threads(1)
    draw = torch.Generator().manual_seed(comm.rank)  # threads share that of torch
    module = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.uniform_(-1, 1, generator=draw)
    optimizer = torch.optim.Adam(module.parameters(), lr=0.1)
    method = dec.DPSGD(dec.ring(comm.size))
    own = None if comm.engine == "mpi" else comm
    model = sparcml.torch.Decentralized(module, optimizer, method, comm=own)
    for _ in range(STEPS):
        optimizer.zero_grad()
        model(torch.randn(8, 5, generator=draw)).square().mean().backward()
        optimizer.step()
    tensors = [*module.state_dict().values(), *model.averaged().state_dict().values()]
    model.close()
    bits = b"".join(tensor.numpy().tobytes() for tensor in tensors)
    return [hashlib.sha256(bits).hexdigest()]


def die(comm):
    for number, _ in enumerate(steps(comm, methods(comm.size)[0])):
        if number == 2 and comm.rank == BAD:
            os.kill(os.getpid(), signal.SIGKILL)


def treat_models_as_large():
    """Send messages in turn, and mix during the exchange, as with models of megabytes."""
    from sparcml.transport.mpi import MpiTransport

    MpiTransport.in_turn_bytes = 1000
    choco.OVERLAPPED = 0


if __name__ == "__main__":
    treat_models_as_large()
    os.write(1, f"pid {os.getpid()}\n".encode())
    with sparcml.world() as world:
        world._set_network(ONE_MACHINE)  # auto chooses as on threads
        if sys.argv[1] == "dies":
            die(world)
        else:
            work = torch_digests if sys.argv[2:] == ["torch"] else digests
            Path(sys.argv[1], str(world.rank)).write_text(" ".join(work(world)))
