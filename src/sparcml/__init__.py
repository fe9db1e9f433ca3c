"""Sparse and quantized collectives for distributed training.

A `Stream` is a vector that is sparse while that is smaller. `world` returns the communicator
of a job, whose collectives reduce streams, NumPy arrays and torch tensors. Aggregation
methods such as `Compressed` average gradients with error feedback.

Further modules: `sparcml.torch` (PyTorch), `sparcml.linear` (linear models),
`sparcml.decentralized` (topologies and gossip methods), `sparcml.local` (local training),
`sparcml.network` (network models), `sparcml.costs` (declared costs) and `sparcml.wire`
(messages). Names are imported on first use: importing this package
loads none of its modules but the errors.
"""

from typing import TYPE_CHECKING

from .errors import MismatchError as MismatchError
from .errors import SparcmlError as SparcmlError
from .errors import TransportError as TransportError
from .errors import WireError as WireError
from .lazy_names import lazy_names
from .moved import install as _install

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
    from .stream import Stream as Stream

__version__ = "0.2.0"

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


_install()
__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".aggregate": (
            "DGC Adaptive Compressed Dense MajorityVote Method OneBitAdam PowerSGD Schedule "
            "TopKAdam"
        ),
        ".communicator.communicator": "Communicator",
        ".costs": "",
        ".decentralized": "",
        ".kernels": "",
        ".linear": "",
        ".local": "",
        ".network": "",
        ".network.simulator": "Simulation simulate",
        ".quantize": "NUQSGD QSGD Half Integer Natural OneBit Quantizer Sign TernGrad",
        ".sparsify": "BlockTopK RandomK Selection Sparsifier Threshold TopK",
        ".startup": "from_group from_mpi launch world",
        ".stream": "Stream",
        ".torch": "",
        ".wire": "",
    },
)
