"""Transports: messages between ranks, one file per engine."""

from .base import Message as Message
from .base import Pending as Pending
from .base import Transport as Transport
from .counting import CountingTransport as CountingTransport
from .counting import SubgroupTransport as SubgroupTransport
from .nodes import Nodes as Nodes
from .stats import Prediction as Prediction
from .stats import Stats as Stats
from .threads import ThreadGroup as ThreadGroup
from .threads import ThreadTransport as ThreadTransport
