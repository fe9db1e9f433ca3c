"""Generated tables of docs/decentralized.md."""

from __future__ import annotations

import math

from tables import markdown

from sparcml import decentralized as dec

from .convergence import LONG
from .loss_tables import convergence, residual
from .rows import (
    CENTRAL,
    PEER,
    RABENSEIFNER,
    RING,
    RING_SUM,
    Row,
    final_gap,
    of,
    one,
    over_centralized,
    seconds,
    slope,
    steps_to,
    trained,
)
from .step_table import steps
from .times import RANKS, SIZES, SLOW_NETWORK

NETWORKS = {"100 Mbit/s, 5 ms": (5e-3, 1e8), "1 Gbit/s, 50 us": (50e-6, 1e9)}
NETWORKS |= {"10 Gbit/s, 30 us": (30e-6, 1e10), "80 Gbit/s, 1.5 us": (1.5e-6, 8e10)}
DCD = "DCD, 4 bits"


def time_map(rows: list[Row]) -> str:
    """Return the milliseconds of a step by network, model and nodes."""
    head = ["network", "model", "nodes", "ring allreduce (ms)", "Rabenseifner (ms)"]
    head += ["D-PSGD, ring (ms)", "D-PSGD, one peer (ms)", "ring vs faster allreduce"]
    lines = []
    for network, (latency, bandwidth) in NETWORKS.items():
        for model in SIZES:
            for ranks in RANKS:
                here = of(rows, "map", model=model, ranks=ranks)
                time = {r["method"]: float(seconds(r, latency, bandwidth)) for r in here}
                cells = [network, model, f"{ranks:,}"]
                names = (RING_SUM, RABENSEIFNER, RING, PEER)
                cells += [_milliseconds(time[name]) for name in names]
                best = min(time[RING_SUM], time[RABENSEIFNER])
                lines.append([*cells, f"{best / time[RING]:.2f}x"])
    return markdown(head, lines)


def check_times(rows: list[Row]) -> str:
    """Return simulated times compared with declared ones."""
    head = ["method", "nodes", "parameters", "network", "simulated (ms)", "declared (ms)"]
    lines = []
    for row in of(rows, "times"):
        cells = [row["method"], f"{row['ranks']:,}", f"{row['size']:,}", row["network"]]
        declared = "" if row["declared"] is None else f"{1e3 * row['declared']:.2f}"
        lines.append([*cells, f"{1e3 * row['seconds']:.2f}", declared])
    return markdown(head, lines)


def rate(rows: list[Row]) -> str:
    """Return the exponents of K, and errors relative to centralized SGD."""
    nodes = sorted({row["nodes"] for row in of(rows, "rate")})
    steps = sorted({row["steps"] for row in of(rows, "rate")})
    head = ["nodes", "exponent of K, centralized", "exponent of K, D-PSGD"]
    head += [f"error vs centralized, K = {k:,}" for k in steps]
    lines = []
    for n in nodes:
        cells = [str(n), f"{slope(rows, CENTRAL, n):.2f}", f"{slope(rows, RING, n):.2f}"]
        lines.append([*cells, *(f"{x:.2f}x" for x in over_centralized(rows, n))])
    return markdown(head, lines)


def compressed(rows: list[Row]) -> str:
    """Return the loss above the minimum after the last step."""
    head = ["method", "bits", "mean model", "vs D-PSGD", "single nodes", "vs D-PSGD"]
    base = {kind: final_gap(rows, RING, 0, kind) for kind in ("mean", "local")}
    lines = []
    for row in of(rows, "compressed"):
        cells = [row["method"], str(row["bits"] or "float32")]
        for kind in ("mean", "local"):
            cells += [f"{row[kind][-1]:.2e}", f"{row[kind][-1] / base[kind]:,.2f}x"]
        lines.append(cells)
    apart = ", ".join(f"{row['method']} {row['apart']:.1e}" for row in of(rows, "check"))
    least, count = row["least"], row["nodes"]
    note = (
        f"{count} nodes, {row['steps']} steps; the minimum is {least:.4f}. Largest difference "
        f"between a value of this computation and of the library's method after "
        f"{of(rows, 'check')[0]['steps']} steps on {of(rows, 'check')[0]['nodes']} nodes: {apart}. "
        f"{_few_images(rows)}"
    )
    return f"{markdown(head, lines)}\n{note}\n"


def _few_images(rows: list[Row]) -> str:
    """Return the factors of nodes with fewer images, whose data are less similar."""
    gaps = {row["method"]: row["mean"][-1] for row in of(rows, "few images")}
    return (
        f"With {of(rows, 'few images')[0]['per_node']} images per node, D-PSGD ends at "
        f"{gaps[RING]:.1e}, naive {gaps['naive'] / gaps[RING]:.1f}x above it, DCD at "
        f"{gaps['DCD'] / gaps[RING]:.2f}x."
    )


