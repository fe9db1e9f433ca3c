"""Strong scaling: the same batch on more ranks, emulated, simulated and modelled.

A tenth of each model on links of a tenth of the bandwidth: its bytes take the time of those of
the full model on full links, and the few cores here keep up with sixteen ranks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tables import newest

import sparcml
from sparcml.aggregate.planning import planned_methods
from sparcml.planning.candidates import Candidate
from sparcml.planning.models import model
from sparcml.planning.plan import fastest, plan, step

from .scaling_step import Step

if TYPE_CHECKING:
    from .base import Row

MODELS = ("resnet50", "alexnet", "asr-lstm")
SCALE = 10  # of what is planned for: parameters, rate and speed of processors
LATENCY = "120us"  # of a message between namespaces (docs/network.md)
FEW, MANY = 16, 1024  # ranks that have a batch of the usual size each
EMULATED = (1, 2, 4, 8, 16)
MODELLED = (16, 32, 64, 128, 256, 512, 1024)
RATIO = 0.005


@dataclass(frozen=True)
class Compared:
    """An aggregation method, its collective, and its name in the planner."""

    planned: str
    algorithm: str
    sparsify: sparcml.TopK | None = None
    quantize: sparcml.QSGD | None = None

    @property
    def method(self) -> sparcml.Method:
        """Return the method as training uses it."""
        return sparcml.Compressed(
            sparsify=self.sparsify, quantize=self.quantize, algorithm=self.algorithm
        )


METHODS = {
    "dense": Compared("dense", "ring"),
    "QSGD, 4 bits": Compared(
        "QSGD 4 bits", "dsar_split_allgather", quantize=sparcml.QSGD(bits=4)
    ),
    "TopK 0.5 %, 8 bits": Compared(
        "TopK 0.5 %, 8 bits",
        "ssar_split_allgather",
        sparcml.TopK(ratio=RATIO),
        sparcml.QSGD(bits=8),
    ),
}


def share(name: str, scale: int) -> int:
    """Return a tenth of the parameters."""
    return model(name).parameters // scale


def computing(name: str, ranks: int, batches: int = FEW) -> float:
    """Return the seconds of computing per step, with the batch divided among the ranks."""
    seconds = model(name).step
    assert seconds is not None
    return seconds * batches / ranks


def measure(kind: str, name: str, ranks: int) -> list[Row]:
    """Return the rows of all methods."""
    found = {"emulated": emulated, "simulated": simulated, "modelled": modelled}[kind]
    return [
        {"kind": kind, "model": name, "ranks": ranks} | row for row in found(name, ranks)
    ]


def emulated(name: str, ranks: int) -> list[Row]:
    """Return the saved rows of `benchmarks/run_scaling.py`, which needs a cluster."""
    kept = newest("scaling")
    if kept is None:
        raise SystemExit(
            "claim 22: no emulated steps are saved; run: python benchmarks/run_scaling.py "
            "--json benchmarks/results/DATE-scaling.json"
        )
    return [r for r in kept["rows"] if (r["model"], r["ranks"]) == (name, ranks)]


def simulated(name: str, ranks: int) -> list[Row]:
    """Run the same code under the virtual clock, with one core per rank."""
    return [_simulated(name, ranks, label) for label in METHODS]


def _simulated(name: str, ranks: int, label: str) -> Row:
    method, size = METHODS[label].method, share(name, SCALE)
    compute = computing(name, ranks)
    # Slower processors, so that a tenth of the values takes as long as all of them.
    own = _candidate(label, name).planning.seconds_per_value * size

    def body(comm: sparcml.Communicator) -> float:
        return Step(comm, method, size).run(lambda: comm.advance(compute / SCALE + own))

    found = sparcml.simulate(
        body, ranks, f"100mbit,{LATENCY}", speed=1 / SCALE, timeout=1e6, trace=0
    )
    return {"method": label, "compute": compute, "step": max(found.results)}


def modelled(name: str, ranks: int) -> list[Row]:
    """Estimate the full model from declared costs, with a batch for many ranks."""
    compute = computing(name, ranks, MANY)
    found = plan(
        model(name), ranks, f"1gbit,{LATENCY}", compute, methods=planned_methods((RATIO,))
    )
    rows = []
    for label, compared in METHODS.items():
        candidate = _candidate(label, name)
        seconds, by = fastest(found, candidate, found.network, ranks)
        same = step(found, candidate, compared.algorithm, found.network, ranks)
        row = {"method": label, "compute": compute, "step": seconds, "by": by}
        rows.append(row | {"same": same})
    return rows


def _candidate(label: str, name: str) -> Candidate:
    tensors = model(name).tensors
    candidates = [Candidate(m, m.planning(tensors)) for m in planned_methods((RATIO,))]
    (planned,) = [c for c in candidates if c.name == METHODS[label].planned]
    return planned
