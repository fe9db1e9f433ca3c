"""Every decentralized method, as a function of the number of ranks."""

from __future__ import annotations

from typing import Any

from sparcml import NUQSGD, QSGD, RandomK, Sign, Threshold, TopK
from sparcml import decentralized as dec
from sparcml.decentralized.methods import METHODS as REGISTERED

from .training import chain


def lazy_ring(n):
    return dec.ring(n).lazy()


# Method by topology, the topology that it starts on, and one that it changes to.
METHODS: dict[str, tuple[Any, Any, Any]] = {
    "dpsgd": (dec.DPSGD, dec.ring, dec.exponential),
    "dpsgd adapt": (lambda t: dec.DPSGD(t, adapt_then_combine=True), dec.ring, dec.star),
    "dpsgd momentum": (lambda t: dec.DPSGD(t, momentum=0.5), dec.complete, dec.base_graph),
    "dpsgd one peer": (dec.DPSGD, dec.one_peer_exponential, dec.ring),
    "naive": (lambda t: dec.NaiveQuantized(t, QSGD(bits=8)), dec.ring, dec.star),
    "dcd": (lambda t: dec.DCD(t, QSGD(bits=8)), dec.ring, dec.complete),
    "dcd nuqsgd": (lambda t: dec.DCD(t, NUQSGD(bits=8)), dec.ring, dec.star),
    "dcd randomk": (lambda t: dec.DCD(t, RandomK(0.9)), lazy_ring, dec.star),
    "dcd identity": (dec.DCD, dec.star, dec.ring),
    "ecd": (lambda t: dec.ECD(t, QSGD(bits=8)), dec.ring, dec.star),
    "choco topk": (lambda t: dec.Choco(t, TopK(0.2)), dec.ring, dec.star),
    "choco sign": (lambda t: dec.Choco(t, Sign(), gamma=0.4), dec.star, dec.ring),
    "choco qsgd": (lambda t: dec.Choco(t, QSGD(bits=4), gamma=1.0), dec.ring, dec.complete),
    "choco threshold": (lambda t: dec.Choco(t, Threshold(ratio=0.2)), dec.ring, dec.star),
    "push_sum": (dec.PushSum, dec.ring, dec.exponential),
    "push_sum directed": (
        dec.PushSum,
        lambda n: dec.from_matrix(
            dec.star(n, weights="uniform").matrix().T, stochastic="columns"
        ),
        dec.ring,
    ),
    "d2": (dec.D2, lazy_ring, dec.complete),
    "gradient_tracking": (dec.GradientTracking, dec.ring, dec.exponential),
    "gradient_tracking adapt": (
        lambda t: dec.GradientTracking(t, adapt_then_combine=True),
        dec.base_graph,
        dec.ring,
    ),
    "relay_sum": (dec.RelaySum, chain, dec.star),
    "moniqua": (lambda t: dec.Moniqua(t, theta=20.0), dec.ring, dec.star),
    "adpsgd": (dec.ADPSGD, dec.star, chain),
}

# Names of those whose steps without gradients keep the mean up to rounding.
KEEPING = [n for n, (build, graph, _) in METHODS.items() if build(graph(4)).keeps_mean]
# Names of those that give the same bits on real ranks.
SYNCHRONOUS = [n for n in METHODS if n != "adpsgd"]

assert {type(build(graph(4))) for build, graph, _ in METHODS.values()} == {
    *REGISTERED.values()
}


def method(name, n):
    """Return a method for n ranks."""
    build, graph, _ = METHODS[name]
    return build(graph(n))


def other_topology(name, n):
    """Return another topology for it."""
    return METHODS[name][2](n)
