"""Sparse and quantized collectives for distributed training.

A `Stream` is a vector that is sparse while that is smaller. `world` returns the communicator
of a job, whose collectives reduce streams, NumPy arrays and torch tensors. Aggregation
methods such as `Compressed` average gradients with error feedback.

Further modules: `sparcml.torch` (PyTorch), `sparcml.linear` (linear models),
`sparcml.decentralized` (topologies and gossip methods),
`sparcml.network` (network models), `sparcml.costs` (declared costs) and `sparcml.wire`
(messages). All names are imported on first use; importing this
package loads NumPy and the kernels only.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import MismatchError as MismatchError
from .errors import SparcmlError as SparcmlError
from .errors import TransportError as TransportError
from .errors import WireError as WireError
from .stream import Stream as Stream

if TYPE_CHECKING:
    from .aggregate import DGC as DGC
    from .aggregate import Adaptive as Adaptive
    from .aggregate import Compressed as Compressed
    from .aggregate import Dense as Dense
    from .aggregate import MajorityVote as MajorityVote
    from .aggregate import Method as Method
    from .aggregate import OneBitAdam as OneBitAdam
    from .aggregate import PowerSGD as PowerSGD
    from .aggregate import Schedule as Schedule
    from .aggregate import TopKAdam as TopKAdam
    from .communicator.communicator import Communicator as Communicator
    from .network.simulator import Simulation as Simulation
    from .network.simulator import simulate as simulate
    from .quantize import NUQSGD as NUQSGD
    from .quantize import QSGD as QSGD
    from .quantize import Half as Half
    from .quantize import Integer as Integer
    from .quantize import Natural as Natural
    from .quantize import OneBit as OneBit
    from .quantize import Quantizer as Quantizer
    from .quantize import Sign as Sign
    from .quantize import TernGrad as TernGrad
    from .sparsify import BlockTopK as BlockTopK
    from .sparsify import RandomK as RandomK
    from .sparsify import Selection as Selection
    from .sparsify import Sparsifier as Sparsifier
    from .sparsify import Threshold as Threshold
    from .sparsify import TopK as TopK
    from .startup import from_group as from_group
    from .startup import from_mpi as from_mpi
    from .startup import launch as launch
    from .startup import world as world

__version__ = "0.2.0"

_LAZY_NAMES = {
    "aggregate": (
        "DGC Adaptive Compressed Dense MajorityVote Method OneBitAdam PowerSGD Schedule TopKAdam"
    ),
    "communicator.communicator": "Communicator",
    "network.simulator": "Simulation simulate",
    "quantize": "NUQSGD QSGD Half Integer Natural OneBit Quantizer Sign TernGrad",
    "sparsify": "BlockTopK RandomK Selection Sparsifier Threshold TopK",
    "startup": "from_group from_mpi launch world",
}
_MODULE_OF = {name: m for m, names in _LAZY_NAMES.items() for name in names.split()}
_MODULES = (
    "aggregate",
    "costs",
    "decentralized",
    "linear",
    "network",
    "quantize",
    "sparsify",
    "torch",
    "wire",
)

__all__ = [
    "DGC",
    "NUQSGD",
    "QSGD",
    "Adaptive",
    "BlockTopK",
    "Communicator",
    "Compressed",
    "Dense",
    "Half",
    "Integer",
    "MajorityVote",
    "Method",
    "MismatchError",
    "Natural",
    "OneBit",
    "OneBitAdam",
    "PowerSGD",
    "Quantizer",
    "RandomK",
    "Schedule",
    "Selection",
    "Sign",
    "Simulation",
    "SparcmlError",
    "Sparsifier",
    "Stream",
    "TernGrad",
    "Threshold",
    "TopK",
    "TopKAdam",
    "TransportError",
    "WireError",
    "from_group",
    "from_mpi",
    "launch",
    "simulate",
    "world",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULE_OF[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
