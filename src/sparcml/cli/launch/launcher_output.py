"""Pass a launcher's output on at once, without the launcher's own remarks."""

import os
import re
from typing import IO

_RULE = b"=" * 83 + b"\n"
_BANNER = b"=   BAD TERMINATION"
_REMARKS = (
    b"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: ",
    b"This typically refers to a problem with your application.",
    b"Please see the FAQ page for debugging suggestions",
)
_CONTROL_C = re.compile(rb"\[mpiexec@.*(Ctrl-C|abort all ranks|requested)")
_BEGINNINGS = (_RULE, _BANNER, *_REMARKS, b"[mpiexec@")
# MPICH and Open MPI each name the rank that called MPI_Abort.
_ABORT = re.compile(
    rb"Abort\(\d+\) on node (?P<node>\d+) |MPI_ABORT was invoked on rank (?P<rank>\d+) "
)


class Pump:
    """Moves bytes from a file to a file descriptor."""

    def __init__(self, source: IO[bytes], sink: int) -> None:
        self.source = source
        self.open = True
        self.aborted = ""  # the rank that called MPI_Abort
        self._sink = sink
        self._rest = b""  # the beginning of a line that may be a remark
        self._rule = b""  # what precedes a banner, if a banner follows
        self._in_banner = False

    def move(self) -> bool:
        """Pass on what there is; false at the end."""
        data = os.read(self.source.fileno(), 1 << 16)
        self.open = bool(data)
        *lines, self._rest = (self._rest + data).splitlines(keepends=True) or [b""]
        if self._rest.endswith(b"\n"):
            lines, self._rest = [*lines, self._rest], b""
        self._put(b"".join(self._kept(line) for line in lines))
        if not self._may_be_a_remark():
            self.flush()
        return self.open

    def flush(self) -> None:
        """Pass on what was held back, except in the middle of a banner."""
        if not self._in_banner:
            self._put(self._rule + self._rest)
            self._rule = self._rest = b""

    def close(self) -> None:
        """Stop reading."""
        self.source.close()

    def _kept(self, line: bytes) -> bytes:
        """What is passed on of a whole line, and of the rule before it."""
        if found := _ABORT.search(line):
            self.aborted = (found["node"] or found["rank"]).decode()
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
        noise = line.startswith(_REMARKS) or _CONTROL_C.match(line)
        return rule if noise else rule + line

    def _may_be_a_remark(self) -> bool:
        rest = self._rest
        return bool(self._rule) or any(
            rest and (rest.startswith(b) or b.startswith(rest)) for b in _BEGINNINGS
        )

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._sink, view) :]
