"""What a new user meets first: hints, the set-up by make, and the wheel for every Python."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from sparcml.errors import how_to_install

from . import pythons

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOURCES = sorted((ROOT / "src/sparcml").rglob("*.py"))


def test_hints_come_from_one_place_and_name_the_clone():
    texts = {path.name: path.read_text() for path in SOURCES if path.name != "errors.py"}
    assert not [name for name, text in texts.items() if "pip install" in text]
    assert how_to_install("mpi") == "pip install '.[mpi]' in the clone of sparcml"
    assert not [page.name for page in PAGES if "pip install sparcml" in page.read_text()]


def test_hints_name_extras_that_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    code = " ".join(path.read_text() for path in SOURCES)
    pages = " ".join(page.read_text() for page in PAGES)
    named = {*re.findall(r"how_to_install\(['\"](\w+)", code), "torch", "mpich"}
    named |= set(re.findall(r"'\.\[(\w+)\]'", pages))
    assert len(named) > 5
    assert named <= {*project["optional-dependencies"]}


@pytest.mark.parametrize("page", ["README.md", "docs/torch.md"])
def test_pages_say_what_happens_to_cuda_tensors(page):
    text = " ".join((ROOT / page).read_text().split())
    assert "CUDA tensors are copied there and back" in text
    assert "never been run on a GPU" in text


# In place of pip, which would compile for minutes: it prints what pip shows of a build.
PIP = """#!/bin/sh
case "$*" in *--editable*) ;; *) exit 0;; esac
echo '  *** Building project with Ninja...'
echo '  [1/3] Building CXX object CMakeFiles/_core.dir/cpp/bindings/module.cpp.o'
echo '  [2/3] Building CXX object CMakeFiles/_core.dir/avx2/cpp/kernels/crc/avx2.cpp.o'
echo '  [3/3] Linking CXX shared module _core.so'
echo '  the reason' >&2
exit {code}
"""


@pytest.mark.parametrize("code", [0, 3])
def test_make_shows_what_it_compiles_and_why_it_failed(tmp_path, code):
    pip = program(tmp_path / "pip", PIP.format(code=code))
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").symlink_to(sys.executable)
    done = subprocess.run(
        ["make", f"VENV={tmp_path}", f"PIP={pip}", f"{tmp_path}/.demo"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    _, _, shown = done.stdout.partition("compiling the C++ kernels, in 2 to 3 minutes\n")
    lines = shown.splitlines()
    assert lines[:2] == ["[1/3] cpp/bindings/module.cpp", "[2/3] cpp/kernels/crc/avx2.cpp"]
    assert (tmp_path / ".demo").exists() == (code == 0)
    assert done.returncode == (0 if code == 0 else 2)
    assert ("the reason" in shown) == (code != 0)


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def interpreter(path, version):
    """Write a program that answers as an interpreter of this version does."""
    return program(path, f"#!/bin/sh\necho {version}\n")


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with some versions of Python, and without the ones that are here."""
    versions = tmp_path / "pyenv/versions"
    on_path = interpreter(tmp_path / "bin/python3.13", "3.13")
    interpreter(versions / "3.13.0/bin/python3.13", "3.13")
    interpreter(versions / "3.11.7/bin/python3.11", "3.11")
    interpreter(versions / "3.14.0t/bin/python3.14", "")  # without a GIL
    program(tmp_path / "bin/python3.12", "#!/bin/sh\nexit 127\n")  # pyenv's, not active
    from_pyenv = interpreter(versions / "3.12.1/bin/python3.12", "3.12")
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return {"3.12": from_pyenv, "3.13": on_path}


def test_pythons_are_found_on_path_and_in_the_folder_of_pyenv(machine, tmp_path):
    assert pythons.find_pythons([]) == machine
    assert list(pythons.find_pythons([])) == ["3.12", "3.13"]
    mine = {
        version: interpreter(tmp_path / version, version) for version in ("3.14", "3.13")
    }
    assert pythons.find_pythons([*mine.values()]) == machine | mine


@pytest.mark.parametrize("version", ["3.11", ""])
def test_a_named_python_must_be_able_to_use_the_wheel(machine, tmp_path, version):
    old = interpreter(tmp_path / "old", version)
    with pytest.raises(
        SystemExit, match=r"PYTHONS: must name Pythons from 3\.12 on, got .*old"
    ):
        pythons.find_pythons([old])


def test_no_python_is_not_a_success(tmp_path):
    empty = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    command = [sys.executable, str(ROOT / "tests/pythons.py"), "--short"]
    done = subprocess.run(command, env=os.environ | empty, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith(
        "no Python from 3.12 on; name one: make test-pythons PYTHONS="
    )
