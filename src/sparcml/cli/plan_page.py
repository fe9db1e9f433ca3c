"""A plan as one page that needs nothing else: numbers, charts, and what to turn."""

import json
from pathlib import Path
from typing import Any

from sparcml.network.candidates import Candidate, candidates
from sparcml.network.plan import NEAR, Plan

RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
RATIOS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)


def page(plan: Plan) -> str:
    """The page's text."""
    data = json.dumps({"plan": plan.as_dict(), "grid": grid(plan)})
    parts = {
        "@FORMULAS@": _file("plan_formulas.js"),
        "@CHARTS@": _file("plan_charts.js"),
        # Nothing in the data may end the script that holds it; last, for it may hold marks.
        "@DATA@": data.replace("<", "\\u003c"),
    }
    text = _file("plan_page.html")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def grid(plan: Plan) -> dict[str, Any]:
    """What every method takes at each number of ranks, for any rate and latency."""
    given = {c.ratio for c in plan.candidates if c.ratio < 1}
    ratios = tuple(sorted({*RATIOS, *given}, reverse=True))
    ranks = sorted({*RANKS, plan.ranks})
    taken = [c.ratio for c in plan.candidates if c.name == plan.recommended.method]
    return {
        "near": NEAR,
        "ranks": ranks,
        "ratios": ratios,
        "ratio": next((r for r in [*taken, *ratios] if r in given), ratios[0]),
        "choices": [
            _choice(plan, c, name, ranks)
            for c in candidates(ratios)
            for name in c.collectives
        ],
    }


def _choice(plan: Plan, c: Candidate, collective: str, ranks: list[int]) -> dict[str, Any]:
    takes = [c.takes(plan.model, collective, n, plan.network) for n in ranks]
    return {
        "method": c.name,
        "collective": collective,
        "ratio": c.ratio if c.ratio < 1 else None,
        "line": c.code(collective),
        "work": c.work * plan.model.parameters,
        "terms": [[t.rounds, t.messages, t.nbytes, t.work] for t in takes],
    }
