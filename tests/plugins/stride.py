"""A sparsifier: every n-th entry."""

from dataclasses import dataclass

import numpy as np

from sparcml import Sparsifier, Stream


@dataclass(frozen=True)
class Stride(Sparsifier):
    """Every n-th entry, starting at a random one."""

    step: int = 10

    name = "stride"
    number = 100
    option = "STEP"

    @classmethod
    def from_option(cls, text):
        return cls(int(text))

    @classmethod
    def planned(cls):
        return (cls(100),)

    @property
    def biased(self):
        return True

    def count(self, size):
        return None

    def select_from(self, source, seed, state):
        start = min(seed % self.step, max(source.size - 1, 0))
        indices = np.arange(start, source.size, self.step, dtype=np.uint32)
        return Stream(source.size, indices, source.gather(indices))
