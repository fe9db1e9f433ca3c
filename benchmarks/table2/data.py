"""Data of Table 2: the full dimension, with fewer rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from sparcml.linear import spam
from sparcml.linear.data.synthetic import URL, WEBSPAM

from .paper import BATCH, ROWS

if TYPE_CHECKING:
    from sparcml import Communicator
    from sparcml.linear import Rows
    from sparcml.linear.data.synthetic import Recipe

MAILS = 2419  # of the bundled set, to learn from


@dataclass(frozen=True)
class Data:
    """One data set.

    Attributes:
        name: Name in tables.
        of: Corresponding data set of the paper, if any.
        recipe: Statistics of generated rows; None for the mails of the package.
        batches: Batches per epoch.
        rate: Learning rate, for the logistic and the hinge loss.
    """

    name: str
    of: str | None
    recipe: Recipe | None
    batches: int
    rate: float

    def batch(self, ranks: int) -> int:
        """Rows per step."""
        return MAILS if self.recipe is None else BATCH * ranks

    def rows(self, comm: Communicator) -> Rows:
        """Return this rank's rows."""
        if self.recipe is None:
            return spam(comm).train
        return self.recipe.rows(self.batch(comm.size) * self.batches, comm=comm)

    def full_pass(self, ranks: int) -> float:
        """Steps per epoch over all rows of the paper, or over the mails."""
        return ROWS[self.of] / (BATCH * ranks) if self.of else 1.0


# Rates that suit the squared length of rows, 115.6 and 1 on average.
DATA = {
    "url": Data("URL-like", "URL", URL, 6, 0.03),
    "webspam": Data("Webspam-like", "Webspam", WEBSPAM, 1, 2.0),
    "spam": Data("spam", None, None, 1, 2.0),
}
