"""The examples run unchanged, in one process and on MPI ranks."""

import contextlib
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from tests.torch_engine.jobs import outcomes

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = sorted((*FOLDER.glob("*.py"), *FOLDER.glob("plugins/*.py")))
OWN_TESTS = ("mean_estimation", "one_bit_stalls")  # that look at the output
LAUNCHED = [path for path in EXAMPLES if "sparcml run" in path.read_text()]
TORCH = FOLDER / "torch"

# Arguments of the torch examples that make each run in about a second.
TINY = {
    "atis": "--rows 64 --method topk",
    "fashion_mnist": "--rows 96 --method powersgd",
    "moby_dick": "--rows 64 --method dgc",
    "gpt": "--rows 64 --method qsgd",
    "clicks": "--rows 4096 --method topk",
    "large_batch": "--rows 512 --method topk1 --epochs 1",
    "neighbors": "--rows 96 --method dpsgd",
    "local_steps": "--rows 96 --method diloco --sync-every 2 --synchronous-steps 1",
}
TORCH_HOOKS = {"fp16": "atis", "torch-powersgd": "atis", "dense": "clicks"}


def run(*command):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "path", [p for p in EXAMPLES if p.stem not in OWN_TESTS], ids=lambda path: path.stem
)
def test_in_one_process(path):
    assert run(path)


@pytest.mark.mpi
@pytest.mark.parametrize("path", LAUNCHED, ids=lambda path: path.stem)
def test_on_two_ranks(path):
    assert run("-m", "sparcml", "run", "-n", "2", path)


def test_the_error_of_a_mean_falls_with_the_ranks():
    (path,) = [p for p in EXAMPLES if p.stem == "mean_estimation"]
    slope = re.search(r"slope in log-log: (\S+)", run(path))
    assert slope is not None
    assert float(slope[1]) == pytest.approx(-1, abs=0.1)


def test_one_bit_stalls_without_feedback_and_not_with_it():
    (path,) = [p for p in EXAMPLES if p.stem == "one_bit_stalls"]
    lines = re.findall(r"^(.+?) +loss .*, +(\S+) times", run(path), re.MULTILINE)
    ratios = {name: float(ratio) for name, ratio in lines}
    for name in ("1-bit", "sign"):
        assert ratios[f"{name}, no feedback"] > 10
        assert ratios[f"{name}, with feedback"] < 1.1


def as_rank(name, options, out):
    """Run an example in this process, and write its output to a file."""
    sys.path.insert(0, str(TORCH))
    sys.argv = [name, "--epochs", "1", *options.split()]
    with out.open("a") as file, contextlib.redirect_stdout(file):
        runpy.run_path(str(TORCH / f"{name}.py"), run_name="__main__")


def printed(name, options, out):
    """Return the output of the first of two ranks."""
    pytest.importorskip("torch")
    assert outcomes(2, as_rank, name, options, out) == ["finished"] * 2
    return out.read_text()


@pytest.mark.torch
@pytest.mark.parametrize("name", TINY)
def test_with_torch_on_two_ranks(name, tmp_path):
    text = printed(name, TINY[name], tmp_path / "out")
    (line,) = text.splitlines()
    start = r"DiLoCo.*: 3 steps" if name == "local_steps" else r"epoch 1: loss \d+\.\d+"
    assert re.search(start + r", .+ \d+\.\d+, .*\d+\.\d+ MB sent", line)


@pytest.mark.torch
@pytest.mark.parametrize("method", TORCH_HOOKS)
def test_hooks_of_torch(method, tmp_path):
    name = TORCH_HOOKS[method]
    options = TINY[name].partition("--method")[0]
    text = printed(name, f"{options} --method {method}", tmp_path / "out")
    assert text.startswith(f"{method}, epoch 1: loss ")


def test_every_example_is_run():
    shared, own_test = {"hooks", "loop"}, {"lstm_speed"}
    assert {path.stem for path in TORCH.glob("*.py")} == set(TINY) | shared | own_test


@pytest.mark.torch
def test_the_compressed_lstm_sends_fewer_bytes():
    pytest.importorskip("torch")
    script = TORCH / "lstm_speed.py"
    command = (
        "-m",
        "sparcml",
        "run",
        "--engine",
        "torch",
        "-n",
        "2",
        script,
        "--steps",
        "9",
    )
    dense, compressed = run(*command).splitlines()
    sent = [float(re.findall(r"(\S+) MB", line)[0]) for line in (dense, compressed)]
    assert sent[0] > 50 * sent[1]
