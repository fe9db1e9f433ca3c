"""Sparse linear models over many processes."""

from ..errors import DataError as DataError
from .bundled import spam as spam
from .generate import url_like as url_like
from .generate import webspam_like as webspam_like
from .hashing import Hashing as Hashing
from .read import load_rows as load_rows
from .read import read_svmlight as read_svmlight
from .read import save_rows as save_rows
from .rows import Rows as Rows
from .write import write_svmlight as write_svmlight
