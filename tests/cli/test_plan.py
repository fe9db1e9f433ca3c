"""`sparcml plan`: the table, the JSON, the page, and what it refuses."""

import itertools
import json
import re
import shutil
import subprocess
from dataclasses import replace

import pytest
from typer.testing import CliRunner

import sparcml
from sparcml.aggregate.evidence import MEASURED_WITH
from sparcml.cli.app import app

NODE = shutil.which("node")
USUAL = ("--params", "2M", "--ranks", "12", "--network", "1gbit", "--step-time", "50ms")
VERDICT = ("Dense is", "Faster; ", "Recommended ")
# What the page computes, from its own formulas and data, before anything is moved.
ASK = """
const { plan, grid } = DATA;
const is = { ranks: plan.ranks, network: plan.network, compute: plan.compute,
             overlap: plan.overlap, optimizer: plan.optimizer };
const rows = grid.ratios.flatMap((ratio) => table(grid, { ...is, ratio }));
const take = recommended(bests(table(grid, { ...is, ratio: grid.ratio })), grid.near);
console.log(JSON.stringify({ rows, take }));
"""


def plan(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["plan", *arguments], env={"COLUMNS": "80"})
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The JSON, and the page of the same plan."""
    path = tmp_path_factory.mktemp("plan") / "plan.html"
    printed = plan(*USUAL, "--overlap", "0.25", "--json", "--html", str(path))
    return json.loads(printed), path


def data_of(text: str):
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text)
    return json.loads(found)


def test_tables_fit_80_columns_and_end_with_the_line():
    text = plan(*USUAL)
    lines = text.splitlines()
    tables = itertools.takewhile(lambda line: not line.startswith(VERDICT), lines)
    assert all(len(line) <= 80 and "…" not in line for line in tables)
    assert "no time was measured" in text
    assert isinstance(eval(text.strip().splitlines()[-1]), sparcml.Method)


@pytest.mark.parametrize("optimizer", MEASURED_WITH)
def test_only_methods_of_known_accuracy_are_recommended(optimizer):
    given = ("--model", "resnet50", "--ranks", "16", "--optimizer", optimizer)
    for network in ("10mbit", "100mbit", "1gbit", "10gbit", "100gbit"):
        found = json.loads(plan(*given, "--network", network, "--json"))
        assert found["optimizer"] == optimizer
        best = found["recommended"]
        assert best["accuracy"] in ("exact", "kept"), best
        if optimizer == "other":
            assert best["method"] == "dense"
        for row in found["rows"]:
            assert row["accuracy"] in ("exact", "kept", "not kept", "not measured")
            measured = row["accuracy"] in ("kept", "not kept")
            assert measured == row["measurement"].endswith(" ranks; docs/training.md"), row


def test_the_recommended_methods_are_those_of_torch_recommended():
    """On a link of 1 Gbit/s the plan recommends what `recommended` returns."""
    torch = pytest.importorskip("torch")
    from sparcml.torch import recommended

    weight = [torch.nn.Parameter(torch.zeros(1))]
    for name, optimizer, slow, network in (
        ("sgd", torch.optim.SGD(weight, lr=1.0), False, "1gbit"),
        ("adam", torch.optim.Adam(weight), False, "1gbit"),
        ("adamw", torch.optim.AdamW(weight), False, "1gbit"),
        ("adamw", torch.optim.AdamW(weight), True, "50mbit"),
    ):
        given = ("--model", "gpt2", "--ranks", "16", "--optimizer", name)
        text = plan(*given, "--network", network)
        method = eval(text.strip().splitlines()[-1], {"sparcml": sparcml})
        expected = recommended(optimizer, getattr(method, "steps", None), slow_link=slow)
        assert replace(method, algorithm="auto", steps=None) == expected, name


def test_the_default_optimizer_is_adamw():
    text = plan(*USUAL)
    assert text == plan(*USUAL, "--optimizer", "AdamW")
    assert "Optimizer adamw; others: --optimizer sgd, adam, other" in text
    assert "Recommended with AdamW: " in text


def test_what_is_faster_is_said():
    text = plan("--model", "resnet50", "--ranks", "16", "--network", "1gbit")
    (lost,) = re.findall(r"^Faster; accuracy not kept: (.*)\.$", text, re.MULTILINE)
    assert "TopK 0.1 %, 8 bits (" in lost
    (unknown,) = re.findall(r"^Faster; not measured: (.*)\.$", text, re.MULTILINE)
    assert unknown.startswith("TopK 25-3 %, 4 bits (")
    assert re.search(r"^TopK 1 % .* not kept: -35\.36 %, character GPT", text, re.MULTILINE)
    assert re.search(r"^TopK 0\.1 % .* not kept: see TopK 1 %", text, re.MULTILINE)
    assert "on the LSTM tagger on ATIS (tolerance 0.3 points)" in text


def test_known_models_need_no_step_time():
    text = plan("--model", "resnet50", "--ranks", "4")
    assert "25,557,032 parameters" in text
    assert "assumed: 32 images" in text


def test_where_dense_wins_is_said():
    text = plan("--params", "100k", "--ranks", "4", "--network", "100gbit",
                "--step-time", "0.5s")  # fmt: skip
    assert "Dense is faster than: " in text
    assert text.strip().endswith("sparcml.Dense()")


@pytest.mark.slow
def test_page_has_the_numbers_of_the_json(made):
    printed, path = made
    assert data_of(path.read_text())["plan"] == printed


def test_page_fetches_nothing(made):
    text = made[1].read_text()
    assert not re.search(
        r"https?:|//cdn|\bsrc=|\bhref=|fetch\(|import\(|@import|url\(", text
    )


def test_page_grid_gives_the_rows_of_the_json(made):
    printed, path = made
    grid, network = data_of(path.read_text())["grid"], printed["network"]
    at = grid["ranks"].index(printed["ranks"])
    choices = {(c["method"], c["collective"]): c for c in grid["choices"]}
    costs = [network["latency"], network["overhead"], network["seconds_per_byte"], 1.0]
    for row in printed["rows"]:
        choice = choices[row["method"], row["collective"]]
        found = sum(c * t for c, t in zip(costs, choice["terms"][at], strict=True))
        assert found == pytest.approx(row["communication"])
        assert choice["line"] == row["line"]


@pytest.mark.skipif(NODE is None, reason="no node here")
def test_page_formulas_give_the_rows_of_the_json(made):
    printed, path = made
    text = path.read_text()
    (formulas,) = re.findall(r'<script id="formulas">(.*?)</script>', text, re.DOTALL)
    program = f"{formulas}\nconst DATA = {json.dumps(data_of(text))};\n{ASK}"
    done = subprocess.run(
        [str(NODE), "-"], input=program, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    rows = {(row["method"], row["collective"]): row for row in found["rows"]}
    for row in printed["rows"]:
        mine = rows[row["method"], row["collective"]]
        for key in ("communication", "exposed", "step", "speedup", "nbytes"):
            assert mine[key] == pytest.approx(row[key]), (row, key)
    assert found["take"]["line"] in {row["line"] for row in printed["rows"]}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--ranks", "8"], "--params"),
        (["--params", "1M", "--model", "gpt2"], "--params"),
        (["--params", "1M"], "--step-time"),
        (["--params", "-1", "--step-time", "1s"], "params"),
        (["--params", "1M", "--step-time", "soon"], "step time"),
        (["--params", "1M", "--step-time", "0s"], "step time"),
        (["--params", "1M", "--step-time", "1.2.3s"], "step time"),
        (["--model", "gpt2", "--ranks", "1"], "sparcml plan: ranks must be from 2"),
        (["--model", "gpt2", "--network", "carrier-pigeon"], "gige, 10gbit"),
        (["--model", "gpt2", "--network", "-3gbit"], "bandwidth must be from"),
        (["--model", "gpt2", "--network", "0gbit"], "bandwidth must be from"),
        (["--model", "gpt2", "--network", "1e9gbit"], "bandwidth must be from"),
        (["--model", "gpt2", "--network", "1gbit,-5us"], "latency must be from 0"),
        (["--model", "gpt2", "--network", "1gbit,soon"], "latency must be a time"),
        (["--params", "1k", "--step-time", "1s", "--html", "no/p.html"], "'no/p.html'"),
        (["--model", "gpt2", "--optimizer", "lion"], "one of sgd, adamw, adam, other, got"),
        (["--model", "gpt2", "--ratios", "2"], "ratio"),
        (["--model", "gpt2", "--ratios", "a"], "ratios"),
        (["--model", "gpt2", "--overlap", "-1"], "overlap"),
        (["--model", "gpt3"], "alexnet, resnet50"),
        (["--model", "missing.json", "--step-time", "1s"], "no model file"),
    ],
)
def test_mistakes_are_one_line(arguments, words, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["sparcml", "plan", *arguments])
    with pytest.raises(SystemExit) as caught:
        sparcml.cli.main()
    assert caught.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert words in line
