"""Rows out of files."""

from .cache import load_rows as load_rows
from .cache import save_rows as save_rows
from .svmlight import read_svmlight as read_svmlight
