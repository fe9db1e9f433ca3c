"""Pass a launcher's output on at once, without the launcher's own remarks."""

import os
import re

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


class Pump:
    """Moves bytes from one file descriptor to another."""

    def __init__(self, source: int, sink: int) -> None:
        self.source = source
        self.open = True
        self._sink = sink
        self._held = b""

    def move(self) -> bool:
        """Pass on what there is; false at the end."""
        data = os.read(self.source, 1 << 16)
        self.open = bool(data)
        text = _NOISE.sub(b"", self._held + data)
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

    def _put(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._sink, view) :]
