"""Error messages: their form, and wrong objects where a function expects another type."""

# mypy: disable-error-code="arg-type"

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Compressed, OneBit, Schedule, TopK, launch, simulate

SOURCE = Path(sparcml.__file__).parent
# Their callers add a name: the command, the option, the file or the message.
COMPLETED_BY_CALLERS = {
    "units.py",
    "network/store.py",
    "linear/training/model.py",
    "linear/training/options.py",
    "quantize/base.py",
    "quantize/bitplane.py",
}
NAMED = re.compile(r"(rank |[\w.]*)(\w|\{\})+: ")  # "allreduce: op must be ..."


def message(node):
    """The text of a string, with {} for what is formatted into it; None for other nodes."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(message(part) or "{}" for part in node.values)
    return None


def test_errors_about_arguments_name_the_function():
    unnamed = []
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE).as_posix()
        if place in COMPLETED_BY_CALLERS or place.startswith("cli/"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not node.args:
                continue
            if getattr(node.func, "id", "") in ("ValueError", "TypeError", "RuntimeError"):
                text = message(node.args[0])
                if text is not None and not NAMED.match(text):
                    unnamed.append(f"{place}:{node.lineno}: {text}")
    assert not unnamed, "\n".join(unnamed)


X = np.ones(100, np.float32)
METHOD = Compressed(TopK(0.1))


def on_ranks(work, ranks=1):
    return lambda: launch(work, ranks)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: launch(3, ranks=1), "launch: fn must be a function of a Comm.*, got 3"),
        (lambda: launch(print, ranks="2"), "launch: ranks must be an integer, got '2'"),
        (lambda: simulate(3), "simulate: fn must be a function"),
        (lambda: simulate(print, network=None), "network: name must be .*1gbit.*got None"),
        (lambda: Schedule(3), "Schedule: stages must be pairs of a step and a sparsifier"),
        (lambda: Schedule([1, 2]), "Schedule: stages must be pairs"),
        (lambda: QSGD().decode(b"abc"), "decode: code must be a Code, .*got bytes"),
        (lambda: OneBit().decode(3), "decode: code must be a Code, .*got int"),
        (lambda: METHOD.aggregate(3, X, METHOD.init(100)), "comm must be a Communicator"),
        (on_ranks(lambda c: METHOD.aggregate(c, X, {})), r"state must be .*init\(\)"),
        (on_ranks(lambda c: METHOD.aggregate(c, X, None)), "state must be .*got None"),
        (on_ranks(lambda c: c.reduce(X, root="a")), "reduce: root must be an integer"),
        (on_ranks(lambda c: c.broadcast(X, root=0.0)), "broadcast: root must be an int"),
        (on_ranks(lambda c: c.allreduce(X, seed="a")), "allreduce: seed must be an int"),
        (on_ranks(lambda c: c.allreduce("a")), "allreduce: x must be a Stream, .*got str"),
        (on_ranks(lambda c: c.allgather("a")), "allgather: x must be a Stream"),
        (on_ranks(lambda c: c.iallreduce("a")), "iallreduce: x must be a Stream"),
        (on_ranks(lambda c: c.advance("a")), "advance: seconds must be a number"),
        (on_ranks(lambda c: c.iallreduce(X).wait("a")), "wait: timeout must be a number"),
    ],
)
def test_an_object_of_the_wrong_type_is_refused_in_words(call, text):
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf")])
def test_a_wait_of_impossible_length(timeout):
    with pytest.raises(ValueError, match="wait: timeout must be finite and >= 0"):
        launch(lambda comm: comm.iallreduce(X).wait(timeout), 1)
