"""Topology of a networkx graph."""

from __future__ import annotations

from typing import Any

from ..mixing import graph_weights
from .tables import TableTopology, digest, table_topology


def from_networkx(graph: Any, weights: str | None = None) -> TableTopology:
    """Return the topology of a graph whose nodes are numbered from 0 to n - 1.

    Edge attributes are ignored; use `from_matrix` for weights of your own. Loops are ignored
    too: every rank keeps a part of its own data.

    Args:
        graph: A networkx graph. In a directed one, data flows along the edges.
        weights: "metropolis", the default for undirected graphs, gives edge (i, j) the weight
            1 / (1 + max(degrees)) and preserves the mean. "uniform", the default and only
            choice for directed graphs, gives a rank and its neighbours 1 / (1 + in-degree).

    Raises:
        ValueError: If the graph is empty or not connected, or its nodes are not ranks.
    """
    function = "from_networkx"
    if not hasattr(graph, "is_directed") or not hasattr(graph, "edges"):
        raise TypeError(
            f"{function}: graph must be a networkx graph, got {type(graph).__name__}"
        )
    n = len(graph)
    if (
        n == 0
        or any(isinstance(node, bool) for node in graph)
        or set(graph) != set(range(n))
    ):
        raise ValueError(
            f"{function}: nodes must be 0 to n - 1, got {list(graph)[:4]} in a graph of {n}; use "
            f"networkx.convert_node_labels_to_integers"
        )
    directed = bool(graph.is_directed())
    if weights is None:
        weights = "uniform" if directed else "metropolis"
    if directed and weights == "metropolis":
        raise ValueError(
            f"{function}: weights must be uniform for a directed graph, got {weights!r}"
        )
    neighbors: list[set[int]] = [set() for _ in range(n)]
    for source, target in graph.edges():
        neighbors[target].add(source)
        if not directed:
            neighbors[source].add(target)
    lists = [sorted(each - {rank}) for rank, each in enumerate(neighbors)]
    rows = graph_weights(function, lists, weights)
    edges = sum(map(len, lists)) // (1 if directed else 2)
    name = f"{function}({n} ranks, {edges} edges, {digest([rows])})"
    return table_topology(function, name, [rows])
