"""What a communicator has done: counters, seconds by phase, and traces of its messages."""

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .counting import CountingTransport as CountingTransport
    from .counting import SendsInTurn as SendsInTurn
    from .counting import SubgroupTransport as SubgroupTransport
    from .stats import Prediction as Prediction
    from .stats import Stats as Stats

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".counting": "CountingTransport SendsInTurn SubgroupTransport",
        ".stats": "Prediction Stats",
    },
)
