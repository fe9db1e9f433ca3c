"""What a process does when it ends with communicators open.

Ranks that wait for it hear of it at once, and why. If it ends in an error it stays a
moment, in which the others can say what they saw before a launcher ends them.
"""

from __future__ import annotations

import atexit
import sys
import time
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import TracebackType

    from .base import Transport

MOMENT = 2.0  # seconds


class Farewell:
    """The open transports of this process, and what ended it."""

    _instance: Farewell | None = None

    def __init__(self) -> None:
        self.transports: weakref.WeakSet[Transport] = weakref.WeakSet()
        self._error: BaseException | None = None
        self._print = sys.excepthook
        sys.excepthook = self._on_error
        atexit.register(self._on_exit)

    @classmethod
    def of_this_process(cls) -> Farewell:
        """The only one; the first call makes it."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def _on_error(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        self._error = error
        self._print(kind, error, trace)

    def _on_exit(self) -> None:
        transports = list(self.transports)
        if self._error is not None:
            sys.stderr.flush()
            for transport in transports:
                transport.control.abort(self._error)
                transport.control.leave()
            self._stay(transports)
        for transport in transports:
            transport.close()

    def _stay(self, transports: list[Transport]) -> None:
        deadline = time.monotonic() + MOMENT
        while not all(transport.control.everyone_gone() for transport in transports):
            if time.monotonic() > deadline:
                return
            time.sleep(0.01)
