"""Latency of 8 bytes in the dense family: a part of claim 24.

Simulated up to 1,024 ranks, with the longest chain of messages that depend on each other;
measured between threads of one machine, which is a different quantity.
"""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from tables import markdown

import sparcml
from sparcml.collectives import ALLREDUCES
from sparcml.collectives.dense.double_binary_tree import two_trees
from sparcml.collectives.split import WINDOW
from sparcml.costs import Workload
from sparcml.network.presets import network

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from sparcml import Communicator

    from .base import Row

SHORT = 2  # values of float32: 8 bytes
NETWORK = "gige"
SIMULATED = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
TIMED = (2, 4, 8, 16)
NAMES = ("ring", "double_binary_tree", "recursive_double")
REPEATS, SUMS = 11, 4  # sums are timed together, and that many times over


def hops(algorithm: str, ranks: int) -> int:
    """Return the number of messages in the longest chain."""
    return {
        "master": 2,
        "sharded": 1 + -(-(ranks - 1) // WINDOW),  # few are on their way at a time
        "ring": 2 * (ranks - 1),
        "double_binary_tree": 2 * two_trees(ranks)[0].height,  # up, then down
        "recursive_double": ranks.bit_length() - 1,
    }[algorithm]


def costs(algorithm: str, ranks: int, size: int) -> list[Any]:
    """Return the declared rounds of some ranks: both ends, the middle, and inner nodes."""
    workload = Workload(size, 4, (size,) * ranks)
    some = {0, 1, 2, ranks // 2, ranks - 1}
    rounds = ALLREDUCES[algorithm].rounds
    return [rounds(rank, workload) for rank in sorted(some & set(range(ranks)))]


def simulated(algorithm: str, ranks: int) -> Row:
    """Return the simulated time of 8 bytes, until the last rank has them."""
    x = np.ones(SHORT, np.float32)

    def body(comm: Communicator) -> bool:
        return bool((comm.allreduce(x, algorithm=algorithm) == comm.size).all())

    sim = sparcml.simulate(body, ranks, NETWORK, trace=0)
    links = network(NETWORK)
    chain = hops(algorithm, ranks)
    return {
        "latency_us": 1e6 * links.latency,
        "us": 1e6 * sim.seconds,
        "messages": sim.messages,
        "right": all(sim.results),
        "hops": chain,
        "chain_us": 1e6 * chain * links.latency,
    }


def timed(algorithm: str, ranks: int) -> Row:
    """Return the microseconds of an allreduce of 8 bytes between threads, slowest rank."""

    def body(comm: Communicator) -> list[float]:
        x, times = np.ones(SHORT, np.float32), []
        for _ in range(REPEATS):
            comm.barrier()
            start = time.perf_counter()
            for _ in range(SUMS):
                comm.allreduce(x, algorithm=algorithm)
            times.append((time.perf_counter() - start) / SUMS)
        return times

    slowest = [1e6 * max(times) for times in zip(*sparcml.launch(body, ranks), strict=True)]
    low, middle, high = statistics.quantiles(slowest, n=4)
    return {"runs": REPEATS, "p25_us": low, "p50_us": middle, "p75_us": high}


def details(at: dict[tuple[str, str, int], Row]) -> str:
    """Return both tables."""
    return f"{_simulated(at)}\n{_timed(at)}"


def _simulated(at: dict[tuple[str, str, int], Row]) -> str:
    head = ["P", "ring (ms)", "double binary tree (ms)", "chain only (ms)"]
    head += ["recursive doubling (ms)", "ring / tree"]
    lines = []
    for ranks in SIMULATED:
        ring, tree, doubling = (at["simulated", name, ranks] for name in NAMES)
        times = [ring["us"], tree["us"], tree["chain_us"], doubling["us"]]
        ratio = f"{ring['us'] / tree['us']:.3g}x"
        lines.append([f"{ranks:,}", *(f"{t / 1e3:.4g}" for t in times), ratio])
    return (
        f"Simulated, network `{NETWORK}`: a message arrives {tree['latency_us']:.0f} us "
        f"after it is "
        f"sent, and a rank sends the next one after a fifth of that. The chain consists of "
        f"2 log2 P dependent messages; the rest of the tree's time is due to messages "
        f"that a rank sends one after the other. The simulation runs the collectives "
        f"themselves: {ring['messages']:,} messages for the ring on {SIMULATED[-1]:,} "
        f"ranks.\n\n{markdown(head, lines)}"
    )


def _timed(at: dict[tuple[str, str, int], Row]) -> str:
    head = ["P", *(f"{name} (us)" for name in NAMES)]
    lines = [
        [
            str(ranks),
            *(
                f"{row['p50_us']:.0f} ({row['p25_us']:.0f} to {row['p75_us']:.0f})"
                for row in (at["timed", name, ranks] for name in NAMES)
            ),
        ]
        for ranks in TIMED
    ]
    return (
        f"Measured between threads of one process, median and quartiles of "
        f"{at['timed', 'ring', TIMED[0]]['runs']} runs. The threads share the cores and the "
        f"interpreter, so the total number of messages matters, 2 P (P-1), 4 (P-1) and "
        f"P log2 P, and not the chain: these times do not describe a network.\n\n"
        f"{markdown(head, lines)}"
    )


def figure(rows: list[Row]) -> Figure:
    """Plot latency against ranks."""
    from .drawing import BLUE, GREEN, ORANGE, axes

    canvas, (ax,) = axes(1, (6.0, 3.6))
    series = (
        ("ring", "ring", ORANGE, "-o"),
        ("double_binary_tree", "double binary tree", BLUE, "-s"),
        ("recursive_double", "recursive doubling", GREEN, "-^"),
    )
    for name, label, colour, style in series:
        found = [r for r in rows if r["part"] == "simulated" and r["algorithm"] == name]
        ranks = [row["ranks"] for row in found]
        times = [row["us"] / 1e3 for row in found]
        ax.plot(ranks, times, style, color=colour, ms=4, label=label)
    ax.set(xlabel="ranks", ylabel="latency of 8 bytes (ms)", xscale="log", yscale="log")
    ax.set_xticks(SIMULATED, [f"{ranks:,}" for ranks in SIMULATED])
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_title(
        f"Allreduce of 8 bytes, simulated: {found[0]['latency_us']:.0f} us per message"
    )
    ax.legend(frameon=False)
    return canvas
