"""Parsing and formatting of text in the SVMlight format."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import _core

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

SVMLIGHT_PADDING = _core.SVMLIGHT_PADDING  # bytes after the text that the parser may read
SvmlightParser = _core.SvmlightParser32 | _core.SvmlightParser64

svmlight_format = _core.svmlight_format
svmlight_row_bytes = _core.svmlight_row_bytes


def svmlight_parser(lowest: int, highest: int, dtype: DTypeLike) -> SvmlightParser:
    """Return a parser of rows with indices from `lowest` to `highest`."""
    if np.dtype(dtype) == np.float32:
        return _core.SvmlightParser32(lowest, highest)
    if np.dtype(dtype) == np.float64:
        return _core.SvmlightParser64(lowest, highest)
    raise ValueError(
        f"svmlight_parser: dtype must be float32 or float64, got {np.dtype(dtype)}"
    )
