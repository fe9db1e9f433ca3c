"""Frames of fixed size, and bodies, on the connections of gloo.

gloo does not report the size of a message, and a receive of another size than the send
aborts the process. Therefore a message is sent as a frame. A frame holds a short message
entirely. Of a longer one it holds the beginning; the rest follows as one body.

    frame:   0 u64 length of the message, 8 u8 its last byte, 16 its beginning, -1 u8 mark
    control: 0 u64 length, 16 text, -1 u8 mark
"""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..base import Message
    from .mesh import Mesh
    from .operations import Operation

FRAME_BYTES, CONTROL_BYTES = 1024, 2048
START = 16  # offset of the text
CAPACITY = FRAME_BYTES - START - 1  # bytes of a message in its frame
MARK = 1  # last byte of every frame, which shows that it has arrived
FRAMES, BODIES, CONTROL = 0, 1, 2  # gloo's tags

# Frames to one peer that may be in flight before a send waits for them.
WINDOW = 64

# Posted receives of control messages per peer: a rank that computes must not miss the
# messages of a rank that has ended meanwhile.
POSTED_CONTROLS = 4


def pack(message: Message, size: int = FRAME_BYTES) -> Message:
    """Return a frame with the beginning of a message."""
    frame = np.zeros(size, np.uint8)
    frame[:8].view(np.uint64)[0] = len(message)
    frame[8] = message[-1] if len(message) else 0
    beginning = message[: size - START - 1]
    frame[START : START + len(beginning)] = beginning
    frame[-1] = MARK
    return frame


def message_length(frame: Message) -> int:
    """Return the length of the message that begins in this frame."""
    return int(frame[:8].view(np.uint64)[0])


class Peer:
    """The frames from and to one peer."""

    def __init__(self, mesh: Mesh, rank: int) -> None:
        self._mesh = mesh
        self._rank = rank
        self._sending: deque[Operation] = deque()  # completed in this order
        self._watched: Operation | None = None  # the one that a thread waits for
        self._receiving = self._post_frame()

    def _post_frame(self) -> Operation:
        frame = np.empty(FRAME_BYTES, np.uint8)
        return self._mesh.receive(self._rank, frame, FRAMES, MARK)

    def send(self, message: Message) -> Operation | None:
        """Send a message; return the operation to wait for before reusing the buffer."""
        operation = self._mesh.send(self._rank, pack(message), FRAMES)
        self._sending.append(operation)
        if len(message) > CAPACITY:
            operation = self._mesh.send(self._rank, message[CAPACITY:], BODIES)
        self._release_sent()
        must_wait = len(message) > CAPACITY or len(self._sending) > WINDOW
        return operation if must_wait else None

    def _release_sent(self) -> None:
        if self._watched is None and len(self._sending) > WINDOW // 2:
            self._watched = self._sending[-1]
        if self._watched is not None and self._watched.poll():
            while self._sending.popleft() is not self._watched:
                pass
            self._watched = None

    def all_sent(self) -> bool:
        """Return whether every frame has been sent."""
        return not self._sending or self._sending[-1].poll()

    def next_frame(self) -> Message | None:
        """Return the next frame of this peer, if it has arrived."""
        if not self._receiving.poll():
            return None
        frame = self._receiving.buffer
        # Posted before anything else: a peer that closes after its last body has then
        # read all our messages, and closes without a reset.
        with suppress(RuntimeError):
            self._receiving = self._post_frame()
        return frame

    def receive_body(self, frame: Message, message: Message) -> Operation:
        """Start to receive the part of a message that its frame does not hold."""
        message[:CAPACITY] = frame[START:-1]
        return self._mesh.receive(self._rank, message[CAPACITY:], BODIES, int(frame[8]))


class ControlMessages:
    """The control messages from and to all peers."""

    def __init__(self, mesh: Mesh, peers: list[int]) -> None:
        self._mesh = mesh
        self._receiving: dict[int, deque[Operation]] = {peer: deque() for peer in peers}
        self._sent: list[Operation] = []  # keeps the buffers alive; there are few
        for peer in peers * POSTED_CONTROLS:
            self._post(peer)

    def _post(self, peer: int) -> None:
        buffer = np.empty(CONTROL_BYTES, np.uint8)
        self._receiving[peer].append(self._mesh.receive(peer, buffer, CONTROL, MARK))

    def send(self, peer: int, message: bytes) -> None:
        """Send a control message, if the peer still exists."""
        text = np.frombuffer(message[: CONTROL_BYTES - START - 1], np.uint8)
        with suppress(RuntimeError):
            self._sent.append(self._mesh.send(peer, pack(text, CONTROL_BYTES), CONTROL))

    def poll(self) -> list[tuple[int, bytes]]:
        """Return the senders and the control messages that have arrived."""
        messages = []
        for peer, receiving in self._receiving.items():
            while receiving and receiving[0].poll_arrival():
                frame = receiving.popleft().buffer
                text = frame[START : START + message_length(frame)].tobytes()
                messages.append((peer, text))
                with suppress(RuntimeError):
                    self._post(peer)
        return messages
