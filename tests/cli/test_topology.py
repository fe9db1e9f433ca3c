"""`sparcml topology`: the table, the JSON, the pictures, and what it refuses."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from typer.testing import CliRunner

from sparcml import decentralized as dec
from sparcml.cli.app import app
from sparcml.decentralized.drawing import draw
from sparcml.decentralized.named import NAMES

from .. import rosters


def topology(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["topology", *arguments], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.output


def test_table_of_several_fits_80_columns():
    text = topology(*NAMES, "base_graph:4", "-n", "25", "--parameters", "1M")
    lines = text.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert "…" not in text
    assert lines[0] == "25 ranks, 1,000,000 parameters of float32"
    rows = {line.split()[0]: line.split()[1:] for line in lines if line[:1].isalpha()}
    assert rows["ring"] == ["1", "2", "8.0", "MB", "8.0", "MB", "0.02094", "653"]
    assert rows["base_graph:4"] == ["2", "4", "16.0", "MB", "16.0", "MB", "1", "2"]
    assert rows["star"][:6] == ["1", "24", "7.7", "MB", "96.0", "MB"]  # the hub
    assert rows["One"][-4:] == ["7.7", "MB", "per", "rank."]


def test_json_has_all_numbers():
    made = json.loads(topology("ring", "torus:2x4", "-n", "8", "--tol", "1e-3", "--json"))
    assert (made["ranks"], made["parameters"], made["tol"]) == (8, 25_600_000, 1e-3)
    ring, torus = made["topologies"]
    assert (ring["topology"], ring["name"], torus["name"]) == (
        "ring",
        "ring(8)",
        "torus(2, 4)",
    )
    assert ring["spectral_gap"] == pytest.approx(0.19526, abs=1e-5)
    assert ring["lambda_min"] == pytest.approx(-1 / 3)
    assert ring["bytes_per_step"] == 2 * (32 + 4 * 25_600_000)
    assert ring["rho"] == pytest.approx(1 - 0.19526, abs=1e-5)
    assert ring["steps_to_consensus"] == dec.ring(8).steps_to_consensus(1e-3)
    assert torus["degree"] == 3
    assert torus["is_doubly_stochastic"]


def test_consensus_that_is_never_reached(tmp_path):
    np.save(tmp_path / "turn.npy", np.roll(np.eye(4), 1, 1))
    path = str(tmp_path / "turn.npy")
    assert "never" in topology(path, "-n", "4")
    made = json.loads(topology(path, "-n", "4", "--json"))
    assert made["topologies"][0]["steps_to_consensus"] is None


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_picture(tmp_path, suffix):
    path = tmp_path / f"rings{suffix}"
    text = topology("ring", "one_peer_exponential", "-n", "8", "--out", str(path))
    assert text.endswith(f"Picture: {path}\n")
    content = path.read_bytes()
    if suffix == ".png":
        assert content.startswith(b"\x89PNG")
    else:
        assert ET.fromstring(content).tag.endswith("svg")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["rign"], "topology must be one of ring, torus,"),
        (["ring:3"], "topology ring has no option, got '3'"),
        (["torus:3x3"], "sides with the product 16, such as torus:4x4, got '3x3'"),
        (["ring", "-n", "0"], "n must be >= 1, got 0"),
        (["random_regular:5", "-n", "5"], "degree must be from 2 to 4"),
        (["ring", "--parameters", "0"], "parameters must be at least 1, got '0'"),
        (["ring", "--parameters", "many"], "count must be a number such as 25.6M"),
        (["ring", "--tol", "2"], "tol must be between 0 and 1, got 2.0"),
        (["ring", "--out", "ring.abc"], "plot must end in one of"),
        (["ring", "--out", "/none/ring.svg"], "no folder for '/none/ring.svg'"),
        (["none.npy"], "'none.npy' is not a matrix"),
    ],
)
def test_bad_input(arguments, why):
    done = CliRunner().invoke(app, ["topology", *arguments], env={"COLUMNS": "300"})
    assert done.exit_code == 2
    assert why in " ".join(done.output.replace("│", " ").split())


@pytest.mark.parametrize("name", rosters.TOPOLOGIES)
def test_notebooks_show_a_picture(name):
    for n in (1, 2, 7):
        picture = rosters.TOPOLOGIES[name](n)._repr_svg_()
        assert picture is not None
        assert ET.fromstring(picture).tag.endswith("svg")


def test_panels_are_the_steps():
    figure = draw([dec.ring(5), dec.base_graph(5), dec.star(300), dec.complete(300)])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["ring(5)", "base_graph(5, degree=1)\nstep 0 of 5"]
    assert len(titles) == 1 + 5 + 2
    assert titles[-1] == "complete(300)\n44,850 edges are not drawn"
    ring = figure.axes[0]
    assert len(ring.collections[0].get_segments()) == 5
    assert [text.get_text() for text in ring.texts] == ["0", "1", "2", "3", "4"]
