"""Files that version 0.1 wrote are read, and training resumes from them with the same bits."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml import QSGD, Compressed, TopK

from .cases import SHAPES, digest, gradient

FILES = Path(__file__).with_name("files")
GOLDEN = json.loads((FILES / "digests.json").read_text())
METHOD = Compressed(TopK(k=4, bucket=64), QSGD(bits=4, bucket=64), dense_below=100)


def command(*arguments, cwd=None):
    done = subprocess.run(
        [sys.executable, "-m", "sparcml", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def margins(model):
    text = command("predict", model, FILES / "rows.svm", "--what", "margins")
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize("name", ["model-sgd", "model-classes", "model-scd"])
def test_models(name):
    assert margins(FILES / name) == GOLDEN[name]


RESUMED = {
    "checkpoint-sgd": ["--l2", "0.001", "--momentum", "0.9"],
    "checkpoint-topk": ["-n", "2", "--compress", "topk:0.05,qsgd:4"],
    "checkpoint-scd": ["--solver", "scd", "--l2", "0.01"],
}


def resumed(name, place):
    shutil.copytree(FILES / name, place / name)
    shutil.copy(FILES / "rows.svm", place)
    same = ["--seed", "1", "--epochs", "3", "--out", "model", *RESUMED[name]]
    command("fit", "rows.svm", *same, "--checkpoint", name, "--resume", cwd=place)
    return margins(place / "model")


@pytest.mark.mpi
@pytest.mark.parametrize("name", RESUMED)
def test_checkpoints(name, tmp_path):
    assert resumed(name, tmp_path) == GOLDEN[name]


def steps(comm, state, first, last):
    for step in range(first, last):
        mean, state = METHOD.aggregate(comm, gradient(comm.rank, step), state)
    return mean, state


def test_states_of_aggregation_methods():
    def body(comm):
        with np.load(FILES / f"state-{comm.rank}.npz") as kept:
            state = {key: kept[key] for key in kept.files}
        mean, _ = steps(comm, state, 3, 4)
        return digest(*(mean[n] for n in sorted(mean)))

    assert set(sparcml.launch(body, 2)) == {GOLDEN["state"]}


@pytest.mark.torch
def test_states_of_torch_handles():
    done = subprocess.run(
        [sys.executable, Path(__file__).with_name("torch_state.py")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "topk loaded\ndgc loaded\n"


def test_a_measured_network():
    program = "import sparcml; print(sparcml.world().network.latency)"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "SPARCML_NETWORK": str(FILES / "network.json")},
        capture_output=True,
        text=True,
    )
    assert done.stdout == "5.2e-05\n", done.stderr[-2000:]


def record():
    """Write the states and the digests; models and checkpoints were made by the commands."""
    import tempfile

    def body(comm):
        _, state = steps(comm, METHOD.init(SHAPES), 0, 3)
        np.savez(FILES / f"state-{comm.rank}.npz", **state)
        mean, _ = steps(comm, state, 3, 4)
        return digest(*(mean[n] for n in sorted(mean)))

    found = {"state": sparcml.launch(body, 2)[0]}
    for name in ("model-sgd", "model-classes", "model-scd"):
        found[name] = margins(FILES / name)
    for name in RESUMED:
        with tempfile.TemporaryDirectory() as place:
            found[name] = resumed(name, Path(place))
    (FILES / "digests.json").write_text(json.dumps(found, indent=1) + "\n")
