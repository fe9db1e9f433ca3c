"""Write docs/algorithms.md from the docstrings of the collectives: `make docs`."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

from sparcml.collectives import ALLREDUCES

PAGE = Path(__file__).with_name("algorithms.md")
BUILDING_BLOCKS = (
    "agree",
    "split_reduce",
    "split_gather",
    "pipeline",
    "allgather",
    "broadcast",
    "reduce",
    "fold",
)
WITHOUT_FIGURE = ("split_gather", "pipeline")

INTRODUCTION = """\
# Algorithms

Collected from the files of `src/sparcml/collectives/` by `make docs`; the title of a section is the
name of its file, and of the `algorithm=` that runs it.

P is the number of ranks, N the length of the vector, k the largest number of entries that a rank
stores. Each file declares what every rank sends in every round, tests compare that with what is
counted, and `auto` and `explain` turn it into seconds: messages x latency + bytes x time a byte +
entries x time an entry. Until the network has been measured, these constants are those of
`collectives/cost.py`.

| the vector | what wins |
| --- | --- |
| few entries, latency counts | ssar_recursive_double |
| many entries, the sum stays sparse | ssar_split_allgather |
| the sum fills up | dsar_split_allgather |
| dense from the start | native |
| several ranks share a node and its slow link | hierarchical |
| only the largest sums are wanted | oktopk, by name: `auto` loses nothing |

Entries at uniformly random places fill up as E[K] = N (1 - (1 - k/N)^P): at 1 % a rank, the sum of 8
ranks has 7.7 %, that of 64 ranks 47 %.

The figures are drawn by `docs/diagrams.py` from traces of real runs (see [tour.md](tour.md)): a column is
a rank, time goes down by rounds, an arrow is a message in the colour of its sender, as wide as it is large.
"""


def main() -> None:
    """Write the page."""
    PAGE.write_text(page())


def page() -> str:
    """The whole page."""
    parts = [INTRODUCTION, "# Allreduce\n"]
    parts += [section(name) for name in ALLREDUCES]
    parts.append("# What they are built from\n")
    parts += [section(name) for name in BUILDING_BLOCKS]
    return "\n".join(parts)


def section(name: str) -> str:
    """One file's docstring: costs become a list, the rest stays prose; a figure."""
    algorithm = ALLREDUCES.get(name)
    where = algorithm.run.__module__ if algorithm else f"sparcml.collectives.{name}"
    text = import_module(where).__doc__ or ""
    text = re.sub(
        r"^(Steps|Bytes sent per rank|Reference):", r"\n**\1:**", text, flags=re.MULTILINE
    )
    text = re.sub(r"\n{3,}", "\n\n", text)
    if name in WITHOUT_FIGURE:
        return f"## {name}\n\n{text.strip()}\n"
    figure = f"![who sends to whom in {name}](figures/{name}.svg)"
    return f"## {name}\n\n{text.strip()}\n\n{figure}\n"


if __name__ == "__main__":
    main()
