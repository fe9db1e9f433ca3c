"""Frames, and bodies, on the connections of gloo.

gloo does not report the size of a message, and a message longer than its receive aborts the
process; a shorter one is received. Therefore a message is sent as a frame, for which receives
of the largest size are always posted. A frame holds a short message entirely, so that it needs
one operation and one trip. Of a longer one it holds the beginning; the rest follows as one body.

    0 u64 length of the message, 8 u8 its last byte, 15 u8 mark, 16 its beginning, u8 mark

The bytes of a frame arrive in order. The first mark shows that the length has arrived, and the
mark behind the text that all of it has.
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from struct import Struct
from typing import TYPE_CHECKING

import numpy as np

from ... import buffer_pool

if TYPE_CHECKING:
    from ..base import Message
    from .mesh import Mesh, Operation

START = 16  # offset of the text
CAPACITY, CONTROL_CAPACITY = 1 << 18, 1 << 11  # bytes of a message in its frame
MARK = 1
HEADER = Struct("<QB6xB")
FRAMES, BODIES, CONTROL = 0, 1, 2  # gloo's tags

# Frames to one peer that may be in flight before a send waits for them, and their bytes.
WINDOW, WINDOW_BYTES = 64, 1 << 22

# Receives posted per peer. gloo tells the peer of each one. If half of them are posted at
# once, the peer wakes once for all. A rank that computes must not miss the control messages
# of a rank that has ended meanwhile.
POSTED_FRAMES, POSTED_CONTROLS = 8, 4


def pack(message: Message, capacity: int = CAPACITY) -> Message:
    """Return a frame with the beginning of a message."""
    length = len(message)
    text = min(length, capacity)
    frame = np.empty(START + text + 1, np.uint8)
    HEADER.pack_into(frame.data, 0, length, int(message[-1]) if length else 0, MARK)
    frame[START:-1] = message[:text]
    frame[-1] = MARK
    return frame


class Inbox:
    """Receives of frames from one peer, posted before they are needed.

    Args:
        mesh: The connections.
        rank: The peer.
        tag: Tag of the frames.
        capacity: Longest text of a frame.
        count: Number of receives; all but half of them are always posted.
    """

    def __init__(self, mesh: Mesh, rank: int, tag: int, capacity: int, count: int) -> None:
        self._mesh, self._rank, self._tag = mesh, rank, tag
        self._capacity, self._count = capacity, count
        # Of the memory only pages into which messages have been written are used.
        memory = np.zeros((count, START + capacity + 1), np.uint8)
        self._free = list(memory)
        self._posted: deque[Operation] = deque()
        self._post()

    def _post(self) -> None:
        while self._free:
            frame = self._free[-1]

            def has_arrived(frame: memoryview = frame.data) -> bool:
                if frame[START - 1] != MARK:
                    return False
                length: int = HEADER.unpack_from(frame)[0]
                return frame[START + min(length, self._capacity)] == MARK

            operation = self._mesh.receive(self._rank, frame, self._tag, has_arrived)
            self._posted.append(operation)
            self._free.pop()

    @property
    def next(self) -> Operation:
        """The receive of the next frame."""
        if not self._posted:
            raise RuntimeError("receive: the connection is closed")
        return self._posted[0]

    def take(self, longest: int) -> tuple[int, int, Message]:
        """Return a message's length, last byte and beginning from the frame that has arrived.

        Of a message that is too long, only the beginning is returned: the header in it tells
        what is wrong.
        """
        frame = self._posted.popleft().buffer
        length, last, _ = HEADER.unpack_from(frame.data)
        text = min(length, self._capacity)
        if length > longest:
            length = text
        # Memory for the entire message: the body follows the beginning.
        message = buffer_pool.empty(length, np.uint8)
        message[:text] = frame[START : START + text]
        frame[: START + text + 1] = 0
        self._free.append(frame)
        if 2 * len(self._free) >= self._count:
            # A closed connection: frames that have arrived are still read.
            with suppress(RuntimeError):
                self._post()
        return length, last, message


class Peer:
    """The frames from and to one peer."""

    def __init__(self, mesh: Mesh, rank: int) -> None:
        self._mesh = mesh
        self._rank = rank
        self._sending: deque[Operation] = deque()  # completed in this order
        self._sending_bytes = 0
        self._watched: Operation | None = None  # the one that a thread waits for
        self._inbox = Inbox(mesh, rank, FRAMES, CAPACITY, POSTED_FRAMES)

    def send(self, message: Message) -> Operation | None:
        """Send a message; return the operation to wait for before reusing the buffer."""
        operation = self._mesh.send(self._rank, pack(message), FRAMES)
        self._sending.append(operation)
        self._sending_bytes += operation.buffer.nbytes
        if len(message) > CAPACITY:
            operation = self._mesh.send(self._rank, message[CAPACITY:], BODIES)
        self._release_sent()
        must_wait = len(message) > CAPACITY or self._fills(WINDOW, WINDOW_BYTES)
        return operation if must_wait else None

    def _fills(self, frames: int, nbytes: int) -> bool:
        return len(self._sending) > frames or self._sending_bytes > nbytes

    def _release_sent(self) -> None:
        if self._watched is None and self._fills(WINDOW // 2, WINDOW_BYTES // 2):
            self._watched = self._sending[-1]
        if self._watched is not None and self._watched.poll():
            sent = None
            while sent is not self._watched:
                sent = self._sending.popleft()
                self._sending_bytes -= sent.buffer.nbytes
            self._watched = None

    def all_sent(self) -> bool:
        """Return whether every frame has been sent."""
        return not self._sending or self._sending[-1].poll()

    def receive(self, longest: int) -> tuple[Message, Operation | None] | None:
        """Return the next message and the receive of its body, if its frame has arrived."""
        if not self._inbox.next.poll():
            return None
        length, last, message = self._inbox.take(longest)
        if length <= CAPACITY:
            return message, None
        body = message[CAPACITY:]
        body[-1] = last ^ 0xFF
        has_arrived = lambda: bool(body[-1] == last)  # noqa: E731
        return message, self._mesh.receive(self._rank, body, BODIES, has_arrived)


class ControlMessages:
    """The control messages from and to all peers."""

    def __init__(self, mesh: Mesh, peers: list[int]) -> None:
        self._mesh = mesh
        self._sent: list[Operation] = []  # keeps the buffers alive; there are few
        self._inboxes = {
            peer: Inbox(mesh, peer, CONTROL, CONTROL_CAPACITY, POSTED_CONTROLS)
            for peer in peers
        }

    def send(self, peer: int, message: bytes) -> None:
        """Send a control message, if the peer still exists."""
        text = np.frombuffer(message[:CONTROL_CAPACITY], np.uint8)
        with suppress(RuntimeError):
            frame = pack(text, CONTROL_CAPACITY)
            self._sent.append(self._mesh.send(peer, frame, CONTROL))

    def poll(self) -> list[tuple[int, bytes]]:
        """Return the senders and the control messages that have arrived."""
        messages = []
        for peer, inbox in self._inboxes.items():
            with suppress(RuntimeError):
                while inbox.next.poll_arrival():
                    messages.append((peer, inbox.take(CONTROL_CAPACITY)[2].tobytes()))
        return messages
