"""The page of a plan, in a real browser: its numbers, its controls, and how it looks."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sparcml.aggregate.evidence import MEASURED_WITH, TITLES
from sparcml.cli.app import app

from .browser import CHROMIUM, Browser

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found")

GIVEN = ("--params", "2M", "--ranks", "12", "--network", "1gbit", "--step-time", "50ms",
         "--overlap", "0.25", "--ratios", "0.01")  # fmt: skip
MOVED = [  # what the controls are set to
    {},
    {"ranks": "2", "rate": "7.5", "ratio": "0"},
    {"ranks": "7", "rate": "11.3", "latency": "-5.5", "overlap": "0.6"},
    {"ranks": "10", "rate": "8", "ratio": "5", "compute": "-1.2", "overlap": "0"},
    {"latency": "-2", "ratio": "3", "compute": "1.1"},
    {"optimizer": "sgd", "rate": "8.5"},
    {"optimizer": "other"},
]
# As a person would: move one control after the other, each from where the plan has it.
MOVE = """(moved) => {
  document.getElementById("reset").click();
  for (const [id, value] of Object.entries(moved)) {
    const input = document.getElementById(id);
    input.value = value;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }
  const cells = (row) => [...row.cells].map((cell) => cell.textContent);
  return { is, rows: table(grid, is), line: document.getElementById("line").textContent,
           verdict: document.getElementById("verdict").textContent,
           measured: [...document.querySelectorAll("#measured tr")].map(cells),
           shown: [...document.querySelectorAll("#rows tr")].map(cells),
           slower: slower(bests(table(grid, is))) };
}"""


def plan(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["plan", *arguments])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def path(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("plan") / "plan.html"
    plan(*GIVEN, "--html", str(made))
    return made


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


@pytest.fixture
def page(browser, path):
    browser.look(1100, "light")
    browser.open(path)
    return browser


@pytest.mark.parametrize("moved", MOVED, ids=str)
def test_numbers_are_those_of_the_command(page, moved):
    got = page.value(f"({MOVE})({json.dumps(moved)})")
    chosen, network = got["is"], got["is"]["network"]
    printed = json.loads(plan(
        "--params", "2M", "--json",
        "--ranks", str(chosen["ranks"]),
        "--network", f"{8 / network['seconds_per_byte']:.17g}bit,{network['latency']:.17g}s",
        "--step-time", f"{chosen['compute']:.17g}s",
        "--overlap", str(chosen["overlap"]),
        "--ratios", str(chosen["ratio"]),
        "--optimizer", chosen["optimizer"],
    ))  # fmt: skip
    assert len(got["rows"]) == len(got["shown"]) == len(printed["rows"])
    for mine, shown, row in zip(got["rows"], got["shown"], printed["rows"], strict=True):
        assert (mine["method"], mine["collective"]) == (row["method"], row["collective"])
        for key in ("communication", "exposed", "work", "step", "speedup", "nbytes"):
            assert mine[key] == pytest.approx(row[key], rel=1e-9), (row, key)
        assert shown[:2] == [row["method"], row["collective"]]
        assert shown[4] == row["accuracy"]
        assert float(shown[2]) == pytest.approx(row["step"] * 1e3, abs=0.006)
    assert got["line"] == printed["recommended"]["line"]
    assert got["slower"] == printed["dense_wins_against"]
    assert printed["recommended"]["method"] in got["verdict"]
    measured = {r["method"]: (r["accuracy"], r["measurement"]) for r in printed["rows"]}
    assert {name: tuple(rest) for name, *rest in got["measured"]} == measured
    assert not page.complaints()


def test_every_control_moves_the_page(page):
    """Each one changes the numbers, says what it stands at, and can be taken back."""
    before = page.value(f"({MOVE})({{}})")
    ends = page.value(
        "[...document.querySelectorAll('input')].map((i) => [i.id, i.min, i.max])"
    )
    assert {name for name, _, _ in ends} == {
        "ranks", "rate", "latency", "ratio", "compute", "overlap",
    }  # fmt: skip
    options = page.value("[...document.querySelectorAll('option')].map((o) => o.value)")
    assert options == list(MEASURED_WITH)
    ends.append(["optimizer", "sgd", "other"])
    for name, low, high in ends:
        for end in (low, high):
            got = page.value(f"({MOVE})({json.dumps({name: end})})")
            assert got["shown"] != before["shown"], (name, end)
            assert "NaN" not in page.value("document.body.innerHTML"), (name, end)
    assert page.value(f"({MOVE})({{}})") == before
    assert not page.complaints()


@pytest.mark.parametrize("optimizer", MEASURED_WITH)
def test_faster_methods_of_other_accuracy_are_named(page, optimizer):
    got = page.value(f"({MOVE})({json.dumps({'optimizer': optimizer})})")
    by_name = {name: verdict for name, verdict, _ in got["measured"]}
    (best,) = re.findall(r"^Recommended with [\w ]+: (.+?)(?: by |; )", got["verdict"])
    assert by_name[best] in ("exact", "kept")
    step = {r["method"]: r["step"] for r in sorted(got["rows"], key=lambda r: -r["step"])}
    for label, verdict in (("Faster; accuracy not kept: ", "not kept"),
                           ("Faster; not measured: ", "not measured")):  # fmt: skip
        faster = [n for n, v in by_name.items() if v == verdict and step[n] < step[best]]
        _, _, text = got["verdict"].partition(label)
        listed = text.partition("x).")[0]
        assert re.findall(r"(?:^|, )([^()]+) \([\d.]+x?", listed) == faster
    assert (
        page.value("document.getElementById('optimizer-title').textContent")
        == TITLES[MEASURED_WITH[optimizer] or optimizer]
    )


def test_nothing_is_fetched(page, path):
    page.value(f"({MOVE})({json.dumps(MOVED[1])})")
    assert page.requests() == {path.as_uri()}


@pytest.mark.parametrize("width", [360, 1100])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_fits_and_can_be_read(browser, path, width, scheme):
    browser.look(width, scheme)
    browser.open(path)
    assert browser.value("document.documentElement.scrollWidth") <= width
    # No drawing leaves its sheet, and letters are as large on a phone as elsewhere.
    assert browser.value("""[...document.querySelectorAll("svg[role] text")].every((t) => {
      const box = t.getBoundingClientRect(), sheet = t.ownerSVGElement.getBoundingClientRect();
      return box.left >= sheet.left - 1 && box.right <= sheet.right + 1 && box.height >= 11;
    })""")
    assert browser.value("document.querySelectorAll('polyline').length") == 2 * 10
    paper, ink = (browser.value(f"getComputedStyle(document.body).{name}")
                  for name in ("backgroundColor", "color"))  # fmt: skip
    assert (brightness(paper) < brightness(ink)) is (scheme == "dark")
    assert abs(brightness(paper) - brightness(ink)) > 150
    assert not browser.complaints()


def brightness(colour: str) -> float:
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    return 0.3 * red + 0.6 * green + 0.1 * blue
