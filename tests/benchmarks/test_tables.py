"""The page of benchmarks shows what was measured last."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(
    not Path(ROOT, "benchmarks/results").is_dir(), reason="no results kept here"
)
def test_page_is_up_to_date():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks/tables.py"), "--check"],
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
