"""Statistics of the entries that sparsifiers have selected."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .error_feedback import squared_norm

if TYPE_CHECKING:
    from ..communicator.communicator import Communicator
    from ..sparsify import Selection


@dataclass
class SelectionStats:
    """Selected entries of one communicator; `comm.cache.get(SelectionStats)` returns them.

    Attributes:
        entries: Selected entries.
        selected_squares: Sum of the squares of the selected entries.
        corrected_squares: Sum of the squares of the corrected gradients (residual +
            gradient) that they were selected from.
    """

    entries: int = 0
    selected_squares: float = 0.0
    corrected_squares: float = 0.0

    def count(self, entries: int, selected: float, corrected: float) -> None:
        """Count one selection and its sums of squares. Non-finite sums are left out."""
        self.entries += entries
        if math.isfinite(corrected):
            self.selected_squares += selected
            self.corrected_squares += corrected

    @property
    def selected_norm(self) -> float | None:
        """Norm of the selected entries relative to the norm of the corrected gradients.

        None without a selection, when everything is sent. It excludes the error of
        quantizers. Entries that a sparsifier scales up count as sent, so it can exceed 1.
        """
        if not self.corrected_squares:
            return None
        return math.sqrt(self.selected_squares / self.corrected_squares)

    def reset(self) -> None:
        """Set all counters to zero."""
        self.entries, self.selected_squares, self.corrected_squares = 0, 0.0, 0.0


def count_selection(comm: Communicator, selection: Selection) -> None:
    """Count a selection in the statistics of a communicator."""
    sent = squared_norm(selection.sent.raw_values)
    stats = comm.cache.get(SelectionStats)
    stats.count(selection.sent.nnz, sent, selection.squared_norm)