def counted(rows: list[Row]) -> str:
    """Return the bytes per node and step, by nodes."""
    nodes = sorted({row["nodes"] for row in of(rows, "bytes")})
    head = ["method", "bits", *(f"{n} nodes" for n in nodes)]
    lines = []
    for method in dict.fromkeys(row["method"] for row in of(rows, "bytes")):
        mine = {row["nodes"]: row for row in of(rows, "bytes", method=method)}
        bits = str(mine[nodes[0]]["bits"] or "float32")
        lines.append([method, bits, *(f"{mine[n]['bytes']:,.0f}" for n in nodes)])
    return markdown(head, lines)


def different_data(rows: list[Row]) -> str:
    """Return the loss above the minimum after the last step, by method."""
    head = ["method", "mean model", "single nodes", "single nodes vs allreduce"]
    base = one(rows, "different data", method="allreduce")["local"][-1]
    lines = []
    for row in of(rows, "different data"):
        mean, local = row["mean"][-1], row["local"][-1]
        cells = [row["method"], f"{mean:.2e}", f"{local:.2e}", f"{local / base:,.2f}x"]
        lines.append(cells)
    note = (
        f"{row['nodes']} nodes with {row['classes']:.1f} of 10 classes each on average, "
        f"{row['steps']} steps of the full gradient, learning rate {row['lr']:g}; the minimum is "
        f"{row['least']:.4f}."
    )
    return f"{markdown(head, lines)}\n{note}\n"


def slow_node(rows: list[Row]) -> str:
    """Return the steps per second with and without a slow node."""
    head = ["method", "slow node", "steps/s, fast nodes", "slowest fast node"]
    head += ["slow node (steps/s)", "fast nodes vs all equal", "loss of the mean model"]
    lines = []
    for row in of(rows, "slow node"):
        equal = one(rows, "slow node", method=row["method"], slow=False)["fast_mean"]
        cells = [row["method"], "5x slower" if row["slow"] else "none"]
        cells += [f"{row['fast_mean']:.1f}", f"{row['fast_min']:.1f}"]
        cells += [f"{row['slow_rate']:.1f}", f"{row['fast_mean'] / equal:.0%}"]
        lines.append([*cells, f"{row['loss']:.4f}"])
    return f"{markdown(head, lines)}\n{row['nodes']} nodes, {row['seconds']} simulated seconds.\n"


def product(rows: list[Row]) -> str:
    """Return the time to a loss: steps of the small network times simulated seconds."""
    last = trained(rows, CENTRAL, LONG)["mean"][-1]
    losses = [1.2 * last, 1.1 * last, 1.05 * last]
    head = ["method", "step (ms)", *(f"to a loss of {x:.3f} (s)" for x in losses)]
    head += [f"vs Rabenseifner, {losses[-1]:.3f}", f"vs ring allreduce, {losses[-1]:.3f}"]
    steps_of = {RING: RING, DCD: DCD}
    times: dict[str, list[float]] = {}
    step: dict[str, float] = {}
    for name in (RING_SUM, RABENSEIFNER, RING, DCD):
        where = {"method": name, "ranks": 112, "network": SLOW_NETWORK}
        row = one(rows, "times", **where)
        # The agreement of ranks on the call, before an allreduce by the engine, is left out.
        step[name] = row["declared" if name == RABENSEIFNER else "seconds"]
        count = [steps_to(rows, steps_of.get(name, CENTRAL), LONG, loss) for loss in losses]
        times[name] = [n * step[name] for n in count]
    lines = []
    for name, each in times.items():
        cells = [name, f"{1e3 * step[name]:.1f}", *(_seconds(x) for x in each)]
        gains = [times[base][-1] / each[-1] for base in (RABENSEIFNER, RING_SUM)]
        lines.append([*cells, *(f"{x:.2f}x" for x in gains)])
    return markdown(head, lines)


def _milliseconds(value: float) -> str:
    return f"{1e3 * value:,.0f}" if value >= 0.1 else f"{1e3 * value:.3g}"


def _seconds(value: float) -> str:
    return "never" if math.isinf(value) else f"{value:,.1f}"


def topologies(rows: list[Row]) -> str:
    """Return gap, degree and steps to consensus of topologies on 112 ranks."""
    del rows
    head = [
        "topology",
        "neighbours",
        "spectral gap",
        "steps to 1e-6",
        "models sent per rank",
    ]
    lines = []
    for name in ("ring", "torus", "exponential", "one_peer_exponential", "base_graph"):
        found = dec.by_name(name, 112)
        steps = found.steps_to_consensus()
        sent = f"{steps * found.messages_per_step:,.0f}"
        gap = f"{found.spectral_gap:.4f}"
        lines.append([f"`{found.name}`", str(found.degree), gap, f"{steps:,.0f}", sent])
    return markdown(head, lines)


TABLES = {
    "decentralized-topologies": topologies,
    "decentralized-map": time_map,
    "decentralized-times": check_times,
    "decentralized-convergence": convergence,
    "decentralized-resnet": residual,
    "decentralized-rate": rate,
    "decentralized-compressed": compressed,
    "decentralized-bytes": counted,
    "decentralized-data": different_data,
    "decentralized-slow": slow_node,
    "decentralized-product": product,
    "decentralized-steps": steps,
}
