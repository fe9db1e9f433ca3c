"""The kernels compile with clang and libc++, from version 20 on, as on macOS."""

import shutil
import subprocess
from pathlib import Path

import pytest

CPP = Path(__file__).parents[2] / "cpp"
PORTABLE = ("kernels/isa.cpp", "linear/svmlight/svmlight.cpp")


@pytest.mark.skipif(shutil.which("clang++") is None, reason="no clang++ here")
def test_files_that_use_the_compiler_and_the_library_most():
    options = ["-std=c++17", "-stdlib=libc++", "-Werror", "-fsyntax-only", f"-I{CPP}"]
    files = [str(CPP / name) for name in PORTABLE]
    done = subprocess.run(
        ["clang++", *options, *files], capture_output=True, text=True, check=False
    )
    if "file not found" in done.stderr:
        pytest.skip("no libc++ here")
    assert done.returncode == 0, done.stderr
