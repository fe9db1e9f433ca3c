"""A link to another machine: idle connections that show whether it is cut.

A kernel answers keep-alive probes even while the processes of its machine compute, and
nothing answers across a cut link. So neither threads nor messages are needed: the kernel ends a
connection whose probes stay unanswered for SPARCML_TIMEOUT, and a long wait inspects it. The
link may have healed since then, while all ranks computed. The wait therefore tries to connect
again: a machine that refuses is there.
"""

from __future__ import annotations

import errno
import select
import socket
import threading
import time

MIN_SECONDS = 3.0  # without an answer: a congested link may drop a few probes
MAX_SECONDS = 32_767.0  # the most that the kernel accepts for all options
LATE_PROBES = 2  # unanswered ones, after which a machine is late
ANSWER_SECONDS = 2.0  # for a refusal: the kernel asks again after one second

_CUT = {errno.ETIMEDOUT, errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EHOSTDOWN}


class Link:
    """Connections of this rank to ranks of one other machine."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []
        self._has_ended = False  # a connection, because its probes were not answered
        self._address: tuple[str, int] | None = None  # where the other machine listened
        self._attempt: socket.socket | None = None  # to connect to it again
        self._attempt_end = 0.0
        self._has_answered = False  # the last attempt
        self._lock = threading.RLock()  # threads may wait in communicators of their own

    def watch(
        self, connection: socket.socket, address: tuple[str, int], seconds: float
    ) -> None:
        """Let the kernel end a connection that has not been answered for these seconds.

        Args:
            connection: An open connection.
            address: Where the other machine listened; it refuses connections there now.
            seconds: The limit.
        """
        self._address = address
        seconds = min(max(seconds, MIN_SECONDS), MAX_SECONDS)
        idle, interval = max(1, int(seconds / 4)), max(1, int(seconds / 8))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in {
            socket.TCP_KEEPIDLE: idle,
            socket.TCP_KEEPINTVL: interval,
            socket.TCP_USER_TIMEOUT: int(1000 * seconds),
        }.items():
            connection.setsockopt(socket.IPPROTO_TCP, option, value)
        self._sockets.append(connection)

    def is_cut(self) -> bool:
        """Return whether the other machine has stopped answering."""
        with self._lock:
            self._close_ended()
            is_doubtful = self._has_ended or any(map(_is_late, self._sockets))
            return is_doubtful and not self._may_answer() and self._has_ended

    def is_late(self) -> bool:
        """Return whether the other machine has left several probes unanswered.

        The probes of two connections across one cut end up to a quarter of the time-out apart.
        """
        if self.is_cut():
            return True
        with self._lock:
            is_asked = self._attempt is not None and not self._has_answered
            return is_asked or any(map(_is_late, self._sockets))

    def close(self) -> None:
        """Close all connections."""
        with self._lock:
            self._give_up()
            while self._sockets:
                self._sockets.pop().close()

    __del__ = close  # of a transport that a program has not closed

    def _close_ended(self) -> None:
        for connection in list(self._sockets):
            try:
                connection.recv(1)  # nothing is ever sent: the peer has closed it
            except BlockingIOError:
                continue
            except OSError as error:
                self._has_ended |= error.errno in _CUT
            self._sockets.remove(connection)
            connection.close()

    def _may_answer(self) -> bool:
        """Try to connect; return False after an attempt that was not answered in time."""
        if self._attempt is None:
            self._attempt = socket.socket()
            self._attempt.setblocking(False)
            error = self._attempt.connect_ex(self._address or ("", 0))
            self._attempt_end = time.monotonic() + ANSWER_SECONDS
        else:
            error = self._attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if not error and not select.select([], [self._attempt], [], 0)[1]:
                error = errno.EINPROGRESS
        if error == errno.EINPROGRESS:
            return time.monotonic() < self._attempt_end  # the attempt may still be answered
        self._give_up()  # the next look begins another
        self._has_answered = error not in _CUT
        return self._has_answered

    def _give_up(self) -> None:
        if self._attempt is not None:
            self._attempt.close()
            self._attempt = None


def _is_late(connection: socket.socket) -> bool:
    # The first bytes of TCP_INFO: state, congestion, retransmits, unanswered probes.
    probes = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 4)[3]
    return probes >= LATE_PROBES
