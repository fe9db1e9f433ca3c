"""End of a process that has open communicators.

Ranks that wait for this process learn of its end, and of the error that caused it. After
an error the process stays for some seconds, so that other ranks can report their errors
before a launcher kills them.
"""

from __future__ import annotations

import atexit
import os
import sys
import time
import traceback
from typing import TYPE_CHECKING, ClassVar

from .control import ENDED

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from .base import Transport

GRACE_SECONDS = 3.0


class ShutdownHandler:
    """The open transports of this process and its error. One instance per engine.

    Attributes:
        transports: Transports that are open or have failed.
        error: The uncaught exception of this process, if there is one.
    """

    _instances: ClassVar[dict[type, ShutdownHandler]] = {}

    def __init__(self) -> None:
        self.transports: set[Transport] = set()
        self.error: BaseException | None = None
        self._pid = os.getpid()
        self._excepthook = sys.excepthook
        sys.excepthook = self._on_error
        atexit.register(self.on_exit)

    @classmethod
    def instance(cls) -> Self:
        """Return this process's only instance; the first call creates it."""
        if cls not in ShutdownHandler._instances:
            ShutdownHandler._instances[cls] = cls()
        handler = ShutdownHandler._instances[cls]
        assert isinstance(handler, cls)
        return handler

    def _on_error(
        self,
        kind: type[BaseException],
        error: BaseException,
        trace: TracebackType | None,
    ) -> None:
        self.error = error
        if self._excepthook is sys.__excepthook__:  # one write: ranks print concurrently
            sys.stderr.write("".join(traceback.format_exception(kind, error, trace)))
        else:
            self._excepthook(kind, error, trace)

    @property
    def is_forked(self) -> bool:
        """Whether this process is a child that the rank has forked, and not the rank."""
        return os.getpid() != self._pid

    def on_exit(self) -> None:
        """Notify the peers; after an error, wait until they have left too."""
        if self.is_forked:
            return
        sys.stderr.flush()
        if self.error is not None:
            self.notify_peers()
            end = time.monotonic() + GRACE_SECONDS
            while not self.all_peers_left() and time.monotonic() < end:
                time.sleep(0.01)
        for transport in list(self.transports):
            transport.close()

    def notify_peers(self) -> None:
        """Report the end of this rank, and its error if there is one."""
        for transport in self.transports:
            if self.error is not None:
                transport.control.abort(self.error)
            transport.control.leave()

    def all_peers_left(self) -> bool:
        """Return whether all peers of all transports have ended, or left if none failed."""
        hows = () if self.error is None else (ENDED,)  # who has closed may still compute
        return all(t.control.all_peers_left(*hows) for t in self.transports)
