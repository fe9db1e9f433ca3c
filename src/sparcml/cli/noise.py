"""Pass a launcher's output on at once, without the launcher's own remarks."""

import os
import re
from typing import IO

_RULE = b"=" * 83
_OPENING = _RULE + b"\n=   BAD TERMINATION"
_NOISE = re.compile(
    rb"\n?" + _OPENING + rb".*?(?:" + _RULE + rb"\n|\Z)"
    rb"|YOUR APPLICATION TERMINATED WITH THE EXIT STRING: [^\n]*\n"
    rb"|This typically refers to a problem with your application\.\n"
    rb"|Please see the FAQ page for debugging suggestions\n"
    rb"|\[mpiexec@[^\n]*Ctrl-C[^\n]*\n",
    re.DOTALL,
)
# MPICH and Open MPI each name the rank that called MPI_Abort.
_ABORT = re.compile(rb"Abort\(\d+\) on node (\d+) |MPI_ABORT was invoked on rank (\d+) ")


class Pump:
    """Moves bytes from a file to a file descriptor."""

    def __init__(self, source: IO[bytes], sink: int) -> None:
        self.source = source
        self.open = True
        self.aborted = ""  # the rank that called MPI_Abort
        self._sink = sink
        self._held = b""

    def move(self) -> bool:
        """Pass on what there is; false at the end."""
        data = os.read(self.source.fileno(), 1 << 16)
        self.open = bool(data)
        text = _NOISE.sub(b"", self._held + data)
        if found := _ABORT.search(text):
            self.aborted = (found[1] or found[2]).decode()
        # A rule at the very end may open a banner whose rest is still to come.
        cut = text.rfind(_RULE)
        if cut < 0 or not data or not _OPENING.startswith(text[cut:]):
            cut = len(text)
        self._put(text[:cut])
        self._held = text[cut:]
        return self.open

    def flush(self) -> None:
        """Pass on what was held back."""
        self._put(_NOISE.sub(b"", self._held))
        self._held = b""

    def close(self) -> None:
        """Stop reading."""
        self.source.close()

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._sink, view) :]
