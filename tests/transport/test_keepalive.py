"""Connections between machines: which ranks are connected, and who is accepted."""

import contextlib
import socket
import threading
import time

import pytest

from sparcml.transport import Nodes, ThreadGroup, ThreadTransport, keepalive
from sparcml.transport.link import Link
from sparcml.transport.timeouts import Timeouts

needs_network = pytest.mark.skipif(not keepalive._addresses(), reason="no network here")


def opened(nodes: tuple[int, ...], seconds: float = 20.0) -> list[list[Link | None]]:
    """Return the links of ranks that are threads, as if they were on these machines."""
    group = ThreadGroup(len(nodes))
    links: dict[int, list[Link | None]] = {}

    def work(rank):
        transport = ThreadTransport(group, rank, Timeouts(seconds, seconds, 20.0))
        transport.nodes = Nodes(nodes)
        links[rank] = keepalive.open_links(transport)

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(len(nodes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [links[rank] for rank in range(len(nodes))]


@pytest.mark.parametrize("nodes", [(0, 1), (0, 0, 1, 1), (0, 1, 0, 2, 2, 2), (0, 1) * 40])
def test_each_rank_is_connected_to_every_other_machine_and_to_few_ranks(nodes):
    places = Nodes(nodes)
    for rank, node in enumerate(nodes):
        peers = keepalive._peers(places, rank)
        assert {nodes[peer] for peer in peers} == set(nodes) - {node}
        assert all(rank in keepalive._peers(places, peer) for peer in peers)
        limit = -(-places.largest // len(places.node_ranks(rank)))
        assert len(peers) <= limit * (len(places.leaders) - 1)


def test_of_many_machines_the_nearest_are_watched():
    peers = keepalive._peers(Nodes(tuple(range(1000))), 0)
    assert peers == [*range(1, 65), *range(936, 1000)]


@needs_network
@pytest.mark.parametrize("nodes", [(0, 1), (0, 0, 1, 1), (0, 1, 0, 2, 2)])
def test_links_are_open_until_they_are_closed(nodes, caplog):
    links = opened(nodes)
    for rank, row in enumerate(links):
        for peer, link in enumerate(row):
            assert (link is None) == (nodes[peer] == nodes[rank])
            assert link is None or not link.is_cut()
    for link in links[0]:
        if link is not None:
            link.close()
    every = [link for row in links for link in row if link is not None]
    assert not any(link.is_cut() for link in every)
    assert not caplog.records


@needs_network
@pytest.mark.parametrize("seconds", [0.1, 2e5, 1e10])
def test_any_limit_is_one_that_the_kernel_accepts(seconds):
    ((_, link), (other, _)) = opened((0, 1), seconds)
    for each in (link, other):
        assert each is not None
        assert not each.is_cut()
        assert not each.is_late()


def test_a_machine_without_an_address_is_not_waited_for(monkeypatch, caplog):
    monkeypatch.setattr(keepalive, "_addresses", list)
    start = time.monotonic()
    assert opened((0, 1)) == [[None, None]] * 2
    assert time.monotonic() - start < keepalive.OPEN_SECONDS
    assert not caplog.records


@pytest.mark.parametrize("setting", ["off", "none"])
def test_no_links(setting, monkeypatch):
    if setting == "off":
        monkeypatch.setenv(keepalive.SETTING, " OFF")
    nodes = (0, 1) if setting == "off" else (0, 0)
    assert opened(nodes) == [[None, None]] * 2


@pytest.mark.parametrize("setting", ["on", "5-3", "0-10", "60000-70000", "-5", "1.5"])
def test_ports_that_are_none(setting):
    with pytest.raises(
        ValueError, match="SPARCML_KEEPALIVE: value must be off, a port or a"
    ):
        keepalive._ports(setting)


@needs_network
def test_strangers_are_not_accepted(monkeypatch):
    """A stranger greets with another token; a port scanner says nothing."""
    listeners: list[int] = []
    listen = keepalive._listen

    def listen_and_greet():
        listener = listen()
        assert listener is not None
        port = listener.getsockname()[1]
        listeners.append(port)
        for greeting in (keepalive.HELLO.pack(bytes(16), 1), b""):
            stranger = socket.create_connection(("127.0.0.1", port))
            strangers.append(stranger)
            stranger.sendall(greeting)
        return listener

    strangers: list[socket.socket] = []
    monkeypatch.setattr(keepalive, "_listen", listen_and_greet)
    (_, link), (other, _) = opened((0, 1))
    assert link is not None
    assert other is not None
    assert not link.is_cut()
    assert not other.is_cut()
    for stranger in strangers:
        stranger.settimeout(10)
        with contextlib.suppress(ConnectionResetError):
            assert stranger.recv(100) == b""
        stranger.close()
    for port in listeners:
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port))
