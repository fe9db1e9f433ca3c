"""The page of claims shows the newest rows, or the command that measures them."""

import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

import sparcml
from sparcml.bench.results import write_json
from sparcml.quantize import Quantizer

pytest.importorskip("torch")  # for the roster of the accuracy benchmark

import claims_page
import methods_page
from accuracy.roster import ROSTER as ACCURACY
from claims import CLAIMS, kept
from methods import ROSTER, TEXTS
from run_claims import chosen, run

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks/results"
MISSED = {9, 14, 15, 20, 22, 29}


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no results")
@pytest.mark.parametrize(
    "script", ["claims_page.py", "methods_page.py", "training_page.py"]
)
def test_page_and_figures_are_up_to_date(script):
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / script), "--check"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no results")
def test_table_2_has_a_bar_for_each_name():
    pytest.importorskip("matplotlib")
    claim = next(claim for claim in CLAIMS if "table-2" in claim.figures)
    found = kept(claim, RESULTS)
    assert isinstance(found, dict)
    for ax in claim.figures["table-2"](found["rows"]).axes:
        assert len(ax.patches) == 2 * len(ax.get_yticks())  # computing and communication


def test_without_results_every_row_says_how_to_get_them(tmp_path):
    pytest.importorskip("matplotlib")
    text = claims_page.page(tmp_path)
    for claim in CLAIMS:
        assert f"no data; run `python benchmarks/run_claims.py {claim.number}`" in text
        assert f"## {claim.number}. {claim.title}\n\nNo data" in text
    assert "figures/" not in text
    assert claims_page.figures(tmp_path) == {}


@pytest.mark.skipif(not RESULTS.is_dir(), reason="no results")
def test_a_row_that_is_off_makes_a_miss():
    """The verdict comes from the rows, not from the text."""
    changes = {
        1: {"ratio": 1.0},
        2: {"second": 1e9},
        3: {"bits": 4.0},
        4: {"error": 1e-9},
        5: {"error": 0.5},
        6: {"method": "dense"},
        7: {"loss": 0.5},
        8: {"fall": 1.0},
        9: {"sent": 1e12},
        10: {"entries": 1},
        11: {"percent": 101.0},
        12: {"filled": 1},
        13: {"p50": 1.0},
        14: {"p50": 1.0},
        15: {"step": 1.0},
        16: {"epoch": 1.0},
        17: {"curves": [{"setting": "", "passes": [1], "seconds": [1.0], "losses": [0.3]}]},
        18: {"method": "dense"},
        19: {"method": "dense"},
        20: {"speedup": 9.0},
        21: {"compute": 1.0},
        22: {"step": 1.0},
        23: {"speedup": 1.0},
        24: {"total": 1.0},
        25: {"gap": 1.0},
        26: {"wait": 1.0},
        27: {"error": 0.5},
        28: {"apart": 1.0},
        29: {"steps": 1},
        30: {"rounds": 1.0},
        31: {"mean": [0.1]},
    }
    for claim in CLAIMS:
        found = kept(claim, RESULTS)
        assert not isinstance(found, str), found
        assert claim.answer(found["rows"]).hit is (claim.number not in MISSED)
        rows = [row | changes[claim.number] for row in found["rows"]]
        assert not claim.answer(rows).hit, claim.number


def test_methods_without_results_say_how_to_get_them(tmp_path):
    pytest.importorskip("matplotlib")
    text = methods_page.page(tmp_path)
    assert "No data; run `python benchmarks/run_claims.py 7`." in text
    assert "No data; run `make bench-accuracy`." in text
    assert "### TopK(" in text
    assert methods_page.figures(tmp_path) == {}


def test_every_method_has_a_section_and_a_row():
    """Every exported class has a section and a row."""
    titles = {t.title.partition("(")[0] for texts in TEXTS.values() for t in texts}
    bases = (sparcml.Sparsifier, Quantizer, sparcml.Method)
    exported = {
        name
        for name, thing in vars(sparcml).items()
        if isinstance(thing, type) and issubclass(thing, bases) and thing not in bases
    }
    assert exported - {"Integer"} <= titles  # quantizes sums of ternary values
    shown = " ".join(repr(entry.method) for entry in ROSTER)
    shown += " ".join(f"{spec.title}(" for spec in ACCURACY.values())
    assert all(f"{name}(" in shown or f"{name} " in shown for name in titles)


def test_the_newest_file_is_shown(tmp_path):
    (claim,) = chosen(["10"])
    for date, k in (("2026-01-02", 2), ("2025-12-31", 1)):
        write_json(tmp_path / f"{date}-{claim.file}.json", {"date": date}, [{"k": k}])
    newest = kept(claim, tmp_path)
    assert not isinstance(newest, str)
    assert newest["rows"] == [{"k": 2}]


def test_a_claim_waits_for_all_its_files(tmp_path):
    """The page names the command of the missing file."""
    (claim,) = chosen(["14"])
    assert kept(claim, tmp_path) == "python benchmarks/run_claims.py 14"
    write_json(tmp_path / f"2026-01-02-{claim.file}.json", {"date": "2026"}, [{"k": 2}])
    assert kept(claim, tmp_path) == "make bench-micro"
    text = claims_page.page(tmp_path)
    assert "no data; run `make bench-micro`" in text
    assert f"## 14. {claim.title}\n\nNo data; run `make bench-micro`." in text
    write_json(tmp_path / "2026-01-02-micro-gige.json", {"date": "2026"}, [{"k": 3}])
    newest = kept(claim, tmp_path)
    assert not isinstance(newest, str)
    assert newest["rows"] == [{"k": 2}, {"k": 3}]


def test_a_run_keeps_its_rows(tmp_path, capsys):
    (claim,) = chosen(["10"])
    path = run(claim, tmp_path, Console(quiet=True))
    assert path.name.endswith("-claim-10.json")
    newest = kept(claim, tmp_path)
    assert not isinstance(newest, str)
    assert len(newest["rows"]) == len(claim.cases)
    assert claim.answer(newest["rows"]).hit
    assert str(tmp_path) not in path.read_text()


def test_a_claim_that_is_not_there():
    with pytest.raises(
        SystemExit, match="no claim '99'; there are 1, 2, 3, 4, 5, 6, 7, 8, 9, 10"
    ):
        chosen(["10", "99"])
