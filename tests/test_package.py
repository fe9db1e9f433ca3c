"""The package from outside: what importing it costs, its stub, its documents."""

import doctest
import importlib
import os
import re
import runpy
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from nanobind.stubgen import StubGen, load_pattern_file

import sparcml
from sparcml import kernels
from sparcml.collectives import ALLREDUCES
from sparcml.stream import stream

ROOT = Path(__file__).parents[1]
HEAVY = (
    "torch",
    "mpi4py",
    "scipy",
    "sklearn",
    "matplotlib",
    "networkx",
    "typer",
    "rich",
    "greenlet",
)


def python(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )


def loaded(code):
    """Return the modules that a program has imported."""
    done = python(f"import sys\n{code}\nprint(*sys.modules)")
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


def own(modules):
    return {m for m in modules if m.partition(".")[0] == "sparcml"}


def test_importing_loads_errors_alone():
    modules = loaded("import sparcml")
    assert own(modules) == {
        "sparcml",
        *(f"sparcml.{m}" for m in ("errors", "lazy_names", "moved")),
    }
    assert "numpy" not in modules


def test_a_stream_and_a_world_need_numpy_and_nothing_heavier():
    modules = loaded("import sparcml; sparcml.Stream(8, [1], [2.0])")
    assert not modules & {*HEAVY, "sparcml.communicator", "sparcml.quantize"}
    modules = loaded(
        "import sparcml; sparcml.world().allreduce(sparcml.Stream(8, [1], [2.0]))"
    )
    unused = {
        "network.simulator",
        "network.probe",
        "planning.plan",
        "aggregate",
        "sparsify",
    }
    unused |= {"linear", "decentralized", "torch", "cli", "transport.mpi", "transport.gloo"}
    assert not modules & {*HEAVY, "statistics", *(f"sparcml.{m}" for m in unused)}
    assert "sparcml.communicator.communicator" in modules


def test_every_public_name_is_listed_and_imported_on_first_use():
    code = """
import pydoc, sparcml
listed = set(sparcml.__all__)
lazy = {n for n in listed if not n.endswith("Error")}
assert lazy < listed <= set(dir(sparcml)), lazy ^ listed
assert not lazy & set(vars(sparcml))
text = pydoc.plain(pydoc.render_doc(sparcml))
assert all(name in text for name in listed)
assert all(getattr(sparcml, name).__name__ == name for name in listed)
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_names_of_torch_complete_and_no_others_are_listed():
    """Also after the modules of the package have been imported, one of which has a public name."""
    pytest.importorskip("torch")
    code = """
import rlcompleter, sparcml.torch
import sparcml.torch.elastic, sparcml.torch.optimizer, sparcml.torch.recommended
names = sparcml.torch.__all__
assert dir(sparcml.torch) == sorted(names), dir(sparcml.torch)
find = rlcompleter.Completer({"sparcml": sparcml}).complete
found = [find("sparcml.torch.", i).rstrip("(") for i in range(len(names))]
assert sorted(found) == sorted(f"sparcml.torch.{name}" for name in names), found
for name in names:
    assert getattr(sparcml.torch, name).__name__ == name
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("folder", ["kernels", "linear"])
def test_the_committed_stub_is_the_compiled_module(folder):
    module = importlib.import_module(f"sparcml.{folder}._core")
    patterns = load_pattern_file(str(ROOT / "cpp/bindings/stub_patterns.nb"))
    generator = StubGen(module, patterns=patterns)
    generator.put(module)
    assert generator.get() == (ROOT / f"src/sparcml/{folder}/_core.pyi").read_text()


@pytest.mark.parametrize("isa", kernels.isas())
def test_an_instruction_set_can_be_forced(isa):
    code = "from sparcml import kernels; print(kernels.isa())"
    assert python(code, SPARCML_ISA=isa).stdout == f"{isa}\n"


