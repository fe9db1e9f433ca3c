"""The table of `sparcml.aggregate.evidence`: results of the methods that a plan compares."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from sparcml.aggregate.evidence import Result, measured_methods

from .judge import complete
from .summary import excess
from .texts import tolerance, with_unit
from .workloads import WORKLOADS

if TYPE_CHECKING:
    from .jobs import Row
    from .judge import Judged


def table(rows: list[Row]) -> str:
    """Return the file: complete results at the dense learning rate, one per line."""
    found = [_result(row) for row in complete(rows) if row.multiple == 1]
    lines = [
        json.dumps(asdict(result), ensure_ascii=False)
        for result in found
        if result.method in measured_methods(result.optimizer)
    ]
    return "[\n  " + ",\n  ".join(lines) + "\n]\n"


def _result(row: Judged) -> Result:
    work = WORKLOADS[row.network]
    return Result(
        row.method,
        work.optimizer,
        work.title,
        row.ranks,
        with_unit(row),
        tolerance(work),
        float(f"{excess(row):.3g}") + 0.0,  # no -0.0
    )
