"""Dense buckets averaged by the group's own allreduce, as DDP does it."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed as dist

from ..communicator.collective_errors import allgather_text
from ..errors import SparcmlError, TransportError
from .tensors import is_finite, squares

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..communicator.communicator import Communicator

CHUNK = 1 << 17  # values that stay in the cache from one loop to the next


@dataclass
class PendingAllreduce:
    """An allreduce in flight.

    Attributes:
        work: The handle that torch.distributed returned.
        finished: Set when it is complete.
        buffer: The bucket.
        nonfinite: Name of a gradient of this rank with NaN or infinity, or None.
    """

    work: Any
    finished: threading.Event
    buffer: Tensor
    nonfinite: str | None = None


class DenseReducer:
    """Averages buckets in place over DDP's connections.

    Args:
        comm: Communicator of the same ranks; it is used only to report gradients that are not
            finite.
        group: DDP's process group.

    Attributes:
        bytes: Bytes that this rank sent.
    """

    def __init__(self, comm: Communicator, group: Any) -> None:
        self._comm = comm
        self._group = group
        self.bytes = 0

    def start(
        self, buffer: Tensor, gradients: Mapping[str, Tensor], *, check: bool
    ) -> PendingAllreduce:
        """Divide a bucket by the number of ranks, as DDP does, and start its allreduce.

        Args:
            buffer: The bucket.
            gradients: Its gradients by name.
            check: Whether NaN and infinity are errors. A rank that has one writes a NaN to the
                start of the buffer, so that all ranks detect it there.
        """
        ranks = self._comm.size
        self.bytes += 2 * (ranks - 1) * buffer.numel() * buffer.element_size() // ranks
        total = 0.0
        for chunk in buffer.split(CHUNK):
            chunk.mul_(1.0 / ranks)
            total += squares(chunk) if check else 0.0
        nonfinite = None
        if not math.isfinite(total):
            nonfinite = next((n for n, g in gradients.items() if not is_finite(g)), None)
            if nonfinite is not None:
                buffer[0] = torch.nan
        work = dist.all_reduce(buffer, group=self._group, async_op=True)
        finished = threading.Event()
        work.get_future().add_done_callback(lambda _: finished.set())
        return PendingAllreduce(work, finished, buffer, nonfinite)

    def finish(self, pending: PendingAllreduce, *, check: bool) -> None:
        """Wait for an allreduce, and raise if gradients of any rank were not finite."""
        # A wait of the process group would not notice that a rank is stopped or has raised.
        self._comm.watch(pending.finished, "dense allreduce")
        try:
            pending.work.wait()
        except RuntimeError as error:
            raise self._failure(str(error).splitlines()[0]) from None
        if check and pending.buffer[:1].isnan().any():
            raise ValueError(self._describe(pending.nonfinite or ""))

    def _failure(self, reason: str) -> TransportError:
        """Return an error that names the rank that has ended the allreduce. Collective."""
        found = f"rank {self._comm.rank}: a rank is gone or late"
        try:
            self._comm.barrier()  # the process group does not tell which rank it is
        except SparcmlError as error:
            found = str(error)
        return TransportError(f"{found}; the dense allreduce has failed ({reason})")

    def _describe(self, name: str) -> str:
        """Return the error message for gradients that are not finite. Collective.

        All ranks see the same NaN, so all of them call it.
        """
        messages = [
            f"rank {rank}: the gradient of {name!r} has values that are NaN or infinite"
            for rank, name in enumerate(allgather_text(self._comm, name))
            if name
        ]
        return (
            f"{'; '.join(messages)}; check the loss and learning rate, pass scaler= if a "
            f'GradScaler is in use, or set sparcml.Dense(nonfinite="propagate")'
        )
