"""What this machine can emulate, and who is there besides."""

import functools
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from sparcml.cli.launch.emulate import EmulatedCluster

# An ordinary user as the kernel sees it: a number, and no rights.
AS_USER = ("unshare", "--map-user=1000", "--map-group=1000")
# Alone in charge of a user namespace: there the kernel lets us set limits of its own.
AS_CHIEF = ("unshare", "--map-root-user")
MARK = "SPARCML_TEST_MARK"


@functools.cache
def _obstacle() -> str:
    try:
        with EmulatedCluster(1, 10**9):
            return ""
    except OSError as error:
        return str(error)


def _works(*command: str) -> bool:
    if shutil.which(command[0]) is None:
        return False
    return subprocess.run([*command, "true"], capture_output=True).returncode == 0


needs_emulation = pytest.mark.skipif(bool(_obstacle()), reason=_obstacle())
needs_user = pytest.mark.skipif(
    bool(_obstacle()) or not _works(*AS_USER), reason="no unshare with --map-user here"
)
needs_chief = pytest.mark.skipif(
    bool(_obstacle()) or not _works(*AS_CHIEF, "--mount"), reason="no user namespaces here"
)


def marked(mark: str) -> list[int]:
    """Processes that have this mark in their environment, by inheritance."""
    text = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if text in Path(folder, "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # ended meanwhile, or somebody else's
            continue
    return found


def assert_nobody(mark: str, within: float = 5.0) -> None:
    deadline = time.monotonic() + within
    while left := marked(mark):
        assert time.monotonic() < deadline, left
        time.sleep(0.02)


def our_links() -> list[str]:
    """Links of this namespace that bear names of emulated ones."""
    names = [link.name for link in Path("/sys/class/net").iterdir()]
    return [name for name in names if name.startswith(("bridge", "port"))]
