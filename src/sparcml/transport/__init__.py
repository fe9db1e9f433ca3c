"""Transports: messages between ranks, one file per engine."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .base import Message as Message
    from .base import Pending as Pending
    from .base import Transport as Transport
    from .nodes import Nodes as Nodes
    from .threads import ThreadGroup as ThreadGroup
    from .threads import ThreadTransport as ThreadTransport

# `sparcml run` needs `shared_memory` alone.
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".base": "Message Pending Transport",
        ".nodes": "Nodes",
        ".threads": "ThreadGroup ThreadTransport",
    },
)
