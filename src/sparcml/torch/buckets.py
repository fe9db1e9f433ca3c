"""What DDP hands over in one step: buckets, and the gradients in them that still wait."""

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
        self.result = buffer  # a sparse one is replaced
        self.error: BaseException | None = None
        self._missing = set(gradients)
        self._promise: Any = torch.futures.Future()
        self.future = self._promise.then(partial(_outcome, self))

    def got(self, name: str) -> bool:
        """One gradient has become its mean; whether it was the last."""
        self._missing.discard(name)
        return not self._missing

    def complete(self) -> None:
        """DDP may go on with it."""
        if not self._promise.done():
            self._promise.set_result(None)


def _outcome(bucket: Bucket, _: Any) -> Tensor:
    if bucket.error is not None:
        raise bucket.error
    return bucket.result


class BucketAssembler:
    """Puts gradients together as a layout has them, whatever DDP's buckets are.

    DDP makes its buckets anew after the first step, in the order in which gradients came. A
    run that is resumed begins with the first ones again; with the layout of the run before
    it still sums the same gradients together, so that all bits are the same.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._layout = layout
        self._waiting = [(i, set(names)) for i, names in enumerate(layout or ())]
        self._here: dict[str, Bucket] = {}
        self.seen: Layout = []

    def arrived(
        self, bucket: Bucket, *, last: bool, alone: bool = False
    ) -> list[tuple[int, dict[str, Bucket]]]:
        """The groups that are complete now, with their places.

        Args:
            bucket: What has come.
            last: Whether nothing comes after it in this step.
            alone: Whether it waits for no others, as rows of a table, which nothing is
                random about.
        """
        names = tuple(bucket.gradients)
        self.seen.append(names)
        if alone:
            self._waiting = [(i, left - set(names)) for i, left in self._waiting]
            here = (len(self.seen) - 1, dict.fromkeys(names, bucket))
            return [here, *(self._complete(last=True) if last else [])]
        if self._layout is None:
            return [(len(self.seen) - 1, dict.fromkeys(names, bucket))]
        self._here |= dict.fromkeys(names, bucket)
        return self._complete(last=last)

    def _complete(self, *, last: bool) -> list[tuple[int, dict[str, Bucket]]]:
        if self._layout is None:
            return []
        ready = [(i, n) for i, n in self._waiting if last or n <= self._here.keys()]
        self._waiting = [w for w in self._waiting if w not in ready]
        found = [(i, self._take(self._layout[i])) for i, _ in ready]
        if last and self._here:  # of which the layout knows nothing
            found.append((len(self._layout), self._take(tuple(self._here))))
        return [(i, group) for i, group in found if group]

    def _take(self, names: tuple[str, ...]) -> dict[str, Bucket]:
        return {n: self._here.pop(n) for n in names if n in self._here}
