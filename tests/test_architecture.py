"""docs/architecture.md names the files that a first allreduce runs through."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
# In a process of its own: caches of earlier calls would hide files.
FIRST_CALL = """
import sys
from pathlib import Path
import numpy as np
import sparcml

package = f"{Path(sparcml.__file__).parent}/"
found = set()

def record(frame, event, _):
    name = frame.f_code.co_filename
    if event == "call" and name.startswith(package):
        found.add(name.removeprefix(package))

def body(comm):
    x = sparcml.Stream(1_000_000, np.arange(comm.rank, 7000, 7), np.ones(1000, np.float32))
    comm.barrier()
    sys.setprofile(record)  # on all ranks: the first one to choose does so for all threads
    try:
        comm.allreduce(x)
    finally:
        sys.setprofile(None)

sparcml.launch(body, 2)
print(*sorted(found), sep="\\n")
"""


def test_the_page_has_the_way_of_a_first_call():
    text = PAGE.read_text()
    section = text.partition("## The way of a first call")[2]
    rows = "\n".join(re.findall(r"^\| \w+ \| `.*$", section, re.MULTILINE))
    named = re.findall(r"`([\w/]+\.py)`", rows)
    assert len(named) == len(set(named))
    done = subprocess.run(
        [sys.executable, "-c", FIRST_CALL], capture_output=True, text=True
    )
    assert sorted(named) == done.stdout.split(), done.stderr
    compiled = re.findall(r"`(cpp/[\w/.]+)`", section)
    assert compiled
    assert all((ROOT / name).exists() for name in compiled)


def test_the_page_names_every_folder():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    package = ROOT / "src" / "sparcml"
    folders = {p.name for p in package.iterdir() if (p / "__init__.py").exists()}
    assert folders <= named, folders - named
