"""Values in few bits: one file a method."""

from .base import Code as Code
from .base import Quantizer as Quantizer
from .byte import Byte as Byte
from .half import Half as Half
from .registry import from_wire as from_wire
