"""Sparsifiers: the entries of a vector to send, one file per method."""

from .base import SPARSIFIERS as SPARSIFIERS
from .base import Selection as Selection
from .base import Sparsifier as Sparsifier
from .block_topk import BlockTopK as BlockTopK
from .randomk import RandomK as RandomK
from .threshold import Threshold as Threshold
from .topk import TopK as TopK
