"""Dense gradients by the group's own sum, as DDP does it, but with our timeout and words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed as dist

from ..errors import TransportError
from .tensors import is_finite, squares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..communicator.communicator import Communicator

CHUNK = 1 << 17  # values that stay in the cache from one loop to the next


@dataclass
class PendingAllreduce:
    """A bucket under way, and what of this rank's gradients was not finite."""

    work: Any
    buffer: Tensor
    bad: str | None = None


class DenseReducer:
    """Sums buckets in place, on the connections that DDP has.

    Args:
        comm: The same ranks, for what must be said about gradients that are not finite.
        group: DDP's.
        timeout: Seconds to wait for a sum.
    """

    def __init__(self, comm: Communicator, group: Any, timeout: float) -> None:
        self._comm = comm
        self._group, self._limit = group, timedelta(seconds=timeout)
        self.bytes = 0  # sent by this rank

    def start(
        self, buffer: Tensor, gradients: Mapping[str, Tensor], *, check: bool
    ) -> PendingAllreduce:
        """Begin to turn a bucket into its mean; divided first, as DDP does.

        Args:
            buffer: The bucket.
            gradients: What it consists of, by name.
            check: Whether NaN and infinity are errors. Whoever has some puts a NaN at the
                beginning, so that all ranks find it there.
        """
        ranks = self._comm.size
        self.bytes += 2 * (ranks - 1) * buffer.numel() * buffer.element_size() // ranks
        total = 0.0
        for chunk in buffer.split(CHUNK):
            chunk.mul_(1.0 / ranks)
            total += squares(chunk) if check else 0.0
        bad = None
        if not math.isfinite(total):
            bad = next((n for n, g in gradients.items() if not is_finite(g)), None)
            if bad is not None:
                buffer[0] = torch.nan
        work = dist.all_reduce(buffer, group=self._group, async_op=True)
        return PendingAllreduce(work, buffer, bad)

    def finish(self, pending: PendingAllreduce, *, check: bool) -> None:
        """Wait for it, and raise if a rank's gradients were not finite."""
        try:
            pending.work.wait(self._limit)
        except RuntimeError as error:
            why = str(error).splitlines()[0]
            raise TransportError(
                f"rank {self._comm.rank}: a rank is gone or late in the dense sum ({why})"
            ) from None
        if check and pending.buffer[:1].isnan().any():
            raise ValueError(self._whose(pending.bad or ""))

    def _whose(self, bad: str) -> str:
        """All ranks have the same NaN, so all come here and say whose it is."""
        mine = np.frombuffer(bad.encode(), np.uint8).astype(np.float32)
        names = [bytes(a.astype(np.uint8)).decode() for a in self._comm.allgather(mine)]
        said = [
            f"rank {rank}: the gradient of {name!r} has values that are NaN or infinite"
            for rank, name in enumerate(names)
            if name
        ]
        return (
            f"{'; '.join(said)}; mend the loss or the learning rate, or hand them on with "
            f'sparcml.Dense(nonfinite="propagate")'
        )
