"""Build one wheel for the limited API, and test it on every Python from 3.12 on.

Usage: `python tests/pythons.py [--short] [PYTHON ...]`. Interpreters are those that are named,
then those on PATH, then pyenv's; one of each version, and each gets an environment of its own in
`build/pythons`. The oldest builds the wheel. Without --short the quick tests run too, without
torch: pip has a small build of it (CPU) for few of them.
"""

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "build" / "pythons"
VERSIONS = ("3.12", "3.13", "3.14")
# Builds without a GIL have no limited API.
PROBE = """
import sys, sysconfig
if not sysconfig.get_config_var("Py_GIL_DISABLED"):
    print("%d.%d" % sys.version_info[:2])
"""
QUICK = ("--quick", "-q", "--numprocesses", "2", "--dist", "worksteal")


def version_of(python: str) -> str:
    """Return the version of an interpreter that can use the wheel; empty if it cannot."""
    command = [python, "-c", PROBE]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    version = done.stdout.strip() if done.returncode == 0 else ""
    return version if version and _key(version) >= _key(VERSIONS[0]) else ""


def find_pythons(named: list[str]) -> dict[str, str]:
    """Return one interpreter of each version, oldest first."""
    found: dict[str, str] = {}
    for python in named:
        if not (version := version_of(python)):
            sys.exit(f"PYTHONS: must name Pythons from {VERSIONS[0]} on, got {python}")
        found.setdefault(version, python)
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv", "versions")
    for version in VERSIONS:
        candidates = [shutil.which(f"python{version}") or ""]
        candidates += map(str, sorted(pyenv.glob(f"{version}.*/bin/python{version}")))
        for python in filter(None, candidates):
            if version_of(python) == version:
                found.setdefault(version, python)
    return {version: found[version] for version in sorted(found, key=_key)}


def _key(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def _run(*command: str | Path) -> None:
    if code := subprocess.run(command, cwd=ROOT, check=False).returncode:
        sys.exit(f"{' '.join(map(str, command))}: exit code {code}")


class Environment:
    """A new virtual environment of one interpreter."""

    def __init__(self, python: str, name: str) -> None:
        folder = FOLDER / name
        _run(python, "-m", "venv", "--clear", folder)
        self.python = folder / "bin" / "python"
        self.pip("install", "--upgrade", "pip")

    def pip(self, command: str, *arguments: str | Path) -> None:
        """Run a command of pip, with the versions that the Makefile installs."""
        options = (
            "--quiet",
            "--disable-pip-version-check",
            "--constraint",
            "constraints.txt",
        )
        _run(self.python, "-m", "pip", command, *options, *arguments)


def build_wheel(python: str) -> Path:
    """Return a new wheel, built by this interpreter."""
    environment = Environment(python, "build")
    environment.pip("install", "--group", "build")
    wheels = FOLDER / "wheel"
    shutil.rmtree(wheels, ignore_errors=True)
    settings = f"build-dir={FOLDER / 'cmake'}"  # apart from that of .venv
    options = ("--no-deps", "--no-build-isolation", "--config-settings", settings)
    environment.pip("wheel", *options, "--wheel-dir", wheels, ".")
    (wheel,) = wheels.glob("*.whl")
    if "-cp312-abi3-" not in wheel.name:
        sys.exit(f"{wheel.name} is not for the limited API of 3.12")
    return wheel


def main() -> None:
    """Test the wheel on every interpreter, and say which versions are missing."""
    parser = argparse.ArgumentParser(description="Test one wheel on every Python.")
    parser.add_argument("--short", action="store_true", help="imports and one sum only")
    parser.add_argument("python", nargs="*", help="interpreters, before those found")
    options = parser.parse_args()
    found = find_pythons(options.python)
    if not found:
        sys.exit(
            f"no Python from {VERSIONS[0]} on; name one: make test-pythons PYTHONS=..."
        )
    oldest, builder = next(iter(found.items()))
    print(f"Python {oldest} builds the wheel, in 2 to 3 minutes", flush=True)
    wheel = build_wheel(builder)
    for version, python in found.items():
        print(f"Python {version}: {python}", flush=True)
        environment = Environment(python, version)
        extras = "" if options.short else "[mpich,linear,plot,zstd]"
        environment.pip("install", f"{wheel}{extras}")
        _run(environment.python, "-I", ROOT / "tests" / "import_all.py")
        if not options.short:
            environment.pip("install", "--group", "test")
            _run(environment.python, "-m", "pytest", *QUICK)
    missing = [version for version in VERSIONS if version not in found]
    print(f"{wheel.name}: works on Python {', '.join(found)}")
    if missing:
        print(f"not tested: Python {', '.join(missing)}, which was not found")


if __name__ == "__main__":
    main()
