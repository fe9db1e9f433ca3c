"""Text to rows: words and n-grams are features, numbered by their checksum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...kernels import crc32_spans
from .rows import MAX_FEATURES, Rows

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import ArrayLike, NDArray

    Spans = tuple[NDArray[np.int64], NDArray[np.int64]]

SPACE = 32


@dataclass(frozen=True)
class Hashing:
    """Features are the CRC-32 of a gram's UTF-8, modulo their number.

    A word and a gram of characters that are spelt alike are the same feature.

    Attributes:
        features: How many there are.
        words: Lengths of the grams of words; 1 are the words themselves, which are what
            lies between white space. (1, 3) are words and triples of words in a row.
        characters: Lengths of the grams of characters, white space included.
        counts: Whether a value says how often a gram is there, and not only that it is.
        unit: Whether each row is scaled to length 1.
    """

    features: int
    words: tuple[int, ...] = (1,)
    characters: tuple[int, ...] = ()
    counts: bool = False
    unit: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.features <= MAX_FEATURES:
            raise ValueError(
                f"Hashing: features must be 1 to {MAX_FEATURES}, got {self.features}"
            )
        lengths = (*self.words, *self.characters)
        if not lengths or min(lengths) < 1:
            raise ValueError(
                f"Hashing: lengths of grams must be 1 or more, got words={self.words}, "
                f"characters={self.characters}"
            )

    def rows(self, texts: Iterable[str], labels: ArrayLike | None = None) -> Rows:
        """One row a text; labels are zeros by default."""
        found = [self._features(text) for text in texts]
        indptr = np.zeros(len(found) + 1, np.int64)
        np.cumsum([indices.size for indices, _ in found], out=indptr[1:])
        none = (np.empty(0, np.uint32), np.empty(0, np.float32))  # for no texts at all
        indices = np.concatenate([none[0], *(indices for indices, _ in found)])
        values = np.concatenate([none[1], *(values for _, values in found)])
        y = np.zeros(len(found)) if labels is None else np.asarray(labels, np.float64)
        rows = Rows(indptr, indices, values, y, self.features)
        rows.check()
        return rows

    def _features(self, text: str) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        hashed = np.concatenate([self._words(text), self._characters(text)])
        indices, times = np.unique(hashed, return_counts=True)
        values = (
            times.astype(np.float32) if self.counts else np.ones(times.size, np.float32)
        )
        if self.unit and values.size:
            values /= np.sqrt(np.square(values, dtype=np.float64).sum())
        return indices, values

    def _words(self, text: str) -> NDArray[np.uint32]:
        data = _utf8(" ".join(text.split()))  # so that a gram is one piece of it
        spaces = np.flatnonzero(data == SPACE)
        starts = np.concatenate([[0], spaces + 1]) if data.size else spaces
        stops = np.append(spaces, data.size) if data.size else spaces
        lengths = [n for n in self.words if n <= starts.size]
        return self._hashed(
            data, [(starts[: starts.size - n + 1], stops[n - 1 :]) for n in lengths]
        )

    def _characters(self, text: str) -> NDArray[np.uint32]:
        data = _utf8(text)
        edges = np.append(np.flatnonzero((data & 0xC0) != 0x80), data.size)
        lengths = [n for n in self.characters if n < edges.size]
        return self._hashed(data, [(edges[:-n], edges[n:]) for n in lengths])

    def _hashed(self, data: NDArray[np.uint8], spans: list[Spans]) -> NDArray[np.uint32]:
        parts = [crc32_spans(data, *span, self.features) for span in spans]
        return np.concatenate([np.empty(0, np.uint32), *parts])


def _utf8(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
