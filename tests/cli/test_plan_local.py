"""`sparcml plan --local-steps`."""

import json

from typer.testing import CliRunner

from sparcml.cli.app import app

PLAN = ["plan", "--params", "20M", "-n", "4", "--network", "100mbit", "--step-time", "1.2s"]


def run(*options):
    return CliRunner().invoke(app, [*PLAN, *options])


def test_the_table_and_json():
    shown = run("--local-steps", "30")
    assert shown.exit_code == 0, shown.output
    assert "DiLoCo, 3 fragments, delay 5" in shown.output
    assert "sparcml.torch." in shown.output
    rows = json.loads(run("--local-steps", "30", "--json").output)["local"]
    assert [row["form"] for row in rows][1:] == [
        "local SGD, H = 30",
        "DiLoCo, H = 30",
        "DiLoCo, 3 fragments, delay 5",
        "SparseLoCo, H = 30",
    ]
    far = json.loads(
        run("--local-steps", "30", "--sites", "2", "--wan", "50mbit", "--json").output
    )["local"]
    assert far[1]["step"] > rows[1]["step"]


def test_wrong_options():
    assert "--sites and --wan need --local-steps" in run("--sites", "2").output
    assert (
        "sites must divide the 4 ranks" in run("--local-steps", "9", "--sites", "3").output
    )
