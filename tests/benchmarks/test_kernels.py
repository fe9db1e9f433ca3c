"""`benchmarks/run_kernels.py`: rows, columns, and checks that notice wrong results."""

import json
import subprocess
import sys
from pathlib import Path

import kernels as families
import numpy as np
import pytest
import run_kernels
from harness.command import main
from harness.stopwatch import Stopwatch
from kernels import dense
from kernels.case import Case, measure

from sparcml import kernels

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "run_kernels.py"


def test_kernels_are_timed_and_right(tmp_path):
    file = tmp_path / "kernels.json"
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--quick", "--size", "64K", "--json", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(file.read_text())
    assert found["environment"]["numpy"] == np.__version__
    assert {row["isa"] for row in found["rows"]} == set(kernels.isas())
    assert all(row["wrong"] == 0 for row in found["rows"])
    names = {row["kernel"].partition(",")[0] for row in found["rows"]}
    assert names >= {"merge", "merge_many", "scatter", "compact", "dense sum", "crc32c"}
    assert names >= {
        "encode message",
        "decode message",
        "QSGD8 encode",
        "QSGD4 decode",
        "Natural encode",
    }
    assert names >= {"top 1.0%", "top 4 of 512", "threshold", "residual + top 1 %"}
    for word in ("median", "q1", "q3", "throughput", "time/peer", "floor", "met", "#wrong"):
        assert word in done.stdout


def test_a_wrong_kernel_is_noticed():
    case = next(dense.cases(1 << 14, np.random.default_rng(0)))
    assert measure(case, kernels.isa(), Stopwatch(0.0, 1))["wrong"] == 0
    case.want[0][5] += 1
    assert measure(case, kernels.isa(), Stopwatch(0.0, 1))["wrong"] == 1


def run(*arguments):
    return main(
        "kernels",
        run_kernels.measure_all,
        run_kernels.verdict,
        min_size="16K",
        arguments=arguments,
    )


def test_a_wrong_row_fails_the_command(monkeypatch, capsys):
    monkeypatch.setattr(families, "FAMILIES", (dense,))
    monkeypatch.setattr(Case, "wrong", lambda case: int(case.what == "dense sum"))
    assert run("--size", "16K", "--quick") == 1
    assert "# FAILED" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments", [("--size", "1"), ("--size", "1X"), ("--json", "no/such/folder/x.json")]
)
def test_usage_errors_quote_the_argument(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        run(*arguments)
    assert stop.value.code == 2
    assert arguments[-1] in capsys.readouterr().err
