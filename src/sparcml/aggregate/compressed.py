"""Compressed: the mean of what was selected and coded, and the rest kept for later."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool as pool
from .. import kernels
from ..collectives.base import mixed
from ..communicator.arguments import check_reduction
from ..quantize import Quantizer, TernGrad
from ..sparsify import RandomK, Selection, Sparsifier, TopK
from ..sparsify.vector import Host
from ..stream import Stream
from .base import Method
from .keep import keep_largest
from .reduce import all_but_seen, allreduce_streams, mean, put_back, squares_of
from .scaling import SharedScale, wire_quantizer
from .schedule import Schedule, at
from .state import RESIDUAL, STEP, key, load, zeros
from .uncompressed import mean_uncompressed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.stream import Values
    from .gradients import Parameter, Shape
    from .reduce import Pair
    from .state import State

MEMORY = "memory"


@dataclass(frozen=True)
class Compressed(Method):
    """Error feedback around any selection and any code.

        owed = residual + gradient
        sent = quantize(sparsify(owed))
        residual = owed - seen;  mean = sum over ranks of sent / ranks

    where `seen` is what the others saw of this rank's part. What was applied and all residuals
    are together what was owed, whatever is lost on the way.

    Instances, with g in place of the learning rate times g where the paper has it inside:

    - SparCML's Algorithm 1: `Compressed(TopK(k=4, bucket=512), QSGD(bits=4))`
    - 1BitSGD: `Compressed(quantize=OneBit())`
    - QSGD: `Compressed(quantize=QSGD(bits=4), error_feedback=False)`
    - TernGrad: `Compressed(quantize=TernGrad(), error_feedback=False)`; ranks agree on
      the largest magnitude of each parameter first, so that ternaries add up
    - EF-signSGD: `Compressed(quantize=Sign())`
    - Ok-Topk: `Compressed(TopK(0.01), algorithm="oktopk")`
    - gTop-k: `Compressed(TopK(0.01), global_topk=TopK(0.01))`

    Args:
        sparsify: What to send, of each parameter by itself; a `Schedule` changes it with
            the step. Everything by default. `RandomK` is never scaled together with
            error feedback.
        quantize: How values are coded on the way; as they are by default. Those that code
            a vector in one bucket (`bucket=None`) get buckets of 1024.
        error_feedback: Keep what was not seen for the next step. Without it what is not
            sent is lost, and biased methods may not converge.
        global_topk: Of the sums, keep only the largest; the rest goes back to the ranks that
            sent it.
        algorithm: As for `allreduce`.
        dense_below: Of gradients by name, those with at most so many values and those
            with one dimension are not compressed: they travel together, as they are.
        seed: Of what is random, together with the step: the same state goes on in the same
            way.
        nonfinite: "raise" or "propagate", see `Method`.
    """

    sparsify: Sparsifier | Schedule | None = None
    quantize: Quantizer | None = None
    error_feedback: bool = True
    global_topk: TopK | None = None
    algorithm: str = "auto"
    dense_below: int = 10_000
    seed: int = 0
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("sparsify", self.sparsify, (Sparsifier, Schedule), "sparcml.TopK(0.01)")
        _check("quantize", self.quantize, (Quantizer,), "sparcml.QSGD(bits=4)")
        _check("global_topk", self.global_topk, (TopK,), "sparcml.TopK(0.01)")
        if self.global_topk is not None and self.global_topk.bucket is not None:
            raise ValueError(
                f"global_topk chooses among all sums, not in buckets, got {self.global_topk}"
            )
        check_reduction("sum", self.algorithm, self.quantize)
        parts = (at(self.sparsify, 0), self.quantize, self.global_topk)
        # TernGrad's bias is in its clipping alone, and it was published without feedback.
        loses = [m for m in parts if m is not None and not isinstance(m, TernGrad)]
        if not self.error_feedback and (biased := [m for m in loses if m.biased]):
            warnings.warn(
                f"{', '.join(map(str, biased))} without error feedback may not converge: "
                f"what it leaves out is left out for good",
                stacklevel=3,
            )

    @property
    def keeps_residual(self) -> bool:
        """With feedback."""
        return self.error_feedback

    def compresses(self, p: Parameter) -> bool:
        """Whether a parameter is compressed, or travels as it is with the small ones."""
        return p.stream is None and self.large(p.name, p.shape)

    def large(self, name: str, shape: Shape) -> bool:
        """Whether one of that shape is compressed; one without a name always is."""
        return not name or (len(shape) > 1 and math.prod(shape) > self.dense_below)

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        for name, shape in shapes.items():
            if self.error_feedback and self.large(name, shape):
                zeros(state, RESIDUAL, name, math.prod(shape))

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        means, new, _ = self.run(comm, parameters, state)
        return means, new

    def run(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State, dict[str, Stream]]:
        """The means, the state but for its step, and what this rank selected."""
        large = [p for p in parameters if self.compresses(p)]
        small = [p for p in parameters if not self.compresses(p)]
        means = mean_uncompressed(self, comm, small, state)
        new = {STEP: state[STEP]}
        taken = [self._take(comm, i, p, state, new) for i, p in enumerate(large)]
        pairs = self._allreduce(comm, [t.sent for t in taken], int(state[STEP]))
        for parameter, part, (total, seen) in zip(large, taken, pairs, strict=True):
            means[parameter.name] = mean(total, comm.size, parameter.out)
            if self.error_feedback:
                new[key(RESIDUAL, parameter.name)] = _rest(part, seen)
        selected = {p.name: t.sent for p, t in zip(large, taken, strict=True)}
        return means, new, selected

    def _sparsifier(self, step: int) -> Sparsifier | None:
        """What selects in this step."""
        found = at(self.sparsify, step)
        if isinstance(found, RandomK) and self.error_feedback:
            # Feedback makes up for what is not sent; scaled as well, it would diverge.
            return replace(found, scaled=False)
        return found

    def _take(
        self, comm: Communicator, place: int, p: Parameter, state: State, new: State
    ) -> Selection:
        """What is sent of a parameter, and what is not."""
        step = int(state[STEP])
        sparsifier = self._sparsifier(step)
        residual = load(state, RESIDUAL, p)
        if residual is None and self.error_feedback:
            residual = np.zeros_like(p.values)
        carried = _carried(sparsifier, p.name, state, new)
        rank = -1 if _is_shared(sparsifier) else comm.rank
        seed = mixed(self.seed, step, place, rank)
        with comm.stats.phase("select", nnz=p.size):
            taken = take(sparsifier, residual, p.values, seed=seed, state=carried)
        self.check_finite(comm, p.name, p.values, taken.squared_norm, residual)
        if sparsifier is not None:
            sent = squares_of(taken.sent.raw_values)
            comm.stats.count_selected(taken.sent.nnz, sent, taken.squared_norm)
        return taken

    def _allreduce(
        self, comm: Communicator, streams: Sequence[Stream], step: int
    ) -> list[Pair]:
        """The sums of what was selected, and what the others saw of this rank's."""
        if not streams:
            return []
        sparsifier = self._sparsifier(step)
        send = partial(self._sum, comm, seed=mixed(self.seed, step))
        if _is_shared(sparsifier):
            pairs = _without_indices(streams, partial(send, fixed_nnz=True))
        else:
            counts = [sparsifier and sparsifier.count(s.size) for s in streams]
            pairs = send(streams, fixed_nnz=sparsifier is None or None not in counts)
        if self.global_topk is None:
            return pairs
        return [keep_largest(self.global_topk, *pair) for pair in pairs]

    def _sum(
        self, comm: Communicator, streams: Sequence[Stream], *, fixed_nnz: bool, seed: int
    ) -> list[Pair]:
        scaling = SharedScale.agreed(comm, streams, self.quantize)
        pairs = allreduce_streams(
            comm,
            scaling.down(streams),
            quantize=wire_quantizer(self.quantize),
            algorithm=self.algorithm,
            fixed_nnz=fixed_nnz,
            feedback=self.error_feedback,
            seed=seed,
        )
        return scaling.up(pairs)


