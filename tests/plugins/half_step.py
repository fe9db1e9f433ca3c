"""An aggregation method: half of the corrected gradient in each step."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparcml import Method


@dataclass(frozen=True)
class HalfStep(Method):
    """The mean of half the corrected gradient; the other half stays in the residual."""

    nonfinite: str = "raise"

    name: ClassVar[str] = "half_step"
    number: ClassVar[int] = 100

    @classmethod
    def planned(cls):
        return (cls(),)

    def _begin(self, shapes, state):
        for name, shape in shapes.items():
            state.setdefault(key(name), np.zeros(int(np.prod(shape)), np.float32))

    def _step(self, comm, parameters, state):
        means, new = {}, dict(state)
        for p in parameters:
            corrected = state[key(p.name)] + p.values
            self.check_finite(comm, p.name, corrected)
            means[p.name] = comm.allreduce(corrected / 2, op="mean")
            new[key(p.name)] = corrected / 2
        return means, new


def key(name):
    return f"residual/{name}" if name else "residual"
