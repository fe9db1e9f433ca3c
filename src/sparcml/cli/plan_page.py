"""A plan as one self-contained page with numbers, charts and controls."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sparcml.aggregate.evidence import MEASURED_WITH, TITLES, accuracy
from sparcml.aggregate.planning import methods_to_plan
from sparcml.planning.candidates import Candidate
from sparcml.planning.plan import NEAR, Plan, work

RANKS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
RATIOS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0003)


def page(plan: Plan) -> str:
    """Return the text of the page."""
    data = json.dumps({"plan": plan.as_dict(), "grid": grid(plan)})
    parts = {
        "@FORMULAS@": _file("plan_formulas.js"),
        "@CHARTS@": _file("plan_charts.js"),
        # The data must not end the script that holds it. Last, because it may hold marks.
        "@DATA@": data.replace("<", "\\u003c"),
    }
    text = _file("plan_page.html")
    for mark, part in parts.items():
        text = text.replace(mark, part)
    return text


def _file(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


def grid(plan: Plan) -> dict[str, Any]:
    """Return the cost of every method per world size, for any bandwidth and latency."""
    given = {c.planning.ratio for c in plan.candidates if c.planning.ratio is not None}
    ratios = tuple(sorted({*RATIOS, *given}, reverse=True))
    ranks = sorted({*RANKS, plan.ranks})
    methods = methods_to_plan(ratios)
    candidates = [Candidate(m, m.planning(plan.model.tensors)) for m in methods]
    chosen = plan.chosen.planning.ratio
    return {
        "near": NEAR,
        "ranks": ranks,
        "ratios": ratios,
        "ratio": chosen or next((r for r in ratios if r in given), ratios[0]),
        "optimizers": TITLES,
        "measured": {name: TITLES[MEASURED_WITH[name] or name] for name in TITLES},
        "accuracy": {
            c.name: {name: asdict(accuracy(c.method, name)) for name in TITLES}
            for c in candidates
        },
        "choices": [
            _choice(plan, c, name, ranks) for c in candidates for name in c.algorithms
        ],
    }


def _choice(plan: Plan, c: Candidate, algorithm: str, ranks: list[int]) -> dict[str, Any]:
    costs = [c.cost(algorithm, n, plan.network) for n in ranks]
    return {
        "method": c.name,
        "collective": algorithm,
        "ratio": c.planning.ratio,
        "line": c.code(algorithm),
        "work": work(plan, c),
        "terms": [[t.rounds, t.messages, t.nbytes, t.work] for t in costs],
    }
