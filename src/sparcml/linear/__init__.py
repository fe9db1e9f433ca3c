"""Sparse linear models over many processes."""

from ..errors import DataError as DataError
from .read import read_svmlight as read_svmlight
from .rows import Rows as Rows
