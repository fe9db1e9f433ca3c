"""Quantizers: values in fewer bits, one file per method."""

from .base import QUANTIZERS as QUANTIZERS
from .base import Quantizer as Quantizer
from .base import ScaleRule as ScaleRule
from .base import from_wire as from_wire
from .code import Code as Code
from .codebook import Codebook as Codebook
from .distortion import Distortion as Distortion
from .distortion import distortion as distortion
from .half import Half as Half
from .integer import Integer as Integer
from .natural import Natural as Natural
from .nuqsgd import NUQSGD as NUQSGD
from .onebit import OneBit as OneBit
from .qsgd import QSGD as QSGD
from .sign import Sign as Sign
from .terngrad import TernGrad as TernGrad
