"""A handle as torch.distributed.checkpoint wants it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .handle import Handle


class Stateful:
    """What `torch.distributed.checkpoint` saves and loads of a handle.

    That package keeps one value a key, and takes equal keys of two ranks for the same value. So
    every rank's state has a key of its own here, and is one value: a handle that has made
    no step yet does not know the tensors of the one that was saved.

    Args:
        handle: Of `compress` or `wrap`.
        consolidate: Save one state for any number of ranks.
    """

    def __init__(self, handle: Handle, *, consolidate: bool = False) -> None:
        self._handle, self._consolidate = handle, consolidate
        self._key = "all" if consolidate else f"rank{handle.rank}"

    def state_dict(self) -> dict[str, Any]:
        """One value: a file as `torch.save` writes it."""
        file = io.BytesIO()
        torch.save(self._handle.state_dict(consolidate=self._consolidate), file)
        return {self._key: file.getvalue()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from such a value."""
        found = torch.load(io.BytesIO(state[self._key]), weights_only=True)
        self._handle.load_state_dict(found)
