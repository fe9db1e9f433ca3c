"""Compressed training with PyTorch: two lines in a DDP script, or around an optimizer."""

from importlib.util import find_spec

if find_spec("torch") is None:
    raise ImportError(
        "sparcml.torch: PyTorch is not installed; install it with pip install sparcml[torch]"
    )

from .ddp import compress as compress
from .decentralized import Decentralized as Decentralized
from .elastic import ElasticTraining as ElasticTraining
from .handle import Handle as Handle
from .handle import Stateful as Stateful
from .local import BMUF as BMUF
from .local import SPARTA as SPARTA
from .local import DeMo as DeMo
from .local import DiLoCo as DiLoCo
from .local import LocalSGD as LocalSGD
from .local import SparseLoCo as SparseLoCo
from .optimizer import wrap as wrap
from .recommended import recommended as recommended
