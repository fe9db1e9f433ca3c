"""DDP's communication hook: buckets become their means while the backward pass goes on.

DDP calls it for each bucket, in the same order on all ranks; one thread works them off in
that order. At the end of the backward pass DDP waits for all of them.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from ..aggregate import Dense
from .buckets import Bucket, BucketAssembler
from .tensors import is_sparse, values_of, write

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from torch import Tensor

    from .buckets import Layout
    from .dense_reducer import DenseReducer, PendingAllreduce
    from .reducer import GradientReducer


class Hook:
    """What is registered with DDP.

    Args:
        names: Of all parameters, by the parameter.
        unused: Whether DDP looks for parameters that no rank has used.
        reducer: Makes means of gradients; only the thread touches it during a step.
        native: Sums dense buckets if the method is `Dense`.
        scaler: A torch.amp.GradScaler, or None.

    Attributes:
        layout: Which gradients are summed together; DDP's buckets if None.
        seen: DDP's buckets in the last step.
        exposed: Seconds that backward passes have waited for us at their end.
        active_seconds: Seconds that the thread has worked.
        sizes: Bytes of DDP's buckets in the last step.
    """

    def __init__(
        self,
        names: Mapping[Tensor, str],
        reducer: GradientReducer,
        native: DenseReducer,
        scaler: Any,
        *,
        unused: bool,
    ) -> None:
        self._names, self._reducer, self._native = names, reducer, native
        self._unused = unused
        self._scaler = scaler
        self._thread = ThreadPoolExecutor(1, "sparcml")
        self._error: BaseException | None = None
        self._buckets: list[Bucket] = []
        self._end: Future[None] | None = None
        self._assembler = BucketAssembler(None)
        self._whole = False  # whether buckets go to `native`
        self._made = False  # whether the last step was
        self.layout: Layout | None = None
        self.seen: Layout = []
        self.exposed = self.active_seconds = 0.0
        self.sizes: tuple[int, ...] = ()

    def __call__(self, bucket: Any) -> Any:
        """Called by DDP for each bucket that is complete; gives a future of its mean."""
        self.check()
        if bucket.index() == 0:
            self._begin()
        mine = self._opened(bucket)
        self._buckets.append(mine)
        self._reducer.count([mine.buffer])
        last = bucket.is_last()
        if self._whole and not is_sparse(mine.buffer):
            self._assembler.seen.append(tuple(mine.gradients))
            check = self._scaler is None and self._reducer.method.nonfinite == "raise"
            pending = self._native.start(mine.buffer, mine.gradients, check=check)
            self._submit(partial(self._wait, mine, pending, check))
        else:
            alone = is_sparse(mine.buffer)
            for place, group in self._assembler.arrived(mine, last=last, alone=alone):
                self._submit(partial(self._average, place, group))
        if last:
            self._finish()
        return mine.future

    @property
    def native_bytes(self) -> int:
        """Sent by gloo's own sums."""
        return self._native.bytes

    def run(self, work: Callable[[], Any]) -> Any:
        """Have the thread do something between two steps, and wait for it."""
        self.check()
        return self._thread.submit(work).result()

    def check(self) -> None:
        """Raise what went wrong in an earlier step: DDP cannot go on after it either."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """End the thread when it has done its work."""
        self._thread.shutdown()
        if self._error is None:
            self._error = RuntimeError(
                "this model's compression was closed; there is no step after handle.close()"
            )

    def _begin(self) -> None:
        scale = None
        if self._scaler is not None:
            scale = float(self._scaler.get_scale())
        reducer = self._reducer
        self._whole = (
            isinstance(reducer.method, Dense)
            and not reducer.has_residual
            and not reducer.changes_gradients
        )
        self._assembler = BucketAssembler(self.layout)
        self._buckets = []
        self._submit(partial(reducer.begin, scale))

    def _opened(self, bucket: Any) -> Bucket:
        buffer = bucket.buffer()
        names = [self._names[p] for p in bucket.parameters()]
        views = [buffer] if is_sparse(buffer) else bucket.gradients()
        if buffer.device.type == "cuda":  # what fills it may still be under way
            torch.cuda.current_stream(buffer.device).synchronize()
        return Bucket(buffer, dict(zip(names, views, strict=True)))

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        return self._thread.submit(self._guarded, work)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Nothing more is sent after an error, and whoever waits hears of it."""
        start = time.perf_counter()
        try:
            if self._error is None:
                work()
        except BaseException as error:
            self._error = error
        self.active_seconds += time.perf_counter() - start

    def _wait(self, bucket: Bucket, pending: PendingAllreduce, check: bool) -> None:
        self._native.finish(pending, check=check)
        if self._scaler is not None:
            self._reducer.check_finite(bucket.buffer)
        self._done(bucket)

    def _average(self, place: int, group: Mapping[str, Bucket]) -> None:
        given = {name: bucket.gradients[name] for name, bucket in group.items()}
        means = self._reducer.average(given, place)
        for name, bucket in group.items():
            if is_sparse(bucket.buffer):
                bucket.result = means[name]
            else:
                write(bucket.gradients[name], means[name])
            if bucket.got(name):
                self._done(bucket)

    def _done(self, bucket: Bucket) -> None:
        if bucket.buffer.device.type == "cuda":
            torch.cuda.current_stream(bucket.buffer.device).synchronize()
        if self._scaler is None:  # else it is not known yet whether the step is made
            bucket.complete()

    def _finish(self) -> None:
        buckets = self._buckets
        self._end = self._thread.submit(self._complete, buckets)
        if torch._C._current_graph_task_id() == -1:  # in DDP.join, not in a backward pass
            return
        # Runs before DDP waits, and raises what went wrong as it is.
        torch.autograd.Variable._execution_engine.queue_callback(self._joined)

    def _complete(self, buckets: list[Bucket]) -> None:
        """The last work of a step: settle it, and let DDP go on."""
        self._guarded(partial(self._settle, buckets))
        for bucket in buckets:
            bucket.error = self._error
            bucket.complete()

    def _settle(self, buckets: list[Bucket]) -> None:
        self._made = self._reducer.end()
        if not self._made:
            for bucket in buckets:  # so that every optimizer skips it, on every rank
                values_of(bucket.result).fill_(torch.nan)
        self.seen = self._assembler.seen
        self.sizes = tuple(_bytes_of(bucket.buffer) for bucket in buckets)

    def _joined(self) -> None:
        assert self._end is not None
        start = time.perf_counter()
        self._end.result()
        self.exposed += time.perf_counter() - start
        if self._error is not None:
            raise self._error
        if self._unused and self._made and not self._whole:  # runs when DDP is done
            torch.autograd.Variable._execution_engine.queue_callback(self._take_back)

    def _take_back(self) -> None:
        """DDP leaves gradients of parameters that no rank has used as they were."""
        parameters = {name: p for p, name in self._names.items()}
        for bucket in self._buckets:
            for name, mean in bucket.gradients.items():
                got = parameters[name].grad
                if not is_sparse(mean) and (got is None or not torch.equal(got, mean)):
                    self._reducer.restore_residual(name, mean)


def _bytes_of(buffer: Tensor) -> int:
    stored = values_of(buffer)
    return int(stored.numel()) * int(stored.element_size())
