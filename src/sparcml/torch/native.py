"""Dense gradients by gloo's own sum, as DDP does it, but with our timeout and our words."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import distributed as dist

from ..errors import TransportError
from .tensors import is_finite

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..communicator import Communicator


class Native:
    """Sums buckets in place, on connections of their own.

    Args:
        comm: The same ranks, for what must be said about gradients that are not finite.
        group: Who they are.
        timeout: Seconds.
    """

    def __init__(self, comm: Communicator, group: Any, timeout: float) -> None:
        self._comm = comm
        ranks = dist.get_process_group_ranks(group)
        limit = timedelta(seconds=timeout)
        self._group = dist.new_group(ranks, limit, "gloo", use_local_synchronization=True)
        self.bytes = 0  # sent by this rank

    def start(self, buffer: Tensor) -> Any:
        """Begin to turn a bucket into its mean; divided first, as DDP does."""
        ranks = self._comm.size
        self.bytes += 2 * (ranks - 1) * buffer.numel() * buffer.element_size() // ranks
        buffer.mul_(1.0 / ranks)
        return dist.all_reduce(buffer, group=self._group, async_op=True)

    def finish(
        self,
        work: Any,
        means: Mapping[str, Tensor],
        own: Mapping[str, Tensor | None],
        *,
        check: bool,
    ) -> None:
        """Wait for it; of NaN and infinity, which all ranks have now, say where they are.

        Args:
            work: From `start`.
            means: What the bucket consists of, by name.
            own: This rank's gradients, where they are still there.
            check: Whether to look.
        """
        try:
            work.wait()
        except RuntimeError as error:
            why = str(error).splitlines()[0]
            raise TransportError(
                f"rank {self._comm.rank}: a rank is gone or late in the dense sum ({why})"
            ) from None
        bad = [n for n, g in means.items() if not is_finite(g)] if check else []
        if bad:
            raise ValueError(self._said(bad[0], own[bad[0]]))

    def _said(self, name: str, own: Tensor | None) -> str:
        """All ranks have the same mean, so all come here and say whose fault it is."""
        mine = np.array([own is not None and not is_finite(own)], np.float32)
        ranks = [r for r, guilty in enumerate(self._comm.allgather(mine)) if guilty[0]]
        who = " and ".join(f"rank {r}" for r in ranks) or "some rank"
        return (
            f"{who}: the gradient of {name!r} has values that are NaN or infinite; mend the "
            f"loss or the learning rate, or hand them on with "
            f'sparcml.Dense(nonfinite="pass")'
        )
