"""sparcml: sum vectors across machines and send only what matters."""

from .aggregate import DGC as DGC
from .aggregate import Compressed as Compressed
from .aggregate import Dense as Dense
from .aggregate import MajorityVote as MajorityVote
from .aggregate import Method as Method
from .aggregate import PowerSGD as PowerSGD
from .aggregate import Schedule as Schedule
from .communicator import Communicator as Communicator
from .errors import MismatchError as MismatchError
from .errors import TransportError as TransportError
from .errors import WireError as WireError
from .network import Simulation as Simulation
from .network import simulate as simulate
from .quantize import NUQSGD as NUQSGD
from .quantize import QSGD as QSGD
from .quantize import Half as Half
from .quantize import Natural as Natural
from .quantize import OneBit as OneBit
from .quantize import Sign as Sign
from .quantize import TernGrad as TernGrad
from .quantize import Whole as Whole
from .ranks import from_group as from_group
from .ranks import from_mpi as from_mpi
from .ranks import launch as launch
from .ranks import world as world
from .sparsify import Blocks as Blocks
from .sparsify import RandomK as RandomK
from .sparsify import Sparsifier as Sparsifier
from .sparsify import Taken as Taken
from .sparsify import Threshold as Threshold
from .sparsify import TopK as TopK
from .stream import Stream as Stream

__version__ = "0.1.0"
