"""Second half of claim 20: BMUF, which communicates rarely, against compressed DDP on an LSTM.

The rows are those of docs/local.md and docs/training.md. Their modules import torch, so they are
imported only where they are used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tables import markdown, newest

if TYPE_CHECKING:
    from local.losses import Case

NETWORK, FORM = "moby-dick", "BMUF"


def compared() -> list[Case]:
    """Return the runs of BMUF and of compressed DDP, by ranks and bytes."""
    from local.losses import cases, compressed

    kept = newest("local")
    rows = [] if kept is None else kept["rows"]
    found = [c for c in cases(rows) if (c.network, c.form) == (NETWORK, FORM)]
    return sorted([*compressed(NETWORK, rows), *found], key=lambda c: (c.workers, c.sent))


def verdict() -> str:
    """Return one sentence on the best run of each."""
    from local.losses import COMPRESSED

    found = compared()
    rare = [case for case in found if case.form == FORM]
    often = [case for case in found if case.form == COMPRESSED]
    if not rare or not often:
        return "the talk compares with BMUF, which communicates rarely: no runs here"
    best = [min(group, key=lambda case: case.difference) for group in (rare, often)]
    texts = [
        f"{case.text()} perplexity with {case.sent / 1e6:.0f} MB per rank ({case.workers} ranks)"
        for case in best
    ]
    return (
        f"the talk compares with BMUF, which communicates rarely: on our word LSTM it ends at "
        f"{texts[0]}, compressed DDP at {texts[1]}, relative to synchronous training"
    )


def table() -> str:
    """Return all runs."""
    head = ["method", "ranks", "steps per round", "synchronous start", "perplexity"]
    head += ["vs synchronous", "MB sent per rank", "seeds"]
    lines = []
    for case in compared():
        score = "" if case.score is None else f"{case.score:.2f}"
        cells = [case.form, str(case.workers), str(case.every), f"{case.start:.0%}", score]
        lines.append([*cells, case.text(), f"{case.sent / 1e6:.1f}", str(case.seeds)])
    return (
        "The talk's 14 days are those of BMUF, which averages models with block momentum after "
        "many local steps. The word LSTM of [training.md](training.md) compares both at equal "
        "tokens; see [local.md](local.md) for the runs:\n\n" + markdown(head, lines)
    )
