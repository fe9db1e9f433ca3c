"""DDP's buckets of one step, and the groups of gradients that are averaged together."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

Layout = list[tuple[str, ...]]


class Bucket:
    """One of DDP's buckets: its gradients by name, and the future that DDP waits for."""

    def __init__(self, buffer: Tensor, gradients: Mapping[str, Tensor]) -> None:
        self.buffer = buffer
        self.gradients = dict(gradients)
        self.result = buffer  # a sparse bucket gets another tensor
        self.error: BaseException | None = None
        self._missing = set(gradients)
        self._promise: Any = torch.futures.Future()
        self.future = self._promise.then(partial(_result, self))

    def received(self, name: str) -> bool:
        """Mark a gradient as averaged; return whether it was the last of the bucket."""
        self._missing.discard(name)
        return not self._missing

    def complete(self) -> None:
        """Let DDP continue with this bucket."""
        if not self._promise.done():
            self._promise.set_result(None)


def _result(bucket: Bucket, _: Any) -> Tensor:
    if bucket.error is not None:
        raise bucket.error
    return bucket.result


class BucketAssembler:
    """Groups gradients by a layout, independent of DDP's buckets.

    DDP rebuilds its buckets after the first step, in the order in which gradients became
    ready. A resumed run starts with the first buckets again. With the layout of the earlier
    run it still averages the same gradients together, so that all bits are the same.

    Attributes:
        seen: Names of the gradients of each bucket of this step.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._layout = layout
        self._waiting = [(i, set(names)) for i, names in enumerate(layout or ())]
        self._arrived: dict[str, Bucket] = {}
        self.seen: Layout = []

    def add(
        self, bucket: Bucket, *, last: bool, separate: bool = False
    ) -> list[tuple[int, dict[str, Bucket]]]:
        """Add a bucket and return the groups that are now complete, with their indices.

        Args:
            bucket: The next bucket.
            last: Whether it is the last of this step.
            separate: Whether it forms a group by itself, as rows of a table do, which are
                never random.
        """
        names = tuple(bucket.gradients)
        self.seen.append(names)
        if separate:
            self._waiting = [(i, missing - set(names)) for i, missing in self._waiting]
            group = (len(self.seen) - 1, dict.fromkeys(names, bucket))
            return [group, *(self._complete(last=True) if last else [])]
        if self._layout is None:
            return [(len(self.seen) - 1, dict.fromkeys(names, bucket))]
        self._arrived |= dict.fromkeys(names, bucket)
        return self._complete(last=last)

    def _complete(self, *, last: bool) -> list[tuple[int, dict[str, Bucket]]]:
        if self._layout is None:
            return []
        ready = [(i, n) for i, n in self._waiting if last or n <= self._arrived.keys()]
        self._waiting = [w for w in self._waiting if w not in ready]
        groups = [(i, self._pop(self._layout[i])) for i, _ in ready]
        if last and self._arrived:  # gradients that are not in the layout
            groups.append((len(self._layout), self._pop(tuple(self._arrived))))
        return [(i, group) for i, group in groups if group]

    def _pop(self, names: tuple[str, ...]) -> dict[str, Bucket]:
        return {n: self._arrived.pop(n) for n in names if n in self._arrived}
