"""A job that torchrun starts again: the second attempt goes on from the files of the first.

Attempts meet under names of their own, as docs/torch.md has it. It is given a folder. Rank 1
kills itself in the first attempt, in the middle of a step.
"""

import os
import signal
import sys
from pathlib import Path

import torch
from torch import distributed as dist

from sparcml import QSGD, Compressed, TopK
from tests.torch_training.models import compressed, same, train, weights

SAVED, STEPS = 3, 6
METHOD = Compressed(TopK(0.05), QSGD(bits=4), dense_below=100)


def main(folder: Path) -> None:
    again = int(os.environ["TORCHELASTIC_RESTART_COUNT"]) > 0
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), ranks)
    attempt = dist.PrefixStore(os.environ["TORCHELASTIC_RESTART_COUNT"], store)
    dist.init_process_group("gloo", store=attempt, rank=rank, world_size=ranks)
    model, handle = compressed(METHOD)
    mine = folder / f"{rank}.pt"
    if again:
        kept, state = torch.load(mine, weights_only=True)
        model.load_state_dict(kept)
        handle.load_state_dict(state)
    else:
        train(model, rank, range(SAVED), lr=0.01)
        torch.save([model.state_dict(), handle.state_dict()], mine)
        if rank == 1:
            first = next(model.parameters())
            first.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL))
    train(model, rank, range(SAVED, STEPS), lr=0.01)
    whole, _ = compressed(METHOD)
    same(weights(model), train(whole, rank, range(STEPS), lr=0.01))
    print(f"rank {rank} is where it would have been", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
