"""Synthetic rows with the published statistics of real data that cannot be shipped.

Feature frequencies follow Zipf's law, row lengths are lognormal, and labels come from a sparse
linear model with noise. Row i does not depend on the number of rows or on the rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .rows import Rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...communicator.communicator import Communicator

INFORMATIVE = 10_000  # most frequent features, on which labels depend
NOISE = 0.1  # standard deviation of the noise, in those of the score
FLIPS = 0.02  # fraction of wrong labels
PILOT = 2048  # rows that determine the threshold between the classes
BITS = 25  # bits of a feature in a 64-bit key


@dataclass(frozen=True)
class Recipe:
    """The distribution of rows.

    Attributes:
        features: Number of columns.
        entries: Mean number of nonzeros per row.
        sigma: Standard deviation of the logarithm of a row's length.
        longest: Upper bound of a row's length, in means.
        positive: Fraction of rows with label 1; the others have -1.
        real: Number of most frequent features with values in (0, 1]; others are 1. None: all
            values are positive, and rows have unit norm.
        exponent: Exponent of Zipf's law.
        block: Rows that are drawn together.
        offset: Added to frequency ranks, so that the first ones do not dominate.
    """

    features: int
    entries: float
    sigma: float
    longest: float
    positive: float
    real: int | None
    exponent: float
    block: int
    offset: float = 10.0

    def __post_init__(self) -> None:
        if self.features > 1 << BITS or self.block << 2 * BITS >= 1 << 63:
            raise ValueError(
                f"Recipe: a row, a column and a frequency rank must fit in 63 bits, got {self}"
            )

    def rows(self, count: int, seed: int = 0, comm: Communicator | None = None) -> Rows:
        """Return `count` rows, or a rank's part of them."""
        rank, ranks = (comm.rank, comm.size) if comm else (0, 1)
        start, stop = rank * count // ranks, (rank + 1) * count // ranks
        parts = list(self.stream(stop, seed, start))
        indptr = np.zeros(stop - start + 1, np.int64)
        if parts:
            np.cumsum(
                np.concatenate([np.diff(part.indptr) for part in parts]), out=indptr[1:]
            )
        empty = np.empty(0)
        return Rows(
            indptr,
            np.concatenate([empty.astype(np.uint32), *(part.indices for part in parts)]),
            np.concatenate([empty.astype(np.float32), *(part.values for part in parts)]),
            np.concatenate([empty, *(part.labels for part in parts)]),
            self.features,
            start,
            count,
        )

    def stream(self, count: int, seed: int = 0, start: int = 0) -> Iterator[Rows]:
        """Yield rows start to count block by block, in the memory of one block."""
        while start < count:
            number, skipped = divmod(start, self.block)
            first = number * self.block
            stop = min(count, first + self.block)
            rows = self._block(number, seed, max(count, first + self.block))
            yield rows.take(skipped, stop - first)
            start = stop

    def _block(self, number: int, seed: int, total: int) -> Rows:
        rng = np.random.default_rng([seed, number])
        row, columns, rank = self._entries(rng)
        values = self._values(rng, row, rank)
        score = (self._scores(row, rank, values) - self._middle) / self._spread
        score += NOISE * rng.standard_normal(self.block)
        labels = np.where(score > 0, 1.0, -1.0)
        labels[rng.random(self.block) < FLIPS] *= -1
        indptr = np.searchsorted(row, np.arange(self.block + 1)).astype(np.int64)
        return Rows(
            indptr,
            columns.astype(np.uint32),
            values,
            labels,
            self.features,
            number * self.block,
            total,
        )

    def _entries(
        self, rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return unique (row, column, frequency rank) in order; one key holds all three."""
        draws = rng.poisson(self.draws(rng, self.block))
        rank = self._ranks(rng.random(int(draws.sum())))
        key = np.repeat(np.arange(self.block) << (2 * BITS), draws)
        key |= self._columns[rank].astype(np.int64) << BITS
        key |= rank
        key.sort()
        unique = np.ones(key.size, bool)
        np.not_equal(key[1:], key[:-1], out=unique[1:])
        key, mask = key[unique], (1 << BITS) - 1
        return key >> (2 * BITS), key >> BITS & mask, key & mask

    def draws(self, rng: np.random.Generator, rows: int) -> NDArray[np.float64]:
        """Return the mean number of draws of a feature for each row.

        A feature that is drawn twice counts once. Drawing until a row has its length would
        make features depend on each other. With the number of draws for which that length is
        expected, each feature j is independent of the others and in a row with probability
        1 - exp(-draws p_j).
        """
        mean = np.log(self.entries) - self.sigma**2 / 2
        lengths = np.exp(rng.normal(mean, self.sigma, rows))
        lengths = np.minimum(lengths, self.longest * self.entries)
        times, expected = self._lengths
        return np.interp(lengths, expected, times)

    def popularity(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (number of features, probability that a draw gives one of them).

        The first 4,096 have bins of their own; in others they differ by less than 1 %.
        """
        near = np.arange(4096.0)
        far = np.unique(np.geomspace(4096, self.features, 1500).astype(np.int64))
        edges = np.concatenate([near, far.astype(np.float64)])
        probability = np.diff(self._below(edges))
        counts = np.diff(edges)
        return counts, probability / counts

    @cached_property
    def _lengths(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (number of draws, expected length of a row)."""
        counts, p = self.popularity()
        times = np.concatenate([[0.0], np.geomspace(1, 1e3 * self.entries, 400)])
        return times, np.array([(counts * -np.expm1(-t * p)).sum() for t in times])

    def _below(self, rank: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of a draw below a frequency rank."""
        power = 1 - self.exponent
        low, high = self.offset**power, (self.features + self.offset) ** power
        return np.asarray(((rank + self.offset) ** power - low) / (high - low))

    def _ranks(self, below: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the inverse of `_below`."""
        power = 1 - self.exponent
        low, high = self.offset**power, (self.features + self.offset) ** power
        rank = np.asarray((low + below * (high - low)) ** (1 / power) - self.offset)
        return np.minimum(rank.astype(np.int64), self.features - 1)

    def _values(
        self, rng: np.random.Generator, row: NDArray[np.int64], rank: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        if self.real is not None:
            values = np.ones(rank.size, np.float32)
            frequent = rank < self.real
            values[frequent] = 1 - rng.random(int(frequent.sum()), np.float32)
            return values
        values = 1 - np.log1p(-rng.random(rank.size, np.float32))
        squares = np.bincount(row, np.square(values, dtype=np.float64), self.block)
        return (values / np.sqrt(squares)[row]).astype(np.float32)

    def _scores(
        self,
        row: NDArray[np.int64],
        rank: NDArray[np.int64],
        values: NDArray[np.float32],
    ) -> NDArray[np.float64]:
        informative = rank < INFORMATIVE
        terms = self._truth[rank[informative]] * values[informative]
        return np.bincount(row[informative], terms, self.block).astype(np.float64)

    @cached_property
    def _truth(self) -> NDArray[np.float64]:
        return np.random.default_rng(1).standard_normal(INFORMATIVE)

    @cached_property
    def _pilot(self) -> NDArray[np.float64]:
        """Scores of rows drawn for this purpose."""
        scores = []
        for number in range(-(-PILOT // self.block)):
            rng = np.random.default_rng([PILOT, number, 0])
            row, _, rank = self._entries(rng)
            scores.append(self._scores(row, rank, self._values(rng, row, rank)))
        return np.concatenate(scores)

    @cached_property
    def _spread(self) -> float:
        return float(self._pilot.std())

    @cached_property
    def _middle(self) -> float:
        """The threshold at which the fraction of positive labels, after flips, is as wanted."""
        above = (self.positive - FLIPS) / (1 - 2 * FLIPS)
        return float(np.quantile(self._pilot, 1 - above))

    @cached_property
    def _columns(self) -> NDArray[np.uint32]:
        """The column of each frequency rank."""
        return np.random.default_rng(3).permutation(
            np.arange(self.features, dtype=np.uint32)
        )


# Ma et al., 2009: 2,396,130 rows, 277,058,644 entries.
URL = Recipe(3_231_961, 115.6, 0.4, 3.6, 1 / 3, 64, exponent=1.1, block=4096)

# Trigrams, Wang et al., 2012: 350,000 rows, 1,304,697,446 entries.
WEBSPAM = Recipe(16_609_143, 3727.7, 0.8, 12.6, 0.606, None, exponent=1.1, block=128)


def url_like(count: int, seed: int = 0, comm: Communicator | None = None) -> Rows:
    """Return `count` rows like those of URL, at its full dimension, or a rank's part."""
    return URL.rows(count, seed, comm)


def webspam_like(count: int, seed: int = 0, comm: Communicator | None = None) -> Rows:
    """Return `count` rows like those of Webspam, at its full dimension, or a rank's part."""
    return WEBSPAM.rows(count, seed, comm)
