"""Rows out of files."""

from .svmlight import read_svmlight as read_svmlight
