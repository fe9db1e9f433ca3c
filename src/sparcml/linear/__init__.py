"""Sparse linear models over many processes."""

from ..errors import DataError as DataError
from .rows import Rows as Rows
