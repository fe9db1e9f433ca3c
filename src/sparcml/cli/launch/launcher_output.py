"""Forward a launcher's output at once, without the launcher's own messages."""

import os
import re
import time
from typing import IO

_RULE = b"=" * 83 + b"\n"
_BANNER = b"=   BAD TERMINATION"
_MESSAGES = (
    b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: ",
    b"This typically refers to a problem with your application.",
    b"Please see the FAQ page for debugging suggestions",
)
_CONTROL_C = re.compile(rb"\[mpiexec@.*(Ctrl-C|abort all ranks|requested)")
_PREFIXES = (_RULE, _BANNER, *_MESSAGES, b"[mpiexec@")
# MPICH and Open MPI each name the rank that called MPI_Abort.
_ABORT = re.compile(
    rb"Abort\(\d+\) on node (?P<node>\d+) |MPI_ABORT was invoked on rank (?P<rank>\d+) "
)


class OutputFilter:
    """Forwards bytes from a file to a file descriptor, except the launcher's messages."""

    def __init__(self, source: IO[bytes], sink: int) -> None:
        self.source = source
        self.open = True
        self.aborted_rank = ""  # the rank that called MPI_Abort
        self.aborted_time: float | None = None
        self._sink = sink
        self._partial_line = b""  # may be the start of a message
        self._rule = b""  # held back, because a banner may follow
        self._in_banner = False

    def forward(self) -> bool:
        """Forward the available output; return False at its end."""
        data = os.read(self.source.fileno(), 1 << 16)
        self.open = bool(data)
        *lines, rest = (self._partial_line + data).splitlines(keepends=True) or [b""]
        if rest.endswith(b"\n"):
            lines, rest = [*lines, rest], b""
        self._partial_line = rest
        self._write(b"".join(self._filter(line) for line in lines))
        if not self._may_be_message():
            self.flush()
        return self.open

    def flush(self) -> None:
        """Forward the bytes held back, except in a banner."""
        if not self._in_banner:
            self._write(self._rule + self._partial_line)
            self._rule = self._partial_line = b""

    def close(self) -> None:
        """Close the source."""
        self.source.close()

    def _filter(self, line: bytes) -> bytes:
        """Return the bytes to forward for a line and for the rule before it."""
        if match := _ABORT.search(line):
            self.aborted_rank = (match["node"] or match["rank"]).decode()
            self.aborted_time = time.time()
        if self._in_banner:
            self._in_banner = line != _RULE
            return b""
        rule, self._rule = self._rule, b""
        if rule.endswith(_RULE) and line.startswith(_BANNER):
            self._in_banner = True
            return b""
        if line == _RULE and rule in (b"", b"\n"):
            self._rule = rule + line
            return b""
        if line in (b"\n", _RULE):
            self._rule = line
            return rule
        is_message = line.startswith(_MESSAGES) or _CONTROL_C.match(line)
        return rule if is_message else rule + line

    def _may_be_message(self) -> bool:
        start = self._partial_line
        return bool(self._rule) or any(
            start and (start.startswith(p) or p.startswith(start)) for p in _PREFIXES
        )

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._sink, view) :]
