"""Load states that `handle.state_dict()` gave in version 0.1: run by test_files.py.

With `--record` the states are written instead.
"""

import os
import socket
import sys
from pathlib import Path

import torch
from torch import distributed as dist

import sparcml

FILES = Path(__file__).with_name("files")
METHODS = {
    "topk": sparcml.Compressed(sparcml.TopK(0.02), dense_below=100),
    "dgc": sparcml.DGC(ratio=0.02, dense_below=100),
}


def handle(name):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(40, 50), torch.nn.Linear(50, 3))
    ddp = torch.nn.parallel.DistributedDataParallel(model)
    return ddp, sparcml.torch.compress(ddp, METHODS[name])


with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), RANK="0", WORLD_SIZE="1")
dist.init_process_group("gloo")
for name in METHODS:
    file = FILES / f"torch-{name}.pt"
    ddp, held = handle(name)
    if "--record" in sys.argv:
        x = torch.randn(64, 40)
        for _ in range(3):
            ddp.zero_grad()
            ddp(x).square().mean().backward()
        torch.save(held.state_dict(), file)
        continue
    kept = torch.load(file)
    held.load_state_dict(kept)
    again = held.state_dict()
    assert again["step"] == kept["step"] == 3
    assert kept["state"].keys() == again["state"].keys(), again["state"].keys()
    for key, tensor in kept["state"].items():
        assert torch.equal(again["state"][key], tensor), key
    assert any(tensor.count_nonzero() for tensor in kept["state"].values())
    held.close()
    print(f"{name} loaded")
dist.destroy_process_group()
