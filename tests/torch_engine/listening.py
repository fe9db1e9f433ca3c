"""Where the store of a job listens: a program that each rank runs."""

import os
from pathlib import Path

from torch import distributed as dist

import sparcml

LISTENS = "0A"
LOOPBACK = "0100007F"  # 127.0.0.1, as the kernel writes it


def addresses(port):
    """Return the addresses at which somebody listens on this port."""
    lines = [
        line.split()
        for table in ("tcp", "tcp6")
        for line in Path("/proc/net", table).read_text().splitlines()[1:]
    ]
    places = [fields[1].split(":") for fields in lines if fields[3] == LISTENS]
    return {address for address, its_port in places if int(its_port, 16) == port}


def body():
    """Open a communicator, and then a process group, which shares its store."""
    with sparcml.world() as comm:
        assert comm.allreduce(1) == comm.size
        dist.init_process_group("gloo")
        dist.barrier()
        found = addresses(int(os.environ["MASTER_PORT"]))
        comm.barrier()
        dist.destroy_process_group()
    assert found == {LOOPBACK}, found
