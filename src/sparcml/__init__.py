"""sparcml: sum vectors across machines and send only what matters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .communicator.communicator import Communicator as Communicator
from .errors import MismatchError as MismatchError
from .errors import TransportError as TransportError
from .errors import WireError as WireError
from .quantize import NUQSGD as NUQSGD
from .quantize import QSGD as QSGD
from .quantize import Half as Half
from .quantize import Integer as Integer
from .quantize import Natural as Natural
from .quantize import OneBit as OneBit
from .quantize import Sign as Sign
from .quantize import TernGrad as TernGrad
from .startup import from_group as from_group
from .startup import from_mpi as from_mpi
from .startup import launch as launch
from .startup import world as world
from .stream import Stream as Stream

if TYPE_CHECKING:
    from .aggregate import DGC as DGC
    from .aggregate import Compressed as Compressed
    from .aggregate import Dense as Dense
    from .aggregate import MajorityVote as MajorityVote
    from .aggregate import Method as Method
    from .aggregate import PowerSGD as PowerSGD
    from .aggregate import Schedule as Schedule
    from .network.simulator import Simulation as Simulation
    from .network.simulator import simulate as simulate
    from .sparsify import BlockTopK as BlockTopK
    from .sparsify import RandomK as RandomK
    from .sparsify import Selection as Selection
    from .sparsify import Sparsifier as Sparsifier
    from .sparsify import Threshold as Threshold
    from .sparsify import TopK as TopK

__version__ = "0.2.0"

# What sums do without is imported when it is first asked for, which takes as long as the rest.
_LATER = {
    "aggregate": (
        "DGC",
        "Compressed",
        "Dense",
        "MajorityVote",
        "Method",
        "PowerSGD",
        "Schedule",
    ),
    "linear": (),
    "network": ("Simulation", "simulate"),
    "sparsify": ("BlockTopK", "RandomK", "Sparsifier", "Selection", "Threshold", "TopK"),
    "torch": (),
}
_ROOM_OF = {name: room for room, names in _LATER.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        return import_module(f".{name}", __name__)
    if name not in _ROOM_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_ROOM_OF[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_ROOM_OF})
