"""What others take for the same: torch, NumPy, scipy and the powersgd package."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

import sparcml
from compressors.case import Case, Outcome
from compressors.steps import as_matrix, padded
from sparcml.bench.vectors import different

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[Any]

RANK = 4


def missing() -> list[str]:
    """Packages that are not here, whose lines are left out."""
    return [name for name in ("torch", "scipy", "powersgd") if find_spec(name) is None]


def cases(x: Floats) -> Iterator[Case]:
    """All that are installed."""
    absent = missing()
    yield from _partition(x)
    yield from _sums(x, "scipy" not in absent)
    if "torch" in absent:
        return
    with _one_thread():
        yield from _torch(x)
    yield _hook(x)  # matrix products, as in ours: on all cores
    if "powersgd" not in absent:
        yield _package(x)


def _chosen(x: Floats, places: NDArray[Any]) -> Outcome:
    """Entries as 32-bit index and value, as these tools give them."""
    dense = np.zeros_like(x)
    dense[places] = x[places]
    return Outcome(dense, 8 * places.size)


def _partition(x: Floats) -> Iterator[Case]:
    for share, ratio in (("1 %", 0.01), ("0.1 %", 0.001)):
        k = max(1, round(ratio * x.size))

        def select(k: int = k) -> Any:
            return np.argpartition(np.abs(x), x.size - k)[x.size - k :]

        def outcome(select: Any = select) -> Outcome:
            return _chosen(x, select())

        yield Case(f"np.argpartition {share}", "select", select, outcome)


def _sums(x: Floats, scipy: bool) -> Iterator[Case]:
    """Two sparse vectors of 1 % added: ours, then scipy's."""
    one = sparcml.RandomK(0.01, scaled=False).select(x, 1)
    two = sparcml.RandomK(0.01, scaled=False).select(x, 2)
    want = one.to_dense() + two.to_dense()

    def ours() -> Outcome:
        return Outcome(None, None, different((one + two).to_dense(), want))

    yield Case("Stream + Stream 1 %", "add", lambda: one + two, ours)
    if scipy:
        from scipy import sparse

        edges = (np.array([0, one.nnz]), np.array([0, two.nnz]))
        rows = [
            sparse.csr_array((s.values, s.indices.astype(np.int32), e), (1, x.size))
            for s, e in zip((one, two), edges, strict=True)
        ]

        def theirs() -> Outcome:
            return Outcome(None, None, different((rows[0] + rows[1]).toarray()[0], want))

        yield Case("scipy.sparse 1 %", "add", lambda: rows[0] + rows[1], theirs)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Of torch, which would take all cores for what we do on one."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _torch(x: Floats) -> Iterator[Case]:
    import torch

    tensor = torch.from_numpy(x)
    for share, ratio in (("1 %", 0.01), ("0.1 %", 0.001)):
        k = max(1, round(ratio * x.size))

        def select(k: int = k) -> Any:
            return tensor.abs().topk(k).indices

        def outcome(select: Any = select) -> Outcome:
            return _chosen(x, np.asarray(select().numpy()))

        yield Case(f"torch.topk {share}", "select", select, outcome)
    for name in ("float16", "bfloat16"):
        dtype = getattr(torch, name)
        ready = tensor.to(dtype)

        def cast(dtype: Any = dtype) -> Outcome:
            return Outcome(tensor.to(dtype).float().numpy(), 2 * x.size)

        yield Case(f"torch {name}", "encode", partial(tensor.to, dtype), cast)
        yield Case(f"torch {name}", "decode", ready.float, cast)


class _Bucket:
    """What a hook of DDP is handed, with one matrix in it."""

    def __init__(self, matrix: Any) -> None:
        self._matrix = matrix
        self._buffer = matrix.reshape(-1)

    def index(self) -> int:
        return 0

    def buffer(self) -> Any:
        return self._buffer

    def gradients(self) -> list[Any]:
        return [self._matrix]

    def parameters(self) -> list[Any]:
        return [self._matrix]

    def is_last(self) -> bool:
        return True


def _hook(x: Floats) -> Case:
    """Torch's PowerSGD hook on a group of one process: what it computes, without a network."""
    import torch
    from torch.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as hooks

    alone()
    matrix = torch.from_numpy(as_matrix(x))
    state = hooks.PowerSGDState(None, matrix_approximation_rank=RANK, start_powerSGD_iter=2)
    state.iter = 2  # past the steps that it leaves dense

    def run() -> Any:
        # It writes its result over the gradient, so that has to be brought back.
        return hooks.powerSGD_hook(state, _Bucket(matrix.clone())).wait()

    def outcome() -> Outcome:
        fresh = hooks.PowerSGDState(None, RANK, start_powerSGD_iter=2)
        fresh.iter = 2
        mean = hooks.powerSGD_hook(fresh, _Bucket(matrix.clone())).wait()
        return Outcome(padded(mean.numpy(), x), 4 * RANK * sum(matrix.shape))

    return Case(f"torch PowerSGD hook, rank {RANK}", "step", run, outcome)


def _package(x: Floats) -> Case:
    """The PowerSGD of its authors."""
    import torch
    from powersgd import Config, PowerSGD

    alone()
    matrix = torch.from_numpy(as_matrix(x))
    # Two of its iterations are one of ours: it computes one factor in each.
    config = Config(RANK, num_iters_per_step=2, start_compressing_after_num_steps=0)
    method = PowerSGD([matrix], config)

    def run() -> Any:
        return method.aggregate([matrix.clone()])[0]

    def outcome() -> Outcome:
        (mean,) = PowerSGD([matrix], config).aggregate([matrix.clone()])
        return Outcome(padded(mean.numpy(), x), 4 * RANK * sum(matrix.shape))

    return Case(f"powersgd package, rank {RANK}", "step", run, outcome)


def alone() -> None:
    """A process group of this process."""
    import torch.distributed as dist

    if not dist.is_initialized():
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
