"""A plug-in of each family, written outside the package, is found everywhere.

Each part runs in a process of its own: registration lasts as long as a process.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml import wire
from sparcml.quantize.code import Code

ROOT = Path(__file__).parents[1]
COLLECT = str(ROOT / "docs/collect.py")
IMPORTS = "from tests.plugins import byte, exchange_all, half_step, stride\n"


def python(code, *arguments):
    paths = [ROOT, Path(sparcml.__file__).parents[1], ROOT / "benchmarks"]
    done = subprocess.run(
        [sys.executable, "-c", IMPORTS + code, *arguments],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "COLUMNS": "400",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def command(*arguments):
    return python("from sparcml.cli import main; main()", *arguments)


def test_help_of_fit():
    text = command("fit", "--help")
    for name in ("stride:STEP", "byte", "half_step"):
        assert name in text


@pytest.mark.parametrize(
    "specification", ["stride:5", "byte", "stride:5,byte", "half_step"]
)
def test_fit_trains_with_it(specification, tmp_path):
    data = tmp_path / "train.svm"
    data.write_text("\n".join(f"{(-1) ** i} {i % 7 + 1}:1 9:0.5" for i in range(60)) + "\n")
    options = ("--out", str(tmp_path / "model"), "--epochs", "1")
    command("fit", str(data), *options, "--compress", specification)
    assert (tmp_path / "model").exists()


@pytest.mark.mpi
def test_ranks_that_a_command_starts_import_it(tmp_path):
    data = tmp_path / "train.svm"
    data.write_text("\n".join(f"{(-1) ** i} {i % 7 + 1}:1 9:0.5" for i in range(60)) + "\n")
    paths = [ROOT, Path(sparcml.__file__).parents[1]]
    options = ["--out", str(tmp_path / "model"), "--epochs", "1", "--compress", "byte"]
    done = subprocess.run(
        [sys.executable, "-m", "sparcml", "fit", str(data), "-n", "2", *options],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "SPARCML_PLUGINS": "tests.plugins.byte",
        },
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model").exists()


def test_a_class_that_is_defined_twice_replaces_itself():
    python("""
import importlib
from sparcml.quantize.base import QUANTIZERS
first = QUANTIZERS["byte"]
importlib.reload(byte)
assert QUANTIZERS["byte"] is byte.Byte is not first
""")


def test_parameters_that_do_not_reach_the_reader_are_refused():
    python("""
from dataclasses import dataclass
import numpy as np
from sparcml import Stream, wire

@dataclass(frozen=True)
class Stepped(byte.Byte):
    step: float = 0.125
    name = "stepped"
    wire_formats = (201,)

try:
    wire.encode(Stream(9, [3], np.ones(1, "f4")), wire.Tag(0, 1), Stepped(0.5))
except TypeError as error:
    assert "from_wire must be defined" in str(error)
else:
    raise AssertionError
""")


def test_help_of_bench():
    assert "exchange_all" in command("bench", "allreduce", "--help")


def test_rows_of_the_planner():
    options = ("--params", "10M", "--ranks", "8", "--step-time", "250ms", "--json")
    rows = json.loads(command("plan", *options))["rows"]
    assert {"Stride", "Byte", "HalfStep"} <= {row["method"] for row in rows}
    assert "exchange_all" in {row["collective"] for row in rows}


def test_laws_of_the_collective():
    python("""
import sparcml
from sparcml import wire
from sparcml.quantize.code import Code
from tests import laws, rosters
assert "exchange_all" in rosters.LOSSLESS and "exchange_all" in rosters.COUNTED

def work(comm):
    for case in laws.CASES:
        laws.same_sum(comm, "exchange_all", case)
        laws.declared_cost(comm, "exchange_all", case)
    laws.same_bits(comm, "exchange_all", "sum")
    return comm.explain(laws.inputs_of(laws.one_percent, comm.size)[comm.rank])

for ranks in (1, 2, 3, 4):
    explanation = sparcml.launch(work, ranks)[0]
assert "exchange_all" in str(explanation)
""")


def test_rosters_and_laws():
    python("""
import sparcml
from sparcml import wire
from sparcml.quantize.code import Code
from tests import rosters
from tests.aggregate.gradients import conserves
assert "stride 0" in rosters.SPARSIFIERS and "stride 0" in rosters.EXACT
for name in ("stride 0", "byte 0", "half_step 0"):
    assert name in rosters.CONSERVING
    sparcml.launch(lambda comm: conserves(comm, name), 3)
""")


def test_a_message_is_decoded():
    python("""
import numpy as np, sparcml
from sparcml import wire
stream = sparcml.Stream(100, [3, 50], [1.5, -2.25])
message, _ = wire.encode(stream, wire.Tag(call=0, sequence=1), byte.Byte())
np.testing.assert_array_equal(wire.decode(message).to_dense(), stream.to_dense())
""")


def test_documents():
    text = python("import methods_page; print(methods_page.names())")
    for row in (
        "| `stride:STEP` | `Stride` | sparsifier |  |",
        "| `byte` | `Byte` | quantizer | 200 |",
        "| `half_step` | `HalfStep` | aggregation method |  |",
    ):
        assert row in text
    page = python(f"import runpy; print(runpy.run_path({COLLECT!r})['page']())")
    assert "## exchange_all\n\nA collective: every rank sends" in page


def test_a_quantizer_that_writes_too_much_is_refused():
    class Long(type(sparcml.Natural())):  # type: ignore[misc]
        def encode(self, values, seed=0, out=None):
            code = super().encode(values, seed)
            return Code(len(values), np.zeros(code.nbytes + 1000, np.uint8))

    x = sparcml.Stream(100, [1, 5, 9], np.ones(3, np.float32))
    with pytest.raises(ValueError, match="another number of bytes than its nbytes"):
        wire.encode(x, wire.Tag(1, 2), Long())


@pytest.mark.parametrize("dtype", [">f8", "uint64", "complex64"])
def test_values_that_messages_cannot_have_are_refused(dtype):
    def body(comm):
        values = np.arange(1, 4).astype(dtype)
        x = sparcml.Stream.unchecked(100, np.array([1, 2, 3], np.uint32), values)
        with pytest.raises(
            (TypeError, sparcml.TransportError), match="values of a stream must"
        ):
            comm.allreduce(x, algorithm="ssar_split_allgather")

    sparcml.launch(body, 2)
