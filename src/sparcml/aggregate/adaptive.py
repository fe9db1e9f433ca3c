"""Adaptive: a ratio or a number of bits per layer, chosen from measured errors.

Every `every` steps each rank measures, for each compressed parameter and each option, the bytes and
the squared error of its corrected gradient. The errors are averaged in one small allreduce, and all
ranks solve the same knapsack (`sparcml.aggregate.knapsack`): the smallest error within the bytes of
the uniform setting, or the fewest bytes within its error. TopK of all layers together would be the
optimum of the first; the limits of the options keep every layer moving.

Reference: Alimohammadi, Markov, Frantar, Alistarh: L-GreCo, MLSys 2023.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from ..quantize import QSGD
from ..quantize.code import mix_seed
from ..sparsify import TopK
from ..sparsify.base import parse_number
from ..validation import as_integer
from .adaptive_options import (
    BITS,
    MULTIPLE,
    MULTIPLES,
    WIDTHS,
    expected_nbytes,
    multiple,
    ratio_of,
    squared_error,
    with_option,
)
from .compressed import Compressed
from .error_feedback import scaled_residual, squared_norm
from .knapsack import choose_options, total_of
from .momentum import clipped, load_velocity
from .schedule import Schedule, at, warm_up_steps
from .state import STEP, key, keys_of, name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..communicator.communicator import Communicator
    from ..sparsify import Selection
    from .base import Method
    from .gradients import Parameter
    from .state import State

BUDGETS = ("bytes", "error")


@dataclass(frozen=True)
class Adaptive(Compressed):
    """`Compressed` with a ratio, or a number of bits, for each parameter.

    The uniform setting is that of `Compressed`: a `TopK` or a schedule of them, or without a
    sparsifier a quantizer with `bits`. During `warm_up` all parameters have the uniform ratio.
    The choice is part of the state, the same on all ranks; `describe(state)` returns it. It is
    made among the parameters that are averaged together: under DDP those of one bucket.

    Args:
        every: Number of steps between two choices.
        budget: "bytes" minimizes the squared error within the bytes of the uniform setting;
            "error" minimizes the bytes within its squared error.
        scale: Factor of the budget.
        options: Multiples of the uniform ratio (default: 1/2 to 2), or numbers of bits
            (default: 2 to 8).

    All other settings are those of `Compressed`.
    """

    name: ClassVar[str] = "adaptive"
    number: ClassVar[int] = 7
    option: ClassVar[str] = "RATIO"

    every: int = 100
    budget: str = "bytes"
    scale: float = 1.0
    options: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.sparsify is not None and not self.error_feedback:
            raise ValueError(
                "Adaptive: error_feedback must be True with a sparsifier, got False; use "
                "Compressed to discard what is not sent"
            )
        try:
            super().__post_init__()
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("Compressed", "Adaptive")) from None
        stages = self.sparsify.stages if isinstance(self.sparsify, Schedule) else ()
        sparse = all(isinstance(s, TopK) for _, s in stages or [(0, self.sparsify)])
        has_bits = self.sparsify is None and hasattr(self.quantize, "bits")
        if not sparse and not has_bits:
            raise TypeError(
                f"Adaptive: sparsify must be a TopK or a schedule of them, or None with a "
                f"quantizer that has bits, got {self.sparsify} and quantize={self.quantize}"
            )
        as_integer("Adaptive", "every", self.every, 1)
        if self.budget not in BUDGETS:
            raise ValueError(
                f"Adaptive: budget must be {' or '.join(BUDGETS)}, got {self.budget!r}"
            )
        if self.fence is not None:
            raise ValueError(
                f"Adaptive: fence must be None, since it chooses bits itself, got {self.fence}"
            )
        if not 0 < self.scale < np.inf:
            raise ValueError(f"Adaptive: scale must be positive, got {self.scale}")
        self._check_options()

    def _check_options(self) -> None:
        if any(not 0 < option < np.inf for option in self.options):
            raise ValueError(f"Adaptive: options must be positive, got {self.options}")
        for option in self._options():
            self.with_option(option)  # raises if a quantizer does not have such bits

    @classmethod
    def from_option(cls, text: str) -> Self:
        """Return the method with this uniform ratio."""
        return cls(TopK(parse_number(cls.name, cls.option, text) if text else 0.01))

    @classmethod
    def examples(cls) -> tuple[Method, ...]:
        """Return the instances that the tests run."""
        return (
            cls(TopK(0.02), dense_below=100, every=2),
            cls(quantize=QSGD(4, bucket=64), dense_below=100, every=2),
        )

    @classmethod
    def planned(cls) -> tuple[Method, ...]:
        """Return none: the uniform method has the same bytes."""
        return ()

    @property
    def carried_state(self) -> tuple[str, ...]:  # type: ignore[override]
        """Choices, and momentum if there is any."""
        return (*super().carried_state, self._entry)

    @property
    def _entry(self) -> str:
        return MULTIPLE if self.sparsify is not None else BITS

    @property
    def uniform(self) -> float:
        """The option that is the uniform setting."""
        bits: int = getattr(self.quantize, "bits", 0)
        return 1.0 if self.sparsify is not None else float(bits)

    def describe(self, state: State) -> dict[str, float]:
        """Return the ratio or the number of bits of each parameter, by name."""
        choices = {name_of(k) or "": float(state[k]) for k in keys_of(state, self._entry)}
        topk = at(self.sparsify, int(state[STEP]))
        if not isinstance(topk, TopK):
            return choices
        return {n: ratio_of(multiple(topk, c)) for n, c in choices.items()}

    def with_option(self, option: float, step: int = 0) -> Compressed:
        """Return the uniform method of a step with another ratio or number of bits."""
        return with_option(self, option, at(self.sparsify, step))

    def _step(
        self, comm: Communicator, parameters: Sequence[Parameter], state: State
    ) -> tuple[dict[str, Any], State]:
        # Over all parameters, before they are measured and grouped.
        limited = clipped(parameters, self.clip, comm.size)
        large = [p for p in limited if self.compresses(p)]
        if large and self._decides(state, large):
            chosen = self._choose(comm, large, state)
            state = state | {
                key(self._entry, p.name): np.array(o)
                for p, o in zip(large, chosen, strict=True)
            }
        choices = {k: state[k] for p in large if (k := key(self._entry, p.name)) in state}
        if self.sparsify is not None or not choices:
            means, new = super()._step(comm, parameters, state)
            return means, new | choices
        means, new = {}, choices
        for bits in sorted({float(c) for c in choices.values()}):  # one allreduce each
            group = [p for p in limited if choices.get(key(self._entry, p.name)) == bits]
            some, after = self.with_option(bits)._step(comm, group, state)
            means, new = means | some, new | after
        small = [p for p in limited if p.name not in means]
        some, after = self.with_option(self.uniform)._step(comm, small, state)
        return means | some, new | after

    def _decides(self, state: State, large: Sequence[Parameter]) -> bool:
        since = int(state[STEP]) - warm_up_steps(self.warm_up, self.steps)
        unknown = any(key(self._entry, p.name) not in state for p in large)
        return since >= 0 and (unknown or since % self.every == 0)

    def _choose(
        self, comm: Communicator, large: Sequence[Parameter], state: State
    ) -> list[float]:
        """Return the options of parameters. Collective."""
        options, step = self._options(), int(state[STEP])
        with comm.stats.phase("select", nnz=sum(p.size for p in large)):
            errors = np.array([self._errors(p, state, options) for p in large])
        errors = comm.allreduce(errors.reshape(-1), op="mean", algorithm="recursive_double")
        errors = np.asarray(errors, np.float64).reshape(len(large), len(options))
        sizes = np.array(
            [
                [expected_nbytes(self.with_option(o, step), p.size) for o in options]
                for p in large
            ]
        )
        uniform = np.full(len(large), options.index(self.uniform))
        cost, loss = (sizes, errors) if self.budget == "bytes" else (errors, sizes)
        limit = self.scale * total_of(cost, uniform)
        best = choose_options(cost, loss, limit) if np.isfinite(errors).all() else None
        fits = total_of(cost, uniform) <= limit
        if best is None or (fits and total_of(loss, uniform) <= total_of(loss, best)):
            best = uniform
        return [options[i] for i in best]

    def _options(self) -> list[float]:
        """Return all options, ascending, with the uniform one."""
        default = MULTIPLES if self.sparsify is not None else WIDTHS
        given = (float(np.float32(o)) for o in self.options or default)
        return sorted({*given, self.uniform})

    def _errors(self, p: Parameter, state: State, options: Sequence[float]) -> list[float]:
        """Return the squared error of each option on the corrected gradient of this rank."""
        term = p.values
        if self.momentum:
            velocity = load_velocity(state, p, self.momentum, nesterov=self.nesterov)
            term = velocity.advance(term)
        residual = scaled_residual(state, p)
        corrected = term if residual is None else residual + term
        step, norm = int(state[STEP]), squared_norm(corrected)
        seed = mix_seed(self.seed, step)
        methods = (self.with_option(option, step) for option in options)
        return [squared_error(method, corrected, norm, seed) for method in methods]

    def _select(
        self, comm: Communicator, index: int, p: Parameter, state: State, new: State
    ) -> Selection:
        choice = state.get(key(self._entry, p.name))
        if choice is None:
            return super()._select(comm, index, p, state, new)
        method = self.with_option(float(choice), int(state[STEP]))
        return method._select(comm, index, p, state, new)
