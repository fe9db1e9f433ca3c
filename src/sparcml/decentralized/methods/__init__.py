"""Decentralized training methods, one file each."""

from ..base import METHODS as METHODS
from ..base import Method as Method
from .adpsgd import ADPSGD as ADPSGD
from .choco import Choco as Choco
from .d2 import D2 as D2
from .dcd import DCD as DCD
from .dpsgd import DPSGD as DPSGD
from .ecd import ECD as ECD
from .gradient_tracking import GradientTracking as GradientTracking
from .moniqua import Moniqua as Moniqua
from .naive_quantized import NaiveQuantized as NaiveQuantized
from .push_sum import PushSum as PushSum
from .relay_sum import RelaySum as RelaySum
