"""Star: one hub, to which all other ranks are connected."""

from __future__ import annotations

from ...validation import as_integer
from ..mixing import graph_weights
from .tables import TableTopology, table_topology


def star(n: int, weights: str = "metropolis") -> TableTopology:
    """Return the star of n ranks around rank 0.

    The hub sends n - 1 messages per step and the others one each.

    Args:
        n: Number of ranks.
        weights: "metropolis" gives every edge the weight 1/n, which preserves the mean.
            "uniform" gives the hub 1/n and the others 1/2, which does not.
    """
    n = as_integer("star", "n", n, 1)
    neighbors = [list(range(1, n)), *([0] for _ in range(1, n))]
    rows = graph_weights("star", neighbors, weights)
    name = f"star({n})" if weights == "metropolis" else f"star({n}, weights={weights!r})"
    return table_topology("star", name, [rows])
