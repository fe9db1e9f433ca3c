"""Time of a step: declared costs by world size, and simulated times at some points."""

from __future__ import annotations

from typing import Any

import numpy as np

import sparcml
from sparcml import QSGD, TopK
from sparcml import decentralized as dec
from sparcml.collectives import ALLREDUCES
from sparcml.costs.network import cost_terms
from sparcml.decentralized.planning import GAMMA, exchange_terms
from sparcml.network import network as by_name

Row = dict[str, Any]

RANKS = (8, 32, 112, 1024)
SIZES = {"ResNet20": 272_474, "ResNet-50": 25_557_032}
ALLREDUCE = {"ring allreduce": "ring", "Rabenseifner": "native"}
SLOW_NETWORK = "100mbit,5ms"
POINTS = (  # method, ranks, size, network
    ("D-PSGD", 8, 272_474, "gige"),
    ("D-PSGD", 32, 272_474, SLOW_NETWORK),
    ("D-PSGD", 112, 272_474, SLOW_NETWORK),
    ("D-PSGD", 1024, 2_000, "gige"),
    ("one peer", 112, 272_474, SLOW_NETWORK),
    ("DCD, 4 bits", 112, 272_474, SLOW_NETWORK),
    ("Choco, top 1 %", 112, 272_474, SLOW_NETWORK),
    ("Rabenseifner", 112, 272_474, SLOW_NETWORK),
    ("ring allreduce", 8, 272_474, "gige"),
    ("ring allreduce", 32, 272_474, SLOW_NETWORK),
    ("ring allreduce", 112, 272_474, SLOW_NETWORK),
)


def declared(ranks: int, model: str) -> list[Row]:
    """Return the terms of the declared costs, which give the time on any network."""
    size, free = SIZES[model], by_name("gige")
    found = {
        "D-PSGD": exchange_terms(dec.ring(ranks), size, free),
        "one peer": exchange_terms(dec.one_peer_exponential(ranks), size, free),
    }
    for name, algorithm in ALLREDUCE.items():
        found[name] = cost_terms(ALLREDUCES[algorithm], ranks, size, size, 4.0, free)
    rows = []
    for method, terms in found.items():
        row = {"part": "map", "method": method, "ranks": ranks, "model": model}
        row |= {"rounds": terms.rounds, "messages": terms.messages}
        rows.append(row | {"nbytes": terms.nbytes, "work": terms.work})
    return rows


def simulated(method: str, ranks: int, size: int, network: str) -> list[Row]:
    """Return the simulated time of a step, without computing, and the declared one."""
    used = _method(method, ranks)
    costs = by_name(network)
    # With random values all of 1 % of the nonzeros are different ones on every rank.
    base = np.random.default_rng(0).standard_normal(size).astype(np.float32)

    def body(comm: sparcml.Communicator) -> float:
        x = base
        if used is None:
            comm.allreduce(
                x, algorithm=ALLREDUCE[method]
            )  # the first one agrees on the call
            comm.barrier()
            start = comm.now()
            comm.allreduce(x, algorithm=ALLREDUCE[method])
            return comm.now() - start
        if isinstance(used, dec.DPSGD):  # which sends nothing else
            comm.neighbor_allreduce(x, used.topology)  # compares the topology, too
            start = comm.now()
            comm.neighbor_allreduce(x, used.topology, 1)
            return comm.now() - start
        state = used.init(x)
        x, state = used.step(comm, x, base, state, lr=0.1)  # compares the topology, too
        start = comm.now()
        used.step(comm, x, base, state, lr=0.1)
        return comm.now() - start

    found = max(sparcml.simulate(body, ranks, network, trace=0).results)
    expected = None
    if method in ("D-PSGD", "one peer"):
        expected = exchange_terms(_ring(method, ranks), size, costs).seconds(costs)
    elif used is None:
        algorithm = ALLREDUCES[ALLREDUCE[method]]
        expected = cost_terms(algorithm, ranks, size, size, 4.0, costs).seconds(costs)
    row = {"part": "times", "method": method, "ranks": ranks, "size": size}
    return [row | {"network": network, "seconds": found, "declared": expected}]


def _ring(method: str, ranks: int) -> dec.Topology:
    return dec.ring(ranks) if method != "one peer" else dec.one_peer_exponential(ranks)


def _method(method: str, ranks: int) -> dec.Method | None:
    ring = _ring(method, ranks)
    if method == "DCD, 4 bits":
        return dec.DCD(ring, QSGD(bits=4))
    if method == "Choco, top 1 %":
        return dec.Choco(ring, TopK(0.01), gamma=GAMMA)
    return None if method in ALLREDUCE else dec.DPSGD(ring)
