"""Tasks of the experiment: the networks of the examples with real data."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import atis
import clicks
import fashion_mnist
import gpt
import moby_dick
from workloads import folder

from .roster import WIDE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from loop import Task

SHARE = 4  # one image in four


def made(name: str) -> Task:
    """Return the task of a network."""
    data: dict[str, Callable[[Path], Task]] = {
        "fashion-mnist": partial(fashion_mnist.task, share=SHARE),
        "atis": atis.task,
        WIDE: atis.wide,
    }
    if name in data:
        return data[name](folder() / name.removesuffix("-wide"))
    if name == "moby-dick":
        return moby_dick.task(folder() / "moby-dick.txt.gz")
    return clicks.task()


def synthetic(name: str) -> Task:
    """Return the task of a network with the synthetic data of the examples."""
    tasks: dict[str, Callable[[], Task]] = {
        "fashion-mnist": partial(fashion_mnist.task, None),
        "atis": partial(atis.task, None),
        "moby-dick": partial(moby_dick.task, None),
        "gpt": partial(gpt.task, None),
        "clicks": clicks.task,
    }
    return tasks[name]()
