"""What talks, lectures and the paper claim, each answered by a file with an experiment."""

from . import dense_family, requantize, supports
from .base import Answer as Answer
from .base import Claim as Claim

CLAIMS = (supports.CLAIM, dense_family.CLAIM, requantize.CLAIM)
