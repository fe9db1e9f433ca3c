"""What a process does when it ends with communicators open.

Ranks that wait for it hear of it at once, and why. If it ends in an error it stays a
moment, in which the others can say what they saw before a launcher ends them.
"""

from __future__ import annotations

import atexit
import sys
import time
import traceback
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from .base import Transport

GRACE_SECONDS = 3.0  # seconds


class ShutdownHandler:
    """The open transports of this process, and what ended it. One for each engine."""

    _instances: ClassVar[dict[type, ShutdownHandler]] = {}

    def __init__(self) -> None:
        self.transports: set[Transport] = set()  # open, or failed
        self.error: BaseException | None = None
        self._print = sys.excepthook
        sys.excepthook = self._on_error
        atexit.register(self.on_exit)

    @classmethod
    def instance(cls) -> Self:
        """The only one; the first call makes it."""
        if cls not in ShutdownHandler._instances:
            ShutdownHandler._instances[cls] = cls()
        found = ShutdownHandler._instances[cls]
        assert isinstance(found, cls)
        return found

    def _on_error(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        self.error = error
        if self._print is sys.__excepthook__:  # in one piece: ranks print at the same time
            sys.stderr.write("".join(traceback.format_exception(kind, error, trace)))
        else:
            self._print(kind, error, trace)

    def on_exit(self) -> None:
        """Tell the others; after an error, give them a moment."""
        sys.stderr.flush()
        if self.error is not None:
            self.notify_peers()
            end = time.monotonic() + GRACE_SECONDS
            while not self.all_peers_left() and time.monotonic() < end:
                time.sleep(0.01)
        for transport in list(self.transports):
            transport.close()

    def notify_peers(self) -> None:
        """That this rank ends, and in what error if it is one."""
        for transport in self.transports:
            if self.error is not None:
                transport.control.abort(self.error)
            transport.control.leave()

    def all_peers_left(self) -> bool:
        """Whether everybody else has left."""
        return all(transport.control.all_peers_left() for transport in self.transports)