def _is_shared(sparsifier: Sparsifier | None) -> bool:
    return isinstance(sparsifier, RandomK) and sparsifier.shared


def _without_indices(
    streams: Sequence[Stream], send: Callable[[Sequence[Stream]], list[Pair]]
) -> list[Pair]:
    """All ranks have the same indices: only values travel."""

    def clothed(s: Stream, like: Stream) -> Stream:
        values = s.raw_values if s.is_dense else s.to_dense()
        return Stream.unchecked(like.size, like.raw_indices, values, like.block)

    bare = [Stream.unchecked(len(s.raw_values), None, s.raw_values) for s in streams]
    return [
        (clothed(total, s), clothed(seen, s))
        for s, (total, seen) in zip(streams, send(bare), strict=True)
    ]


def _check(what: str, got: object, kinds: tuple[type, ...], example: str) -> None:
    if got is not None and not isinstance(got, kinds):
        raise TypeError(f"{what} must be such as {example}, or None, got {got!r}")


def _carried(
    sparsifier: Sparsifier | None, name: str, state: State, new: State
) -> np.ndarray[Any, Any] | None:
    """What a sparsifier remembers of a parameter: a copy that it may change."""
    if sparsifier is None or not (begun := sparsifier.initial_state()).size:
        return None
    found = state.get(key(MEMORY, name), begun)
    new[key(MEMORY, name)] = carried = np.array(found, np.float64)
    return carried


def take(
    sparsifier: Sparsifier | None,
    residual: np.ndarray[Any, Any] | None,
    gradient: np.ndarray[Any, Any],
    *,
    seed: int = 0,
    state: np.ndarray[Any, Any] | None = None,
) -> Selection:
    """What a sparsifier, or none, takes of what is owed.

    Without a residual nobody wants the rest; without a sparsifier nothing is left but what
    the others do not see, and the rest has the memory of what is sent.
    """
    if residual is None:
        squares = squares_of(gradient)
        if sparsifier is None:
            return Selection(
                Stream.unchecked(gradient.size, None, gradient), gradient, squares
            )
        carried = sparsifier.initial_state() if state is None else state
        return Selection(
            sparsifier.select_from(Host(gradient), seed, carried), gradient, squares
        )
    if sparsifier is not None:
        return sparsifier.select_with_residual(residual, gradient, seed=seed, state=state)
    owed = pool.empty(gradient.size, gradient.dtype)
    squares = kernels.add_residual(residual, gradient, owed)
    return Selection(Stream.unchecked(owed.size, None, owed), owed, squares)


def _rest(taken: Selection, seen: Stream) -> Values:
    """What is owed after a step. Where all was taken, its memory is used again."""
    if taken.residual is taken.sent.raw_values:
        return all_but_seen(taken.sent, seen)
    put_back(taken.residual, taken.sent, seen)
    return taken.residual
