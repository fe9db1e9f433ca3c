"""Labelled rows of sparse matrices: reading, writing, generating, shuffling, partitioning."""

from .row_file import load_rows as load_rows
from .row_file import save_rows as save_rows
from .svmlight import read_svmlight as read_svmlight
