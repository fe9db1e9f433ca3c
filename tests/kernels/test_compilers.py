"""The C++ compiles for other processors and systems, and keeps instruction sets apart."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CPP = ROOT / "cpp"
PORTABLE = ("kernels/isa.cpp", "linear/svmlight/svmlight.cpp")
ARM = "aarch64-linux-gnu-g++"
# Instructions of AVX2 processors. `tzcnt` is missing, since older ones run it as `bsf`.
LATER = re.compile(
    r"\t(v(?!err|erw)|andn |bextr|bls|bzhi|lzcnt|mulx|pdep|pext|popcnt|rorx|sarx|sh[lr]x)"
)


def test_files_that_use_the_compiler_and_the_library_most():
    """As on macOS, with clang and libc++ 20, which reads numbers by `std::from_chars`."""
    if shutil.which("clang++") is None:
        pytest.skip("no clang++ here")
    options = ["-std=c++20", "-stdlib=libc++", "-Werror", "-fsyntax-only", f"-I{CPP}"]
    files = [str(CPP / name) for name in PORTABLE]
    done = subprocess.run(["clang++", *options, *files], capture_output=True, text=True)
    if "file not found" in done.stderr:
        pytest.skip("no libc++ here")
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("folder", sorted(path.name for path in CPP.iterdir()))
def test_arm(folder):
    if shutil.which(ARM) is None:
        pytest.skip(f"no {ARM} here")
    nanobind = pytest.importorskip("nanobind")
    headers = [nanobind.include_dir(), sysconfig.get_path("include")]
    options = [
        "-std=c++20",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-fvisibility=hidden",
        "-fsyntax-only",
    ]
    folders = [f"-I{CPP}", *(f"-isystem{path}" for path in headers)]
    files = sorted(
        path for path in (CPP / folder).rglob("*.cpp") if path.name != "avx2.cpp"
    )
    done = subprocess.run([ARM, *options, *folders, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def assembly(file):
    """Return the instructions of each function of an object file."""
    text = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", file],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    functions = re.split(r"^[0-9a-f]+ <(.*)>:$", text, flags=re.MULTILINE)[1:]
    return dict(zip(functions[::2], functions[1::2], strict=True))


def test_functions_that_files_share_run_on_every_processor():
    """The linker may keep the copy of a file for AVX2, whatever the order of the files.

    A weak symbol is a function that several files may define, such as one of `std::vector`.
    """
    files = sorted(ROOT.glob("build/*/CMakeFiles/*.dir/avx2/**/*.o"))
    if not files or not shutil.which("objdump"):
        pytest.skip("no object files of a build, or no objdump here")
    own = 0
    for file in files:
        table = subprocess.run(
            ["nm", file], capture_output=True, text=True, check=True
        ).stdout
        shared = set(re.findall(r" [Wu] (\S+)", table))
        for name, code in assembly(file).items():
            is_later = LATER.search(code) is not None
            own += is_later
            assert not (is_later and name in shared and "4avx2" not in name), (file, name)
    assert own > len(files)
