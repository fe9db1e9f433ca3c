"""Versions and machine of a measurement: package, commit, processor, instruction set."""

from __future__ import annotations

import datetime as dt
import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from . import kernels


def package_version(package: str) -> str | None:
    """Return the version of an installed package, or None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe(options: str, seed: int, **more: str) -> dict[str, str]:
    """Return versions, machine and options of a measurement."""
    facts = {
        "sparcml": package_version("sparcml") or "not installed",
        "commit": commit(),
        "date": dt.datetime.now(dt.UTC).strftime("%Y-%m-%d"),
        "cpu": f"{cpu_name()}, {os.cpu_count()} cores",
        "isa": kernels.isa(),
        "numpy": package_version("numpy") or "not installed",
        "python": platform.python_version(),
    }
    return facts | more | {"options": options, "seed": str(seed)}


def commit() -> str:
    """Return the commit of the checkout that holds this package, or "not a checkout"."""
    try:
        _git("ls-files", "--error-unmatch", Path(__file__).name)
        changed = _git("status", "--porcelain", "--", ":/src", ":/cpp")
        return _git("rev-parse", "--short", "HEAD") + ("-dirty" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return "not a checkout"


def _git(*words: str) -> str:
    command = ["git", "-C", str(Path(__file__).parent), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=True
    ).stdout.strip()


def cpu_name() -> str:
    """Return the model name of the processor."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor() or platform.machine()
    names = [row.partition(":")[2] for row in text.splitlines() if "model name" in row]
    return names[0].strip() if names else platform.machine()
