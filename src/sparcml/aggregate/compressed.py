"""Compressed: error feedback around any sparsifier and any quantizer."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ..quantize.base import QUANTIZERS, Quantizer
from ..quantize.code import mix_seed
from ..sparsify.base import SPARSIFIERS, Selection, Sparsifier
from .base import Method
from .compressed_settings import check_settings, compressed_planning
from .error_feedback import load_residual, select, sparsifier_state, update_residual
from .fence import FENCED, FINER, fenced_names, step_with_fence
from .momentum import MOMENTUM, add_to_means, clear, clipped, next_velocity
from .pieces import is_long, mean_in_pieces, mean_in_two_passes, takes_two_passes
from .reduce import mean_dense
from .scaling import allreduce_selected, has_shared_indices
from .schedule import Schedule, at, warmed_up
from .state import RESIDUAL, STEP, key, zeros
from .stats import count_selection
from .uncompressed import mean_quantized, mean_uncompressed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..planning.candidates import Planning
    from ..sparsify import TopK
    from .gradients import Parameter, Shape
    from .state import State

DENSE_BELOW = 10_000  # values
SMALL = -1  # in place of the index of a parameter, in seeds


@dataclass(frozen=True)
class Compressed(Method):
    """Error feedback around any sparsifier and any quantizer.

        corrected gradient = residual + gradient
        sent = quantize(sparsify(corrected gradient))
        residual = corrected gradient - seen
        mean = sum over ranks of sent / ranks

    `seen` is this rank's part of the sum as the others received it. What was applied plus all
    residuals equals the sum of the gradients, whatever is lost in flight.

    Published methods as instances; the learning rate is always applied outside:

    - SparCML's Algorithm 1: `Compressed(TopK(k=4, bucket=512), QSGD(bits=4))`
    - 1BitSGD: `Compressed(quantize=OneBit())`
    - QSGD: `Compressed(quantize=QSGD(bits=4), error_feedback=False)`
    - TernGrad: `Compressed(quantize=TernGrad(), error_feedback=False)`; ranks first agree on
      the largest magnitude of each parameter, so that ternary values can be added
    - Deep Gradient Compression: `DGC`, which is `Compressed` with masked momentum
    - others: docs/methods.md

    Args:
        sparsify: Selects the entries to send, of each parameter separately; a `Schedule`
            changes the sparsifier with the step. None sends all entries. `RandomK` is never
            scaled if there is error feedback.
        quantize: Quantizer of the values in flight; None sends them as they are. Without a
            `bucket`, `Sign` gets one of 1024 values here, and `OneBit` of 128.
        error_feedback: Whether to add what was not seen to the next gradient. Without it that
            part is lost, and biased methods may not converge.
        global_topk: Keep only the largest entries of the sum; the others return to the
            residuals of the ranks that sent them.
        algorithm: Allreduce algorithm, as for `comm.allreduce`.
        momentum: Momentum that each rank adds to its own gradients before the selection, see
            `sparcml.aggregate.momentum`. The mean then contains it: step with plain SGD.
            Parameters that are not compressed get the momentum of their mean. With momentum
            in the optimizer, which acts on the mean, leave it at 0.
        nesterov: Whether the momentum is Nesterov's.
        masking: Whether the momentum is set to 0 where something was sent.
        warm_up: Number of steps in which the ratio of the sparsifier falls from 1/4 to its
            own, or a fraction of `steps`.
        steps: Number of steps of the full run, for a `warm_up` below 1.
        clip: Maximum norm of the full gradient, as for one rank; each of P ranks clips its
            gradient to clip / sqrt(P) before anything is added to it. None does not clip.
        fence: Largest dispersion of gradients for the quantizer; others get a finer one, see
            `sparcml.aggregate.fence`. None for no limit; `sparcml.torch.compress` then sets
            one for `OneBit` and `TernGrad`, which infinity turns off.
        dense_below: Gradients in a mapping that have one dimension or at most this number of
            values are small: they are sent together in one dense allreduce.
        small: Unbiased quantizer, or `Half`, of the small gradients; None sends them as they
            are. At high compression ratios they are a large part of the bytes.
        seed: Random seed. It is combined with the step, so that a resumed run draws the same
            numbers.
        nonfinite: "raise" or "propagate", see `Method`.
    """

    name: ClassVar[str] = "compressed"
    number: ClassVar[int] = 1

    sparsify: Sparsifier | Schedule | None = None
    quantize: Quantizer | None = None
    error_feedback: bool = True
    momentum: float = 0.0
    nesterov: bool = False
    masking: bool = False
    warm_up: float = 0
    steps: int | None = None
    clip: float | None = None
    fence: float | None = None
    global_topk: TopK | None = None
    algorithm: str = "auto"
    dense_below: int = DENSE_BELOW
    small: Quantizer | None = None
    seed: int = 0
    nonfinite: str = "raise"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_settings(self)

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return one instance per example of a sparsifier or a quantizer."""
        sparsifiers = [s for t in SPARSIFIERS.values() for s in t.examples()]
        quantizers = [q for t in QUANTIZERS.values() if t.selectable for q in t.examples()]
        return (
            *(cls(s, dense_below=100) for s in sparsifiers),
            *(cls(quantize=q, dense_below=100) for q in quantizers),
        )

    @classmethod
    def planned(cls) -> tuple[Method, ...]:
        """Return one instance per planned quantizer; `planned_methods` adds sparsifiers.

        Unbiased quantizers need no error feedback, which delays gradients.
        """
        planned = [q for t in QUANTIZERS.values() for q in t.planned()]
        return tuple(cls(quantize=q, error_feedback=q.biased) for q in planned)

    def planning(self, shapes: Sequence[Shape]) -> Planning:
        """Describe the allreduce of large parameters and that of small ones."""
        return compressed_planning(self, shapes)

    def with_algorithm(self, algorithm: str) -> Compressed:
        """Return the method with this algorithm."""
        return replace(self, algorithm=algorithm)

    @property
    def carried_state(self) -> tuple[str, ...]:  # type: ignore[override]
        """Momentum and decisions of the fence, if there are any."""
        return (MOMENTUM,) * bool(self.momentum) + (FENCED,) * (self.fence is not None)

    def describe(self, state: State) -> dict[str, float]:
        """Return the bits of parameters beyond the fence."""
        return {name: float(FINER.bits) for name in fenced_names(state)}

    @property
    def keeps_residual(self) -> bool:
        """Whether there is error feedback."""
        return self.error_feedback

    def compresses(self, p: Parameter) -> bool:
        """Return whether a gradient is compressed."""
        return p.stream is None and self.compresses_shape(p.name, p.shape)

    def compresses_shape(self, name: str, shape: Shape) -> bool:
        """Return whether dense gradients of this shape are compressed; unnamed ones are."""
        return not name or (len(shape) > 1 and math.prod(shape) > self.dense_below)

    def _begin(self, shapes: Mapping[str, Shape], state: State) -> None:
        for name, shape in shapes.items():
            if self.error_feedback and self.compresses_shape(name, shape):
                zeros(state, RESIDUAL, name, math.prod(shape))
            if self.momentum:
                zeros(state, MOMENTUM, name, math.prod(shape))

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        if self.fence is not None:
            return step_with_fence(self, comm, parameters, state)
        new = {STEP: state[STEP]}
        parameters = clipped(parameters, self.clip, comm.size)
        large = [p for p in parameters if self.compresses(p)]
        small = [p for p in parameters if not self.compresses(p)]
        means = self._mean_small(comm, small, state)
        if self.momentum:
            add_to_means(self, small, means, state, new)
        long = {p.name: i for i, p in enumerate(p for p in large if is_long(self, p))}
        selected = []
        for i, p in enumerate(large):
            if p.name in long and takes_two_passes(self, comm, p, state):
                continue
            selected.append((p, self._select(comm, i, p, state, new)))
        by_name = {p.name: selection for p, selection in selected}
        for p in large:
            if p.name not in long:
                continue
            seed = mix_seed(self.seed, int(state[STEP]), long[p.name])
            if (chosen := by_name.get(p.name)) is None:
                mean, residual = mean_in_two_passes(self, comm, p, state, seed)
            else:
                mean = mean_in_pieces(self, comm, p, chosen, seed)
                residual = chosen.residual
            means[p.name] = mean
            if residual is not None and self.error_feedback:
                new[key(RESIDUAL, p.name)] = residual
        fused = [pair for pair in selected if pair[0].name not in long]
        pairs = allreduce_selected(
            comm,
            [s.sent for _, s in fused],
            self.sparsifier_at(int(state[STEP])),
            global_topk=self.global_topk,
            quantize=self.quantize,
            algorithm=self.algorithm,
            feedback=self.error_feedback,
            seed=mix_seed(self.seed, int(state[STEP])),
        )
        for (p, selection), (total, seen) in zip(fused, pairs, strict=True):
            means[p.name] = mean_dense(total, comm.size, p.out)
            if self.error_feedback:
                new[key(RESIDUAL, p.name)] = update_residual(selection, seen)
        if self.momentum and self.masking:
            for p, selection in selected:
                clear(new[key(MOMENTUM, p.name)], selection.sent)
        return means, new

    def _mean_small(
        self, comm: Communicator, small: Sequence[Parameter], state: State
    ) -> dict[str, Any]:
        if self.small is None:
            return mean_uncompressed(self, comm, small, state)
        seed = mix_seed(self.seed, int(state[STEP]), SMALL)
        return mean_quantized(self, comm, small, state, self.small, seed)

    def sparsifier_at(self, step: int) -> Sparsifier | None:
        """Return the sparsifier of a step."""
        sparsify = self.sparsify
        if self.warm_up and isinstance(sparsify, Sparsifier):
            sparsify = warmed_up(sparsify, self.warm_up, self.steps)
        sparsifier = at(sparsify, step)
        if sparsifier is not None and self.error_feedback:
            return sparsifier.for_error_feedback()
        return sparsifier

    def _select(
        self, comm: Communicator, index: int, p: Parameter, state: State, new: State
    ) -> Selection:
        """Select what to send of one parameter."""
        step = int(state[STEP])
        sparsifier = self.sparsifier_at(step)
        residual, scale = load_residual(state, p)
        if residual is None and self.error_feedback:
            residual = np.zeros_like(p.values)
        carried = sparsifier_state(sparsifier, p.name, state, new)
        rank = -1 if has_shared_indices(sparsifier) else comm.rank
        seed = mix_seed(self.seed, step, index, rank)
        velocity = next_velocity(self, p, state, new) if self.momentum else None
        with comm.stats.phase("select", nnz=p.size):
            selection = select(
                sparsifier,
                residual,
                p.values,
                scale=scale,
                seed=seed,
                carried=carried,
                velocity=velocity,
                out=residual if p.reuses_state else None,
            )
        term = p.values
        if velocity is not None and not math.isfinite(selection.squared_norm):
            term = velocity.term(term)  # the old momentum may be what is not finite
        self.check_finite(comm, p.name, term, selection.squared_norm, residual)
        if sparsifier is not None:
            count_selection(comm, selection)
        return selection
