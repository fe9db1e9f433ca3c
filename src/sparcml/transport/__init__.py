"""Bytes between ranks: one file an engine."""

from .base import Message as Message
from .base import Pending as Pending
from .base import Transport as Transport
from .counting import Counting as Counting
from .counting import Members as Members
from .counting import Reckoned as Reckoned
from .counting import Stats as Stats
from .nodes import Nodes as Nodes
from .threads import ThreadTransport as ThreadTransport
from .threads import World as World
