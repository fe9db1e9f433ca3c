"""Write docs/algorithms.md from the docstrings of the collectives: `make docs`."""

from __future__ import annotations

import re
import sys
from importlib import import_module
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "examples" / "plugins"))

import oktopk  # noqa: F401  # registers itself

from sparcml.collectives import ALLREDUCES

PAGE = Path(__file__).with_name("algorithms.md")
BUILDING_BLOCKS = (
    "agree",
    "split",
    "pipeline",
    "allgather",
    "broadcast",
    "reduce",
    "numbers",
    "alltoall",
    "neighbor_allreduce",
    "neighbor_exchange",
    "agree_topology",
    "fold",
)
WITHOUT_FIGURE = (
    "native",
    "pipeline",
    "numbers",
    "alltoall",
    "neighbor_allreduce",
    "neighbor_exchange",
    "agree_topology",
)
# Algorithms whose messages take the same routes share a figure, which has the sizes of each.
SHARED_FIGURES = {
    "recursive_double": "ssar_recursive_double",
    "dsar_split_allgather": "ssar_split_allgather",
    "sharded": "ssar_split_allgather",
    "split": "ssar_split_allgather",
    "ssar_ring": "ring",
    "agree": "allgather",
    "ssar_allgather": "allgather",
}
FIXED_LINES = ("Rounds", "Bytes sent per rank", "Fan-in", "Reference")

INTRODUCTION = """\
# Algorithms

This page is collected from the files of `src/sparcml/collectives/` by `make docs`. The title of a section is
the name of a file, and for an allreduce also the value of `algorithm=`. `oktopk` is a plug-in, a file of
`examples/plugins/`; import it before its first use.

P is the world size, N the size of the vector, k the largest nnz of a rank, K the nnz of the result. Each file
declares the messages of every rank in every round, and tests compare them with the counted ones. `auto` and
`explain` turn them into seconds: latency per round, overhead per further message, seconds per byte, and seconds
per entry that is encoded, merged or written. Until the network has been measured, these costs are the defaults
of `costs/network.py`.

| vector | fastest algorithm |
| --- | --- |
| few nonzeros, latency dominates | ssar_recursive_double |
| many nonzeros, sparse result | ssar_split_allgather |
| many nonzeros, dense result | dsar_split_allgather |
| quantized; two ranks, or indices that hardly overlap | ssar_allgather |
| dense | native |
| several ranks share a node and its slow link | hierarchical |
| only the largest entries of the result are needed | oktopk, a plug-in, by name: `auto` is lossless |

With uniformly random indices the result has E[K] = N (1 - (1 - k/N)^P) nonzeros: at a density of 1 % per rank,
the density of the result is 7.7 % on 8 ranks and 47 % on 64 ranks.

The figures are drawn by `docs/diagrams.py` from traces of real runs (see [tour.md](tour.md)). A column is a rank,
rounds go from top to bottom, and an arrow is a message in the colour of its sender; its width shows its size.
Algorithms whose messages take the same routes share a figure, with a column of sizes each.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """Return the text of the page."""
    parts = [INTRODUCTION, "# Allreduce\n"]
    parts += [section(name) for name in ALLREDUCES]
    parts.append("# Building blocks\n")
    parts += [section(name) for name in BUILDING_BLOCKS]
    return "\n".join(parts)


def section(name: str) -> str:
    """Return one section: the docstring of a file with its fixed lines in bold, a figure."""
    algorithm = ALLREDUCES.get(name)
    module = algorithm.run.__module__ if algorithm else f"sparcml.collectives.{name}"
    text = import_module(module).__doc__ or ""
    heads = "|".join(FIXED_LINES)
    text = re.sub(rf"^({heads}):", r"\n**\1:**", text, flags=re.MULTILINE)
    text = re.sub(r"\n{3,}", "\n\n", text)
    if name in WITHOUT_FIGURE:
        return f"## {name}\n\n{text.strip()}\n"
    figure = f"![messages of {name}](figures/{name}.svg)"
    if shared := SHARED_FIGURES.get(name):
        figure = f"Figure: see [{shared}](#{shared})."
    return f"## {name}\n\n{text.strip()}\n\n{figure}\n"


if __name__ == "__main__":
    main()
