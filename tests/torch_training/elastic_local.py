"""Local training that torchrun starts again, from a consolidated state.

It is given a folder. In the first attempt the state is saved in the middle of a round, and rank 1
kills itself a step later. The second attempt resumes from the file, and once more without a kill
between the two: both must end with the same bits.
"""

import os
import signal
import sys
from pathlib import Path

import torch
from torch import distributed as dist

from sparcml.torch import SparseLoCo
from tests.torch_training.models import mlp, same
from tests.torch_training.optimizing import parameters, trained

SAVED, STEPS = 5, 9  # rounds of 3 steps


def main(folder: Path) -> None:
    attempt = os.environ["TORCHELASTIC_RESTART_COUNT"]
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), ranks)
    dist.init_process_group(
        "gloo", store=dist.PrefixStore(attempt, store), rank=rank, world_size=ranks
    )
    file = folder / "state.pt"
    if attempt == "0":
        dies_in_mid_round(rank, file)
    ends = [resumed(rank, file) for _ in range(2)]
    same(*ends)
    flat = torch.cat([p.flatten() for p in ends[0].values()])
    everyone = [torch.empty_like(flat) for _ in range(ranks)]
    dist.all_gather(everyone, flat)
    assert all(torch.equal(flat, other) for other in everyone)
    print(f"rank {rank} has resumed", flush=True)
    dist.barrier()  # a rank that exits while another uses the group makes gloo abort
    dist.destroy_process_group()


def dies_in_mid_round(rank: int, file: Path) -> None:
    """Save the state of all ranks after 5 steps, and end after 7."""
    module, optimizer, training = started()
    trained(module, rank, optimizer, range(SAVED))
    mean = parameters(training.averaged())
    state = training.state_dict(consolidate=True)
    if rank == 0:
        torch.save([state, mean], file.with_suffix(".part"))
        file.with_suffix(".part").rename(file)
    dist.barrier()
    trained(module, rank, optimizer, range(SAVED, SAVED + 2))
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    trained(module, rank, optimizer, range(SAVED + 2, STEPS))  # the others wait for it
    raise AssertionError("an exchange was completed without rank 1")


def resumed(rank: int, file: Path) -> dict[str, torch.Tensor]:
    state, mean = torch.load(file, weights_only=True)
    module, optimizer, training = started()
    with training:
        training.load_state_dict(state)
        assert training.steps == SAVED
        same(parameters(module), mean)  # also the steps since the last exchange
        trained(module, rank, optimizer, range(SAVED, STEPS))
    return dict(parameters(module))


def started() -> tuple[torch.nn.Module, torch.optim.Optimizer, SparseLoCo]:
    module = mlp()
    optimizer = torch.optim.AdamW(module.parameters(), lr=0.01)
    return module, optimizer, SparseLoCo(module, optimizer, sync_every=3, k=16, chunk=256)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
