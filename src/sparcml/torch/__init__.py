"""Compressed training with PyTorch: two lines in a DDP script, or around an optimizer."""

from importlib.util import find_spec
from typing import TYPE_CHECKING

if find_spec("torch") is None:
    from ..errors import how_to_install

    raise ImportError(
        f"sparcml.torch: PyTorch is not installed; install it with: {how_to_install('torch')}",
        name="torch",
    )

from ..lazy_names import lazy_names

# Not on first use: by then another module may have imported the file of this name, which
# makes the name that of the file.
from .recommended import recommended as recommended

if TYPE_CHECKING:
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

__all__ = [
    "BMUF",
    "SPARTA",
    "DeMo",
    "Decentralized",
    "DiLoCo",
    "ElasticTraining",
    "Handle",
    "LocalSGD",
    "SparseLoCo",
    "Stateful",
    "compress",
    "recommended",
    "wrap",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".ddp": "compress",
        ".decentralized": "Decentralized",
        ".elastic": "ElasticTraining",
        ".handle": "Handle Stateful",
        ".local": "BMUF DeMo DiLoCo LocalSGD SPARTA SparseLoCo",
        ".optimizer": "wrap",
    },
)
