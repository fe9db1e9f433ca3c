"""A switch, and a link to it for every rank: what `ip` and `tc` are told."""

from pathlib import Path

from sparcml.network.rates import format_rate

LINK = "eth0"  # as every rank calls its own
PORT = 29500  # where ranks of torch meet; nobody else listens in their namespaces

_QUEUE = "100ms"  # what waits longer is dropped, as a switch does


def address(rank: int) -> str:
    """Where a rank is reached by the others."""
    return f"10.79.0.{rank + 1}"


def name(rank: int, rate: int) -> str:
    """What a rank's machine is called: not as on another network, or as this machine."""
    return f"node{rank}-{format_rate(rate)}"


def hosts(names: list[str]) -> str:
    """The text of /etc/hosts, so that nobody asks a server for names.

    Sockets of version 6, as torch has, know the same addresses by longer numbers.
    """
    lines = ["127.0.0.1 localhost"]
    for kind in ("", "::ffff:"):
        lines += [f"{kind}{address(rank)} {name}" for rank, name in enumerate(names)]
    return _batch(lines)


def burst(rate: int) -> int:
    """Bytes that a rested link lets pass at once.

    Two of the kernel's largest packets, but at slow rates no more than 10 ms are worth
    (down to two packets of the wire), and at fast ones as much as passes while the
    kernel's timer is late.
    """
    second = rate / 8
    return round(max(3000, min(128 * 1024, 0.01 * second), 0.00025 * second))


def switch_links(files: list[str]) -> str:
    """For `ip`, in the switch: a bridge, and a link into the namespace of each file."""
    lines = ["link add bridge type bridge", _up("bridge")]
    for rank, file in enumerate(files):
        lines.append(f"link add port{rank} type veth peer name {LINK} netns {file}")
        lines += [f"link set port{rank} master bridge", _up(f"port{rank}")]
    return _batch(lines)


def switch_queues(ranks: int, rate: int) -> str:
    """For `tc`, in the switch: what a rank receives passes at this rate."""
    return _batch([_queue(f"port{rank}", rate) for rank in range(ranks)])


def rank_links(rank: int) -> str:
    """For `ip`, with a rank: its address."""
    return _batch(
        [
            "link set lo up",
            f"address add {address(rank)}/24 dev {LINK}",
            _up(LINK),
        ]
    )


def rank_queue(rate: int) -> str:
    """For `tc`, with a rank: what it sends passes at this rate."""
    return _batch([_queue(LINK, rate)])


def _up(link: str) -> str:
    """A link that is up, without addresses of version 6: they take a second to agree."""
    quiet = " addrgenmode none" if Path("/proc/net/if_inet6").exists() else ""
    return f"link set {link} up{quiet}"


def _queue(link: str, rate: int) -> str:
    shape = f"rate {rate}bit burst {burst(rate)} latency {_QUEUE}"
    return f"qdisc add dev {link} root tbf {shape}"


def _batch(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"
