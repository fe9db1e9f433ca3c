"""Opening of idle TCP connections between machines, which show that a link is cut.

Each rank is connected to a rank of every other machine. The listening sockets are closed
once the communicator is open, and accept only peers that know the random token of the job.
`link.py` watches the connections.
"""

from __future__ import annotations

import fcntl
import logging
import os
import secrets
import selectors
import socket
import struct
import time
from contextlib import suppress
from ipaddress import IPv4Address
from typing import TYPE_CHECKING

from .bootstrap import allgather
from .link import Link

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .base import Transport
    from .nodes import Nodes

LOGGER = logging.getLogger("sparcml")
SETTING = "SPARCML_KEEPALIVE"  # "off", or a range of ports such as 20000-20099
INTERFACES = ("GLOO_SOCKET_IFNAME", "UCX_NET_DEVICES")  # of the engines' own messages
OPEN_SECONDS = 5.0  # to connect; longer only if a firewall drops packets
MAX_DISTANCE = 64  # machines watched in each direction around the ring of machines

TOKEN_BYTES, MAX_ADDRESSES = 16, 8
RECORD = struct.Struct(f"<{TOKEN_BYTES}sH" + "4s" * MAX_ADDRESSES)
HELLO = struct.Struct(f"<{TOKEN_BYTES}sI")  # the token and the sender's rank
CHOSEN = b"\1"  # sent on one of several connections that have opened

_IS_UP, _IS_LOOPBACK = 0x1, 0x8
_GET_FLAGS, _GET_ADDRESS = 0x8913, 0x8915  # SIOCGIFFLAGS, SIOCGIFADDR


def open_links(transport: Transport) -> list[Link | None]:
    """Connect to one rank of each other machine. Collective.

    Returns:
        For each rank the link to its machine; None if it is on this machine, or not watched.
    """
    nodes, size = transport.nodes, transport.size
    links: list[Link | None] = [None] * size
    if len(nodes.leaders) == 1:
        return links
    listener = _listen()
    try:
        addresses = [] if listener is None else _addresses()
        port = listener.getsockname()[1] if listener is not None and addresses else 0
        padding = [bytes(4)] * (MAX_ADDRESSES - len(addresses))
        own = RECORD.pack(secrets.token_bytes(TOKEN_BYTES), port, *addresses, *padding)
        records = [RECORD.unpack(record) for record in allgather(transport, own)]
        watched = [peer for peer in _peers(nodes, transport.rank) if records[peer][1]]
        if listener is None or not addresses or not watched:
            return links
        handshakes = _Handshakes(transport, listener, records[0][0])
        handshakes.accept([peer for peer in watched if peer > transport.rank])
        for peer in watched:
            if peer < transport.rank:
                _, port, *hosts = records[peer]
                handshakes.connect(
                    peer, [(socket.inet_ntoa(h), port) for h in hosts if any(h)]
                )
        connections = handshakes.run(OPEN_SECONDS)
    finally:
        if listener is not None:
            listener.close()
    _warn_of_missing(transport, [peer for peer in watched if peer not in connections])
    by_node: dict[int, Link] = {}
    for peer, connection in connections.items():
        link = by_node.setdefault(nodes.of[peer], Link())
        host, port = connection.getpeername()[0], records[peer][1]
        link.watch(connection, (host, port), transport.timeouts.silent)
    return [by_node.get(node) for node in nodes.of]


def _listen() -> socket.socket | None:
    """Return a listening socket, or None if connections are switched off or not possible."""
    setting = os.environ.get(SETTING, "").strip().lower()
    if setting == "off" or not hasattr(socket, "TCP_USER_TIMEOUT"):
        return None
    for port in _ports(setting):
        with suppress(OSError):
            listener = socket.create_server(("", port), backlog=2 * MAX_DISTANCE)
            listener.setblocking(False)
            return listener
    LOGGER.warning(f"{SETTING}: no port of {setting or 'this machine'} is free")
    return None


def _ports(setting: str) -> Sequence[int]:
    if not setting:
        return [0]  # the system chooses
    first, _, last = setting.partition("-")
    try:
        ports = range(int(first), int(last or first) + 1)
    except ValueError:
        ports = range(0)
    if not ports or ports[0] < 1 or ports[-1] > 0xFFFF:
        raise ValueError(
            f"{SETTING}: value must be off, a port or a range of ports such as 20000-20099, "
            f"got {setting!r}"
        )
    return ports


def _addresses() -> list[bytes]:
    """Return the addresses at which other machines may reach this one.

    Only those of the interfaces that the engines are told to use, if they are.
    """
    told = {name for key in INTERFACES for name in os.environ.get(key, "").split(",")}
    names = [name for _, name in socket.if_nameindex()]
    names = [name for name in names if name in told] or names
    addresses = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        for name in names:
            request = struct.pack("256s", name.encode()[:15])
            with suppress(OSError):  # without an IPv4 address
                flags = fcntl.ioctl(any_socket, _GET_FLAGS, request)[16:18]
                address = fcntl.ioctl(any_socket, _GET_ADDRESS, request)[20:24]
                is_up = int.from_bytes(flags, "little") & (_IS_UP | _IS_LOOPBACK) == _IS_UP
                if is_up and not IPv4Address(address).is_link_local:
                    addresses.append(address)
    return addresses[:MAX_ADDRESSES]


