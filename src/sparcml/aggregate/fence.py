"""Fence: parameters that a coarse quantizer cannot represent get a finer one.

TernGrad and OneBit have one or two magnitudes for many values. They suit gradients whose largest
magnitude is 5 to 50 times the root mean square of the nonzeros, as in most layers. In the output
layer of a language model it is 50 to 200 times: rows of frequent words are large, and all others
are lost or drowned in noise. On a word LSTM these quantizers lost nearly all of their accuracy
there, and not in the embedding.

The ranks measure this dispersion every 100 steps, and the largest on any rank decides. What was
decided is in the state, so that it survives checkpoints and changes of the world size.
"""

from __future__ import annotations

import logging
import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import kernels
from ..quantize import QSGD, OneBit, TernGrad
from ..quantize.code import mix_seed
from .momentum import clipped
from .scaling import maximum_over_ranks
from .state import STEP, key, keys_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..communicator.communicator import Communicator
    from ..stream.arrays import Values
    from .compressed import Compressed
    from .gradients import Parameter
    from .state import State

LOGGER = logging.getLogger("sparcml")
FENCED = "fenced"
EVERY = 100  # steps
LIMIT = 50.0  # dispersion, see above
FINER = QSGD(4, bucket=128)
INSIDE = 1  # number of the finer group, in seeds


def step_with_fence(
    method: Compressed, comm: Communicator, parameters: Sequence[Parameter], state: State
) -> tuple[dict[str, Any], State]:
    """Make a step of a method with `fence`. Collective.

    Args:
        method: The method.
        comm: The communicator.
        parameters: Gradients of this rank.
        state: State before the step.

    Returns:
        The means by name, and the new state.
    """
    # Over all parameters, before they are grouped.
    parameters = clipped(parameters, method.clip, comm.size)
    inner = replace(method, fence=None, clip=None)
    fenced = _decide(method, comm, parameters, state)
    means, new = inner._step(comm, [p for p in parameters if not fenced.get(p.name)], state)
    if inside := [p for p in parameters if fenced.get(p.name)]:
        # Another seed, so that the errors of the two groups are independent.
        seed = mix_seed(method.seed, INSIDE)
        finer = replace(inner, quantize=FINER, seed=seed)
        some, after = finer._step(comm, inside, state)
        means, new = means | some, new | after
    decisions = {key(FENCED, n): np.array(float(inside)) for n, inside in fenced.items()}
    return means, new | decisions


def needs_fence(method: Compressed) -> bool:
    """Return whether a method has a quantizer that needs a fence, and no setting for it."""
    coarse = isinstance(method.quantize, OneBit | TernGrad)
    return coarse and method.sparsify is None and method.fence is None


def fenced_names(state: Mapping[str, Any]) -> list[str]:
    """Return the names of the parameters that get the finer quantizer."""
    return [name_of(k) or "" for k in keys_of(state, FENCED) if state[k]]


def dispersion(values: Values) -> float:
    """Return the largest magnitude relative to the root mean square of the nonzeros."""
    largest, _, squares, _ = kernels.moments(np.asarray(values, np.float32))
    nonzeros = int(np.count_nonzero(values))
    if not 0 < squares < math.inf:
        return 0.0
    return float(largest / math.sqrt(squares / nonzeros))


def _decide(
    method: Compressed, comm: Communicator, parameters: Sequence[Parameter], state: State
) -> dict[str, bool]:
    """Return whether each parameter gets the finer quantizer, for those compressed."""
    assert method.fence is not None
    large = [p for p in parameters if method.compresses(p)]
    before = {p.name: state.get(key(FENCED, p.name)) for p in large}
    known = {
        name: bool(decision) for name, decision in before.items() if decision is not None
    }
    if not large or (len(known) == len(large) and int(state[STEP]) % EVERY):
        return known
    found = maximum_over_ranks(comm, [dispersion(p.values) for p in large])
    fenced = {p.name: d > method.fence for p, d in zip(large, found, strict=True)}
    new = [name for name, inside in fenced.items() if inside and not known.get(name)]
    if new and comm.rank == 0:
        LOGGER.warning(
            "%s cannot represent the gradients of %s, which are sent as %s instead "
            "(see sparcml.aggregate.fence; Compressed(fence=math.inf) turns this off)",
            method.quantize,
            ", ".join(repr(name) if name else "the model" for name in new),
            FINER,
        )
    return fenced
