"""Starting ranks as processes that meet by themselves, and seeing how each ends.

They are forked from a process that has imported torch once, which takes seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

from sparcml.cli.launch.start import rendezvous

HERE = Path(__file__).parent
TORCHRUN = Path(sys.executable).with_name("torchrun")

_fork = multiprocessing.get_context("forkserver")
# torch._dynamo is what optimizers import when they are first used.
_fork.set_forkserver_preload(
    [
        "numpy",
        "sparcml.transport.gloo.transport",
        "sparcml.torch.ddp",
        "sparcml.torch.elastic",
        "torch._dynamo",
    ]
)


def _rank(body, arguments, environment, pipe):
    os.environ.update(environment)
    try:
        body(*arguments)
        pipe.send("finished")
    except BaseException as error:
        pipe.send(f"{type(error).__name__}: {error}")


def outcomes(
    ranks, body, *arguments, bad=None, patience=120.0, **environment
) -> list[str | None]:
    """Run body on so many ranks: what each raised, "finished", or None if it said nothing.

    Who is still silent when time is up is killed; and so is the bad rank, which may be
    stopped, soon after the others have ended.
    """
    with rendezvous(ranks) as place:
        return _outcomes(ranks, body, arguments, bad, patience, place | environment)


def _outcomes(ranks, body, arguments, bad, patience, environment):
    pipes, processes = [], []
    for rank in range(ranks):
        mine = {**environment, "RANK": str(rank), "WORLD_SIZE": str(ranks)}
        here, there = _fork.Pipe(duplex=False)
        process = _fork.Process(target=_rank, args=(body, arguments, mine, there))
        process.start()
        there.close()
        pipes.append(here)
        processes.append(process)
    said = _heard(pipes, time.monotonic() + patience, bad)
    for process, word in zip(processes, said, strict=True):
        if word is None:
            process.kill()
    for process in processes:
        process.join(10)
        assert process.exitcode is not None, f"left behind after: {said}"
    return said


def _heard(pipes, deadline, bad) -> list[str | None]:
    said: dict[Any, str | None] = {}
    while len(said) < len(pipes) and time.monotonic() < deadline:
        silent = [pipe for pipe in pipes if pipe not in said]
        if bad is not None and silent == [pipes[bad]]:
            deadline = min(deadline, time.monotonic() + 1.0)
        speaking: list[Any] = wait(silent, deadline - time.monotonic())
        for pipe in speaking:
            try:
                said[pipe] = pipe.recv()
            except EOFError:
                said[pipe] = None
    return [said.get(pipe) for pipe in pipes]


def torchrun(ranks, program, *arguments, restarts=0, timeout=200, **environment):
    """Run a program of these folders as users do.

    torchrun chooses a free port, which another process may take before rank 0 listens there:
    then the job is started again.
    """
    options = ["--nproc-per-node", str(ranks), "--standalone"]
    options += ["--max-restarts", str(restarts)]
    for _ in range(3):
        done = subprocess.run(
            [TORCHRUN, *options, HERE.parent / program, *arguments],
            capture_output=True,
            text=True,
            timeout=timeout,
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        )
        if "EADDRINUSE" not in done.stderr:
            break
    return done
