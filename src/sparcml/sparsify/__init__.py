"""The entries that matter: one file a method."""

from .base import Sparsifier as Sparsifier
from .base import Taken as Taken
from .block_topk import Blocks as Blocks
from .randomk import RandomK as RandomK
from .threshold import Threshold as Threshold
from .topk import TopK as TopK
