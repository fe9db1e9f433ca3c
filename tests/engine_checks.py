"""Checks of an engine of processes: one job runs all of them, and each is a test id.

A job runs the checks in order and writes one JSON line per check. The tests of an engine
are parametrized by check and look up their line, so that the start of processes, which
takes seconds, is shared by all of them, also between the workers of pytest-xdist.
"""

from __future__ import annotations

import fcntl
import json
from functools import partial
from typing import TYPE_CHECKING

from tests import call_laws, laws, rosters
from tests.aggregate import gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def law_checks(ops_of: Callable[[str], Sequence[str]]) -> dict[str, Callable[..., None]]:
    """Return the laws by test id: one check per law and collective or method.

    Args:
        ops_of: Returns the operations to check of a lossless algorithm.
    """
    checks: dict[str, Callable[..., None]] = {}
    for algorithm in ("auto", *rosters.LOSSLESS):
        check = partial(_same_sum, algorithm, laws.CASES, ops_of(algorithm))
        checks[f"same_sum-{algorithm}"] = check
        checks[f"integers-{algorithm}"] = partial(
            _same_sum, algorithm, laws.INTEGERS, rosters.OPS
        )
    for algorithm in rosters.LOSSY:
        checks[f"same_sum-{algorithm}"] = partial(
            _same_sum, algorithm, laws.ROOM_FOR_ALL, ("sum",)
        )
        checks[f"largest_sums-{algorithm}"] = partial(
            _all_cases, laws.largest_sums, algorithm
        )
    for algorithm, op in rosters.REDUCTIONS:
        checks[f"same_bits-{algorithm}-{op}"] = partial(_same_bits, algorithm, op)
    for algorithm in rosters.COUNTED:
        checks[f"declared_cost-{algorithm}"] = partial(
            _all_cases, laws.declared_cost, algorithm
        )
    for algorithm in rosters.COMPUTED:
        checks[f"computed_cost-{algorithm}"] = partial(
            _all_cases, laws.computed_cost, algorithm
        )
    for law in call_laws.CALLS:
        checks[f"calls-{law.__name__}"] = law
    for name in rosters.METHODS:
        checks[f"conserves-{name}"] = partial(_conserves, name)
    return checks


def _same_sum(algorithm, cases, ops, comm):
    for case in cases:
        for op in ops:
            laws.same_sum(comm, algorithm, case, op)


def _same_bits(algorithm, op, comm):
    laws.same_bits(comm, algorithm, op)


def _all_cases(law, algorithm, comm):
    for case in laws.CASES:
        law(comm, algorithm, case)


def _conserves(name, comm):
    gradients.conserves(comm, name)


def run_checks(comm, checks, path) -> None:
    """Run the checks in order; rank 0 appends one line per check to the file.

    A failed check ends the job: its ranks may be in different calls.
    """
    for name, check in checks.items():
        error = None
        try:
            check(comm)
            comm.barrier()  # raises if another rank has failed
        except BaseException as caught:
            error = caught
            comm.abort(caught)
        if comm.rank == 0:
            text = None if error is None else f"{type(error).__name__}: {error}"
            with path.open("a") as file:
                file.write(json.dumps({"check": name, "error": text}) + "\n")
        if error is not None:
            raise error


def assert_check(path, name, run) -> None:
    """Assert that a check has passed, in the job whose lines are in the file.

    Args:
        path: The file; the first caller of all processes runs the job.
        name: The check.
        run: Runs the job, which writes to the file, and returns its error output.
    """
    output = path.with_suffix(".err")
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not output.exists():
            path.touch()
            output.write_text(run())
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    errors = {line["check"]: line["error"] for line in lines}
    assert name in errors, f"not reached: {output.read_text()[-3000:]}"
    assert errors[name] is None, output.read_text()[-3000:]
