"""Compute the golden digests: `python -m tests.golden.record` writes `digests.json` again.

With `--print` the digests of this process (or, under mpiexec, of these ranks) go to standard
output instead. Record only on purpose: the file is the definition of "same results".
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import sparcml
from sparcml.costs import ONE_MACHINE

from . import cases

FILE = Path(__file__).with_name("digests.json")


def on_ranks(comm):
    """Everything that needs ranks, as one rank sees it."""
    found = {**cases.collectives(comm), **cases.methods(comm)}
    found["linear models"] = cases.linear(comm)
    return found


def on_threads() -> dict[str, dict[str, dict[str, str]]]:
    """The whole file: by number of ranks, group and case."""
    found = {str(n): sparcml.launch(on_ranks, n)[0] for n in cases.RANKS}
    return {"single": cases.single(), **found}


def main() -> None:
    if "--print" not in sys.argv:
        FILE.write_text(json.dumps(on_threads(), indent=0, sort_keys=True) + "\n")
        return
    with sparcml.world() as comm:
        comm._set_network(ONE_MACHINE)  # auto chooses as on threads
        found = {str(comm.size): on_ranks(comm)}
        if comm.rank == 0:
            json.dump({"single": cases.single(), **found}, sys.stdout)


if __name__ == "__main__":
    main()
