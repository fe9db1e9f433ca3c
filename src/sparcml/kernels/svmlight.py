"""Parsers of text."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import _core

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

SVMLIGHT_PADDING = _core.SVMLIGHT_PADDING  # bytes behind the text that a parser may look at
SvmlightParser = _core.SvmlightParser32 | _core.SvmlightParser64


def svmlight_parser(lowest: int, highest: int, dtype: DTypeLike) -> SvmlightParser:
    """Of rows with indices from lowest to highest and values of a dtype."""
    if np.dtype(dtype) == np.float32:
        return _core.SvmlightParser32(lowest, highest)
    if np.dtype(dtype) == np.float64:
        return _core.SvmlightParser64(lowest, highest)
    raise ValueError(f"values must be float32 or float64, got {np.dtype(dtype)}")
