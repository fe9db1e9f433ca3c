"""Choco: gossip with compressed differences, by any compressor; the mean is kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from ...quantize import Quantizer
from ...sparsify import RandomK, Sparsifier
from ...validation import check_real
from ..base import Method
from ..compression import Compressor, add_to, exchange_compressed, select
from ..replicas import load_replicas, update_replicas
from ..requirements import (
    require_compressor,
    require_doubly_stochastic,
    require_static,
    require_symmetric,
)

if TYPE_CHECKING:
    from ...stream.arrays import Values
    from ..state import State
    from ..step import Step

ESTIMATE = "estimate"
OVERLAPPED = 1 << 22  # bytes of a model whose exchange is worth a thread; smaller ones wait
SAMPLE = 4096  # values, for the bits per value of a quantizer


@dataclass(frozen=True)
class Choco(Method):
    """CHOCO-SGD.

        h_i = x_i - lr g_i(x_i)
        q_i = C(h_i - x^_i)                                   sent
        x^_j <- x^_j + q_j                                    for j = i and all neighbours
        x_i <- h_i + gamma sum_j W_ij (x^_j - x^_i)

    The errors of the compressor act on both ends of an edge with opposite signs, so the mean of
    the models is kept for any compressor, biased ones too. It moves by the mean gradient. With
    C = identity and gamma = 1 the method is D-PSGD, adapt-then-combine.

    Unbiased quantizers are scaled by 1 / (1 + omega), as the theorem requires; omega is their
    error for the vector at hand. The paper starts with x^ = 0. Here x^ starts as x, which spares
    the steps in which the first model would be sent piece by piece; if all ranks start with the
    same model this costs no message.

    State: `estimate`, this rank's x^, and `replica/<rank>`, the x^ of each neighbour, the same
    bits as there. A change of topology or world size drops them; the next step sends the models
    once to restore them. The models are not touched.

    Reference: Koloskova, Stich, Jaggi: Decentralized Stochastic Optimization and Gossip
    Algorithms with Compressed Communication, ICML 2019.

    Args:
        topology: Symmetric, doubly stochastic, the same in every step.
        compress: Any sparsifier or quantizer; None is the identity. `RandomK` is never scaled.
        gamma: Step size of the consensus, above 0 and at most 1. The stronger the compression,
            the smaller it must be; if it is too large the models diverge. By default it is 1 for
            quantizers of four bits or more, 0.3 for those of fewer, 0.2 for TopK(0.1), 0.04 for
            TopK(0.01), and half of the ratio for RandomK. `theoretical_gamma` is safe and very
            conservative.
        seed: Random seed. It is combined with the step and the rank.
    """

    name: ClassVar[str] = "choco"
    number: ClassVar[int] = 4
    checks_values: ClassVar[bool] = True

    compress: Compressor = None
    gamma: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require_compressor(self, self.compress, unbiased=False)
        if self.gamma is None:
            object.__setattr__(self, "gamma", default_gamma(self.compress))
        check_real(self, "gamma")
        if not 0 < self.consensus_rate <= 1:
            raise ValueError(
                f"Choco: gamma must be above 0 and at most 1, got {self.gamma}; leave it out, or "
                f"start with 0.1"
            )

    def _check_topology(self) -> None:
        require_doubly_stochastic(self, self.topology)
        require_symmetric(self, self.topology)
        require_static(self, self.topology)

    @property
    def consensus_rate(self) -> float:
        """The value of gamma, also if it was left out."""
        assert self.gamma is not None  # set in __post_init__
        return self.gamma

    def theoretical_gamma(self, contraction: float) -> float:
        """Return the gamma of the paper's theorem, for which convergence is proved.

        Args:
            contraction: The number w in E||C(v) - v||^2 <= (1 - w) ||v||^2: k/d for `TopK`.
        """
        gap = self.topology.spectral_gap
        b = 1 - self.topology.lambda_min  # the norm of I - W
        w = contraction
        bound = 16 * gap + gap**2 + 4 * b**2 + 2 * gap * b**2 - 8 * gap * w
        return gap**2 * w / bound

    def _step(self, call: Step, x: Values, g: Values, state: State) -> tuple[Values, State]:
        new = dict(state)
        compress = self.compress
        if isinstance(compress, Sparsifier):
            compress = compress.for_error_feedback()
        replicas = load_replicas(call, x, state)
        estimate = state.get(ESTIMATE, x)
        difference = call.difference(x, g, estimate)
        if isinstance(compress, Quantizer) and not compress.biased:
            difference = _contracted(compress, difference)
        reused, gamma = call.may_overwrite(estimate), self.consensus_rate
        if isinstance(compress, Sparsifier) and x.nbytes >= OVERLAPPED:
            sent = select(call, compress, difference, self.seed, state, new)
            request = call.begin_exchange(sent)
            # Few entries of the replicas are about to change: form the sum of all others now.
            new[ESTIMATE] = estimate = add_to(estimate, sent, overwrite=reused)
            mixed = call.add_differences(x, estimate, replicas, gamma, g)
            received = request.wait()
            replicas = update_replicas(call, replicas, received, new)
            changed = received.values()
            return call.add_differences_again(
                changed, mixed, x, estimate, replicas, gamma, g
            ), new
        sent, received = exchange_compressed(
            call, compress, difference, self.seed, state, new
        )
        new[ESTIMATE] = estimate = add_to(estimate, sent, overwrite=reused)
        replicas = update_replicas(call, replicas, received, new)
        return call.add_differences(x, estimate, replicas, gamma, g), new


def default_gamma(compress: Compressor) -> float:
    """Return a step size of the consensus that has been stable in experiments."""
    if compress is None:
        return 1.0
    if isinstance(compress, Quantizer):
        code = compress.encode(np.linspace(-1, 1, SAMPLE, dtype=np.float32))
        return 1.0 if 8 * code.nbytes >= 4 * SAMPLE else 0.3
    ratio = float(getattr(compress, "ratio", None) or 0.01)
    if isinstance(compress, RandomK):
        return ratio / 2
    return min(1.0, float(round(0.2 * (10 * ratio) ** 0.7, 3)))


def _contracted(quantizer: Quantizer, v: Values) -> Values:
    """Return v times 1 / (1 + omega), where omega is the quantizer's error for this v.

    The quantizer is unbiased, E||Q(v) - v||^2 = omega ||v||^2. If omega is above 1, as with two
    bits, x^ + Q(v) would be further from h than x^ is; Q(v) / (1 + omega) is always closer.
    """
    decoded = quantizer.decode(quantizer.encode(v))
    square = float(np.vdot(decoded, decoded))
    scale = float(np.vdot(decoded, v.astype(np.float32))) / square if square else 1.0
    contracted: Values = v * v.dtype.type(min(1.0, max(0.0, scale)))
    return contracted
