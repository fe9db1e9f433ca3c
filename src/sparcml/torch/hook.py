"""DDP's communication hook: averages buckets while the backward pass continues.

The steps of one backward pass:

1. Autograd fills a bucket, and DDP calls `Hook.__call__` with it. All ranks get the buckets in
   the same order.
2. The first bucket starts a step: `_begin` chooses between the two ways of step 4.
3. `_open` gives the gradients in the bucket their names.
4. If the method is exact, `DenseReducer.start` starts the process group's own allreduce of the
   bucket. Otherwise `BucketAssembler.add` collects gradients until a group of the layout is
   complete.
5. One worker thread takes the buckets or groups in order while autograd computes the next
   gradients: `_wait` finishes an allreduce; `_average` calls `GradientReducer.average`, which
   runs the aggregation method and keeps the residual, and writes the means to the bucket.
6. `_done` completes the future that DDP waits for. With a GradScaler all futures wait for
   step 7.
7. After the last bucket, `_complete` ends the step on the worker thread: the state changes,
   or, if gradients under a GradScaler were not finite, all means become NaN and the
   optimizers of all ranks skip the step.
8. `_join` runs at the end of the backward pass. It waits for the worker thread (the *exposed*
   seconds) and raises its error, if there is one.
9. DDP leaves gradients of parameters that no rank used as they were; `_restore_unused`
   returns such means to the residual.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

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
    """The communication hook that is registered with DDP.

    Args:
        names: Names of all parameters.
        reducer: Averages gradients; during a step only the worker thread uses it.
        dense_reducer: Averages dense buckets if the method is exact.
        scaler: A torch.amp.GradScaler, or None.
        find_unused: Whether DDP looks for parameters that no rank used.

    Attributes:
        layout: Groups of gradients that are averaged together; None for DDP's buckets.
        seen: Names of the gradients in DDP's buckets of the last step.
        exposed: Seconds that backward passes have waited at their end.
        active_seconds: Seconds that the worker thread was active.
        sizes: Bytes of DDP's buckets of the last step.
    """

    def __init__(
        self,
        names: Mapping[Tensor, str],
        reducer: GradientReducer,
        dense_reducer: DenseReducer,
        scaler: Any,
        *,
        find_unused: bool,
    ) -> None:
        self._names, self._reducer, self._dense_reducer = names, reducer, dense_reducer
        self._find_unused = find_unused
        self._scaler = scaler
        self._thread = ThreadPoolExecutor(1, "sparcml")
        self._error: BaseException | None = None
        self._buckets: list[Bucket] = []
        self._end: Future[None] | None = None
        self._assembler = BucketAssembler(None)
        self._is_dense = False  # whether this step uses the dense reducer
        self._applied = False  # whether the last step was applied
        self.layout: Layout | None = None
        self.seen: Layout = []
        self.exposed = self.active_seconds = 0.0
        self.sizes: tuple[int, ...] = ()

    def __call__(self, bucket: Any) -> Any:
        """Take a bucket from DDP, and return a future of its mean."""
        self.check()
        if bucket.index() == 0:
            self._begin()
        opened = self._open(bucket)
        self._buckets.append(opened)
        self._reducer.count([opened.buffer])
        last, rows = bucket.is_last(), is_sparse(opened.buffer)
        if self._is_dense and not rows:
            self._assembler.seen.append(tuple(opened.gradients))
            check = self._scaler is None and self._reducer.method.nonfinite == "raise"
            pending = self._dense_reducer.start(
                opened.buffer, opened.gradients, check=check
            )
            self._submit(partial(self._wait, opened, pending, check))
        else:
            for index, group in self._assembler.add(opened, last=last, separate=rows):
                self._submit(partial(self._average, index, group))
        if last:
            self._finish()
        return opened.future

    @property
    def native_bytes(self) -> int:
        """Bytes that the process group's own allreduce sent."""
        return self._dense_reducer.bytes

    def run(self, work: Callable[[], Any]) -> Any:
        """Run a function on the worker thread between two steps, and return its result."""
        self.check()
        return self._thread.submit(work).result()

    def check(self) -> None:
        """Raise the error of an earlier step, after which DDP cannot continue either."""
        if self._error is not None:
            raise self._error

    def close(self) -> None:
        """Stop the worker thread after its current work."""
        self._thread.shutdown()
        if self._error is None:
            self._error = RuntimeError(
                "compress: the handle of this model is closed, and no step may follow"
            )

    def _begin(self) -> None:
        scale = None
        if self._scaler is not None:
            scale = float(self._scaler.get_scale())
        reducer = self._reducer
        self._is_dense = (
            reducer.method.is_exact and not reducer.has_residual and not reducer.clips
        )
        self._assembler = BucketAssembler(self.layout)
        self._buckets = []
        self._submit(partial(reducer.begin, scale))

    def _open(self, bucket: Any) -> Bucket:
        buffer = bucket.buffer()
        names = [self._names[p] for p in bucket.parameters()]
        views = [buffer] if is_sparse(buffer) else bucket.gradients()
        if buffer.device.type == "cuda":  # kernels that fill it may still be running
            torch.cuda.current_stream(buffer.device).synchronize()
        return Bucket(buffer, dict(zip(names, views, strict=True)))

    def _submit(self, work: Callable[[], None]) -> Future[None]:
        return self._thread.submit(self._guarded, work)

    def _guarded(self, work: Callable[[], None]) -> None:
        """Run work unless an earlier one failed, and keep its error."""
        start = time.perf_counter()
        try:
            if self._error is None:
                work()
        except BaseException as error:
            self._error = error
        self.active_seconds += time.perf_counter() - start

    def _wait(self, bucket: Bucket, pending: PendingAllreduce, check: bool) -> None:
        self._dense_reducer.finish(pending, check=check)
        if self._scaler is not None:
            self._reducer.check_finite(bucket.buffer)
        self._done(bucket)

    def _average(self, index: int, group: Mapping[str, Bucket]) -> None:
        gradients = {name: bucket.gradients[name] for name, bucket in group.items()}
        means = self._reducer.average(gradients, index)
        for name, bucket in group.items():
            if is_sparse(bucket.buffer):
                bucket.result = means[name]
            else:
                write(bucket.gradients[name], means[name])
            if bucket.received(name):
                self._done(bucket)

    def _done(self, bucket: Bucket) -> None:
        if bucket.buffer.device.type == "cuda":
            torch.cuda.current_stream(bucket.buffer.device).synchronize()
        if self._scaler is None:  # with a scaler the step may still be skipped
            bucket.complete()

    def _finish(self) -> None:
        buckets = self._buckets
        self._end = self._thread.submit(self._complete, buckets)
        if torch._C._current_graph_task_id() == -1:  # in DDP.join, not in a backward pass
            return
        # The callback runs before DDP waits and raises our error, not one of torch.
        torch.autograd.Variable._execution_engine.queue_callback(self._join)

    def _complete(self, buckets: list[Bucket]) -> None:
        """End the step on the worker thread, and let DDP continue."""
        self._guarded(partial(self._end_step, buckets))
        for bucket in buckets:
            bucket.error = self._error
            bucket.complete()

    def _end_step(self, buckets: list[Bucket]) -> None:
        self._applied = self._reducer.end()
        if not self._applied:
            for bucket in buckets:  # every optimizer skips the step, on every rank
                values_of(bucket.result).fill_(torch.nan)
        self.seen = self._assembler.seen
        self.sizes = tuple(_nbytes(bucket.buffer) for bucket in buckets)

    def _join(self) -> None:
        assert self._end is not None
        start = time.perf_counter()
        self._end.result()
        self.exposed += time.perf_counter() - start
        if self._error is not None:
            raise self._error
        if not (self._find_unused and self._applied and not self._is_dense):
            self._buckets = []  # DDP may replace their memory before the next step
        else:
            # This callback runs after DDP has written the gradients.
            torch.autograd.Variable._execution_engine.queue_callback(self._restore_unused)

    def _restore_unused(self) -> None:
        parameters = {name: p for p, name in self._names.items()}
        for bucket in self._buckets:
            for name, mean in bucket.gradients.items():
                grad = parameters[name].grad
                if not is_sparse(mean) and (grad is None or not _same(grad, mean)):
                    self._reducer.restore_residual(name, mean)
        self._buckets = []


def _same(a: Tensor, b: Tensor) -> bool:
    """Return whether tensors have the same values, where NaN is the same as NaN."""
    return bool(torch.equal(a, b) or torch.allclose(a, b, rtol=0, atol=0, equal_nan=True))


def _nbytes(buffer: Tensor) -> int:
    stored = values_of(buffer)
    return int(stored.numel()) * int(stored.element_size())