def test_an_unknown_instruction_set_is_an_error():
    done = python("from sparcml import kernels; kernels.isa()", SPARCML_ISA="abacus")
    assert done.returncode != 0
    assert "SPARCML_ISA must be one of" in done.stderr
    assert "got 'abacus'" in done.stderr


def test_the_laws_hold_on_the_scalar_kernels_too():
    code = """
import sparcml
from tests import laws, rosters
for algorithm, op in rosters.REDUCTIONS:
    if op not in ("sum", "min"):
        continue
    for case in laws.CASES if algorithm in rosters.LOSSLESS else laws.ROOM_FOR_ALL:
        sparcml.launch(lambda comm: laws.same_sum(comm, algorithm, case, op), 4)
    sparcml.launch(lambda comm: laws.same_bits(comm, algorithm, op), 4)
"""
    path = os.pathsep.join((str(ROOT), os.environ.get("PYTHONPATH", "")))
    done = python(code, SPARCML_ISA="scalar", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr


def test_docstring_examples_run():
    assert doctest.testmod(stream).failed == 0
    assert doctest.testmod(stream).attempted > 0


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


@pytest.mark.parametrize("page", ["README.md", "docs/tour.md", "docs/mpi.md"])
def test_python_in_the_documents_runs(page, capsys):
    code = blocks(page, "python")
    assert code
    for part in code:
        exec(compile(part, page, "exec"), {"__name__": "__main__"})
    assert capsys.readouterr().out == "".join(blocks(page, "text"))


def test_files_of_the_tour_exist():
    tour = (ROOT / "docs/tour.md").read_text()
    files = re.findall(r"`([\w/]+\.py)`", tour)
    assert len(files) > 50
    places = (ROOT / "src/sparcml", ROOT)  # paths that begin with tests/ are the project's
    missing = [f for f in files if not any((place / f).exists() for place in places)]
    assert not missing


@pytest.mark.mpi
def test_the_program_of_the_readme_runs(tmp_path):
    (program,) = blocks("README.md", "py")
    (tmp_path / "sum.py").write_text(program)
    done = subprocess.run(
        [sys.executable, "-m", "sparcml", "run", "-n", "4", "sum.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"{rank} 4.0" for rank in range(4)]


def test_the_index_of_algorithms_is_up_to_date():
    shown = (ROOT / "docs/algorithms.md").read_text()
    collect = runpy.run_path(str(ROOT / "docs/collect.py"))
    assert collect["page"]() == shown
    for name in ALLREDUCES:
        assert f"## {name}\n" in shown


@pytest.mark.slow
def test_the_figures_are_up_to_date():
    """Drawn anew from new traces, they come out the same to the last byte."""
    pytest.importorskip("matplotlib")
    diagrams = runpy.run_path(str(ROOT / "docs/diagrams.py"))
    shown = (ROOT / "docs/algorithms.md").read_text()
    assert re.findall(r"\(figures/(.*)\.svg\)", shown) == diagrams["names"]()
    for name in diagrams["names"]():
        assert diagrams["figure"](name) == (ROOT / f"docs/figures/{name}.svg").read_text()
    drawn = {name: routes(diagrams["bands"], name) for name in diagrams["names"]()}
    assert not [pair for pair in combinations(drawn, 2) if drawn[pair[0]] == drawn[pair[1]]]
    for name, shared in diagrams["SHARED"].items():
        mine = routes(diagrams["bands"], name)
        assert mine == drawn[shared][: len(mine)], name


def routes(bands, name):
    """Senders and receivers of each round."""
    return [
        [(m.step, m.sender, m.receiver) for m in band.messages] for band in bands(name)[1]
    ]


def test_every_figure_is_shown_on_a_page():
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    shown = set(re.findall(r"\(figures/(.*)\.svg\)", pages))
    assert shown == {path.stem for path in (ROOT / "docs/figures").glob("*.svg")}


def test_the_version_is_the_same_everywhere():
    assert f'version = "{sparcml.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"## {sparcml.__version__}" in (ROOT / "CHANGELOG.md").read_text()
