"""Claim 22: one batch on more devices, with and without compression."""

from __future__ import annotations

from tables import markdown

from .base import Answer, Claim, Row
from .scaling_figure import few, many
from .scaling_runs import EMULATED, FEW, MANY, METHODS, MODELLED, MODELS, measure

COMPRESSED = tuple(METHODS)[1:]
KINDS = ("emulated", "simulated")
FURTHER = 32  # ranks that are simulated of the smallest model, to check the cost model


def table(rows: list[Row]) -> dict[tuple[str, str, str, int], Row]:
    """Return the rows by type, model, method and ranks."""
    return {(r["kind"], r["model"], r["method"], r["ranks"]): r for r in rows}


def answer(rows: list[Row]) -> Answer:
    """Hit if the best compressed step of each model is faster on 16 ranks than on 8."""
    at = table(rows)

    def gain(kind: str, name: str, method: str, ranks: int = FEW) -> float:
        one, more = (at[kind, name, method, n]["step"] for n in (1, ranks))
        return float(one / more)

    def best(name: str, ranks: int) -> float:
        return max(gain("emulated", name, method, ranks) for method in COMPRESSED)

    stuck = [name for name in MODELS if best(name, 16) <= best(name, 8)]
    parts = []
    for name in MODELS:
        both = [
            "{:.1f}x ({:.1f}x)".format(*(gain(k, name, m) for k in KINDS)) for m in METHODS
        ]
        parts.append(f"{name} {', '.join(both)}")
    ours = f"16 ranks relative to 1, emulated (simulated), {', '.join(METHODS)}: "
    why = "dense training stops scaling at once on such links, compressed training scales to 16"
    if stuck:
        why = (
            f"{', '.join(stuck)} is not faster on 16 ranks than on 8: it has many "
            f"parameters and little computing, so that even compressed allreduce dominates a "
            f"step; the other models scale, and dense training hardly or not"
        )
    return Answer(not stuck, ours + "; ".join(parts), why, _details(rows))


def _details(rows: list[Row]) -> str:
    at = table(rows)
    head = ["model", "method", "source", *(f"P = {n}" for n in EMULATED)]
    lines = [
        [name, method, kind, *(_cell(at[kind, name, method, n]) for n in EMULATED)]
        for name in MODELS
        for method in METHODS
        for kind in KINDS
    ]
    wide = ["model", "method", *(f"P = {n:,}" for n in MODELLED)]
    more = [
        [name, method, *(_cell(at["modelled", name, method, n]) for n in MODELLED)]
        for name in MODELS
        for method in METHODS
    ]
    return (
        f"Milliseconds per step, with the computing time in parentheses. The batch is the same "
        f"for all P: {FEW} times a device's usual batch in the first table, {MANY:,} times "
        f"in the second.\n\n"
        f"*Emulated*: real ranks with links of 100 Mbit/s each, and a tenth of the "
        f"model's parameters, whose bytes take the time of those of the full model at "
        f"1 Gbit/s. Computing is a pause of the time that the planner assumes, because all "
        f"ranks share two cores; selecting and encoding are real, on a tenth of the values, "
        f"by P / 2 ranks per core. Medians of 3 steps, saved by `benchmarks/run_scaling.py`.\n\n"
        f"*Simulated*: the same code and sizes under the virtual clock, with one core per rank "
        f"that needs the time of the full model for a tenth of the values. At "
        f"16 ranks emulated steps are longer: eight ranks share a core.\n\n"
        f"{markdown(head, lines)}\n"
        f"*Modelled*, beyond 16 ranks: the full model at 1 Gbit/s, from the costs that the "
        f"collectives declare and the simulator charges, each method with its best "
        f"collective. Simulating them would require 2 P^2 messages per step. {_check(rows)}\n\n"
        f"{markdown(wide, more)}"
    )


def _cell(row: Row) -> str:
    return f"{row['step'] * 1e3:.0f} ({row['compute'] * 1e3:.0f})"


def deviations(rows: list[Row]) -> list[float]:
    """Compare modelled with simulated allreduces of the same collective."""
    at, found = table(rows), []
    for (kind, name, method, ranks), row in at.items():
        other = at.get(("simulated", name, method, ranks))
        if kind == "modelled" and other is not None:
            simulated = other["step"] - other["compute"]
            found.append((row["same"] - row["compute"]) / simulated - 1)
    return found


def _check(rows: list[Row]) -> str:
    off = deviations(rows)
    return (
        f"For the same collective the model differs from the simulation by {min(off):+.0%} to "
        f"{max(off):+.0%}, at 16 ranks and, for {MODELS[0]}, at {FURTHER}."
    )


CLAIM = Claim(
    number=22,
    title="Strong scaling",
    text="with compression, training scales to 16 devices; without, communication stops it",
    source="a talk on communication in training",
    how="emulated, simulated, modelled",
    seed=0,
    cases=[
        *(("emulated", name, ranks) for name in MODELS for ranks in EMULATED),
        *(("simulated", name, ranks) for name in MODELS for ranks in EMULATED),
        ("simulated", MODELS[0], FURTHER),
        *(("modelled", name, ranks) for name in MODELS for ranks in MODELLED),
    ],
    measure=measure,
    answer=answer,
    figures={"strong-scaling-16": few, "strong-scaling-1024": many},
)