def _peers(nodes: Nodes, rank: int) -> list[int]:
    """Return the ranks of other machines that a rank is connected to.

    The ranks of two machines are paired in order; a machine with fewer ranks starts again
    with its first one.
    """
    here = nodes.node_ranks(rank)
    count, own = len(nodes.leaders), nodes.leaders.index(here[0])
    peers: set[int] = set()
    for number, leader in enumerate(nodes.leaders):
        distance = min((number - own) % count, (own - number) % count)
        if 0 < distance <= MAX_DISTANCE:
            there = nodes.node_ranks(leader)
            pairs = range(here.index(rank), max(len(here), len(there)), len(here))
            peers.update(there[pair % len(there)] for pair in pairs)
    return sorted(peers)


class _Handshakes:
    """Connections that are being opened, several per peer if it has several addresses.

    The higher rank connects and sends the token and its rank; the lower one answers with its
    own; the higher one chooses the first connection that is answered.
    """

    def __init__(self, transport: Transport, listener: socket.socket, token: bytes) -> None:
        self._transport = transport
        self._token = token
        self._missing: set[int] = set()
        self._connections: dict[int, socket.socket] = {}
        self._listener = listener
        self._selector = selectors.DefaultSelector()
        self._selector.register(listener, selectors.EVENT_READ, self._take)

    def accept(self, peers: Sequence[int]) -> None:
        """Expect connections of these ranks."""
        self._missing.update(peers)

    def connect(self, peer: int, addresses: Sequence[tuple[str, int]]) -> None:
        """Start to connect to all addresses of a rank."""
        self._missing.add(peer)
        for address in addresses:
            connection = socket.socket()
            connection.setblocking(False)
            connection.connect_ex(address)

            def greet(connection: socket.socket = connection) -> None:
                self._send_hello(connection)
                self._expect(connection, lambda: self._choose(connection, peer))

            self._selector.register(connection, selectors.EVENT_WRITE, greet)

    def run(self, seconds: float) -> Mapping[int, socket.socket]:
        """Connect to all peers, or to those that answer in time; return the connections."""
        end = time.monotonic() + seconds
        try:
            while self._missing and time.monotonic() < end:
                self._transport.control.check()  # the engine makes progress in it
                for key, _ in self._selector.select(0.01):
                    try:
                        key.data()
                    except OSError:  # refused, or reset
                        self._drop(key.fileobj)
        finally:
            for key in list(self._selector.get_map().values()):
                if key.fileobj is not self._listener:
                    self._drop(key.fileobj)
            self._selector.close()
        return self._connections

    def _take(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:  # one that has given up, or no file is free
            return
        connection.setblocking(False)

        def welcome() -> None:
            peer = self._read_hello(connection)
            if peer is not None:
                self._send_hello(connection)
                self._expect(connection, lambda: self._confirm(connection, peer))

        self._selector.register(connection, selectors.EVENT_READ, welcome)

    def _expect(self, connection: socket.socket, then: Callable[[], None]) -> None:
        self._selector.modify(connection, selectors.EVENT_READ, then)

    def _send_hello(self, connection: socket.socket) -> None:
        connection.sendall(HELLO.pack(self._token, self._transport.rank))

    def _read_hello(self, connection: socket.socket) -> int | None:
        """Return the rank of the peer, or None until all of its hello has arrived."""
        received = connection.recv(HELLO.size, socket.MSG_PEEK)
        if 0 < len(received) < HELLO.size:
            return None
        token, peer = HELLO.unpack(received.ljust(HELLO.size, b"\0"))
        if not secrets.compare_digest(token, self._token) or peer not in self._missing:
            raise ConnectionRefusedError
        connection.recv(HELLO.size)
        return int(peer)

    def _choose(self, connection: socket.socket, peer: int) -> None:
        if (answered := self._read_hello(connection)) is None:
            return
        if answered != peer:
            raise ConnectionRefusedError
        connection.sendall(CHOSEN)
        self._complete(connection, peer)

    def _confirm(self, connection: socket.socket, peer: int) -> None:
        if connection.recv(1) != CHOSEN:
            raise ConnectionRefusedError
        self._complete(connection, peer)

    def _complete(self, connection: socket.socket, peer: int) -> None:
        self._selector.unregister(connection)
        self._missing.discard(peer)
        self._connections[peer] = connection

    def _drop(self, connection: object) -> None:
        assert isinstance(connection, socket.socket)
        self._selector.unregister(connection)
        connection.close()


def _warn_of_missing(transport: Transport, missing: Sequence[int]) -> None:
    if missing:
        names = " and ".join(f"rank {transport.global_ranks[rank]}" for rank in missing)
        LOGGER.warning(
            f"rank {transport.rank} has no keep-alive connection to {names}, so that a cut link "
            f"to them is not noticed; let TCP ports through the firewall ({SETTING} sets a "
            f"range), or set {SETTING}=off"
        )
