"""The kernels compile with clang and libc++, as on macOS."""

import shutil
import subprocess
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[2] / "cpp" / "kernels"
COMPILE = [
    "clang++",
    "-std=c++17",
    "-stdlib=libc++",
    "-Werror",
    "-fsyntax-only",
    "-x",
    "c++",
]


def has_libcxx():
    if shutil.which("clang++") is None:
        return False
    probe = subprocess.run([*COMPILE, "-"], input=b"#include <charconv>\n", check=False)
    return probe.returncode == 0


@pytest.mark.skipif(not has_libcxx(), reason="no clang++ with libc++")
@pytest.mark.parametrize(
    "name",
    ["isa.cpp", "svmlight/decimal.cpp", "svmlight/format.cpp", "svmlight/svmlight.cpp"],
)
def test_compiles(name):
    subprocess.run([*COMPILE, f"-I{KERNELS.parent}", str(KERNELS / name)], check=True)
