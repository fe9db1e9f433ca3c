"""What travels on gloo's connections: frames of fixed size, then bodies.

gloo cannot tell how much is coming, and a receive of another size than the send ends the
process. So a message travels as a frame. It holds a short message entirely; of a longer
one it holds the beginning, and the rest follows in one piece, the body.

    frame: 0 u64 length of the message, 8 u8 its last byte, 16 its beginning, -1 u8 mark
    note:  0 u64 length, 16 text, -1 u8 mark
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

FRAME, NOTE = 1024, 2048
START = 16  # where the text begins
ROOM = FRAME - START - 1
MARK = 1  # the last byte of every frame, by which its arrival is seen
FRAMES, BODIES, NOTES = 0, 1, 2  # gloo's tags

# Frames to one peer that may be on their way before a send has to wait for them.
WINDOW = 64

# Notes awaited from each peer: a rank that computes must not miss what one that has
# ended since then had to say.
AWAITED_NOTES = 4


def packed(message: Message, size: int = FRAME) -> Message:
    """A frame with the beginning of a message."""
    frame = np.zeros(size, np.uint8)
    frame[:8].view(np.uint64)[0] = len(message)
    frame[8] = message[-1] if len(message) else 0
    beginning = message[: size - START - 1]
    frame[START : START + len(beginning)] = beginning
    frame[-1] = MARK
    return frame


def length(frame: Message) -> int:
    """Of the message that begins in this frame."""
    return int(frame[:8].view(np.uint64)[0])


class Peer:
    """The frames from and to one peer."""

    def __init__(self, mesh: Mesh, rank: int) -> None:
        self._mesh = mesh
        self._rank = rank
        self._leaving: deque[Operation] = deque()  # done in this order
        self._marker: Operation | None = None  # one of them, which a thread waits for
        self._arriving = self._await_frame()

    def _await_frame(self) -> Operation:
        frame = np.empty(FRAME, np.uint8)
        return self._mesh.receive(self._rank, frame, FRAMES, MARK)

    def send(self, message: Message) -> Operation | None:
        """What to wait for until the message may be touched again, if anything."""
        frame = self._mesh.send(self._rank, packed(message), FRAMES)
        self._leaving.append(frame)
        if len(message) > ROOM:
            frame = self._mesh.send(self._rank, message[ROOM:], BODIES)
        self._forget_what_has_left()
        return frame if len(message) > ROOM or len(self._leaving) > WINDOW else None

    def _forget_what_has_left(self) -> None:
        if self._marker is None and len(self._leaving) > WINDOW // 2:
            self._marker = self._leaving[-1]
        if self._marker is not None and self._marker.done():
            while self._leaving.popleft() is not self._marker:
                pass
            self._marker = None

    def all_left(self) -> bool:
        """Whether every frame has been sent."""
        return not self._leaving or self._leaving[-1].done()

    def next_frame(self) -> Message | None:
        """The next frame of this peer, if it is here."""
        if not self._arriving.done():
            return None
        frame = self._arriving.buffer
        # Before anything else is posted: a peer that closes after its last body has then
        # read all that we tell it, and closes without a reset.
        with suppress(RuntimeError):
            self._arriving = self._await_frame()
        return frame

    def body(self, frame: Message, message: Message) -> Operation:
        """Start receiving what did not fit in the frame."""
        message[:ROOM] = frame[START:-1]
        return self._mesh.receive(self._rank, message[ROOM:], BODIES, int(frame[8]))


class ControlMessages:
    """The notes from and to all peers."""

    def __init__(self, mesh: Mesh, peers: list[int]) -> None:
        self._mesh = mesh
        self._awaited: dict[int, deque[Operation]] = {peer: deque() for peer in peers}
        self._told: list[Operation] = []  # keeps the buffers alive; there are few
        for peer in peers * AWAITED_NOTES:
            self._await_note(peer)

    def _await_note(self, peer: int) -> None:
        buffer = np.empty(NOTE, np.uint8)
        self._awaited[peer].append(self._mesh.receive(peer, buffer, NOTES, MARK))

    def send_control(self, peer: int, message: bytes) -> None:
        """Send a note; a peer that is gone does not get it."""
        text = np.frombuffer(message[: NOTE - START - 1], np.uint8)
        with suppress(RuntimeError):
            self._told.append(self._mesh.send(peer, packed(text, NOTE), NOTES))

    def poll_control(self) -> list[tuple[int, bytes]]:
        """The notes that are here."""
        found = []
        for peer, awaited in self._awaited.items():
            while awaited and awaited[0].seen():
                note = awaited.popleft().buffer
                found.append((peer, note[START : START + length(note)].tobytes()))
                with suppress(RuntimeError):
                    self._await_note(peer)
        return found
