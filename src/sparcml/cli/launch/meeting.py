"""Where ranks of torch find each other on this machine."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def meeting(ranks: int) -> Iterator[dict[str, str]]:
    """What tells so many ranks of one machine where to meet.

    The port stays ours while they run: bound, but without a listener, so that nobody is
    given it and rank 0 can listen there (both sides allow the address to be used again).
    """
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(held.getsockname()[1]),
            "LOCAL_WORLD_SIZE": str(ranks),
        }
