"""Feature hashing of text: words and n-grams become columns by their checksum."""

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
    """Map each n-gram to the CRC-32 of its UTF-8 bytes, modulo `features`.

    A word and a character n-gram with the same spelling are the same feature.

    Attributes:
        features: Number of columns.
        words: Lengths of word n-grams. Words are separated by white space; (1, 3) stands for
            words and word trigrams.
        characters: Lengths of character n-grams, white space included.
        counts: Store the number of occurrences instead of 1.
        unit: Scale each row to unit norm.
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
                f"Hashing: lengths of n-grams must be 1 or more, got words={self.words}, "
                f"characters={self.characters}"
            )

    def rows(self, texts: Iterable[str], labels: ArrayLike | None = None) -> Rows:
        """Return one row per text; labels are zeros by default."""
        hashed = [self._hash(text) for text in texts]
        indptr = np.zeros(len(hashed) + 1, np.int64)
        np.cumsum([indices.size for indices, _ in hashed], out=indptr[1:])
        empty = (np.empty(0, np.uint32), np.empty(0, np.float32))
        indices = np.concatenate([empty[0], *(indices for indices, _ in hashed)])
        values = np.concatenate([empty[1], *(values for _, values in hashed)])
        y = np.zeros(len(hashed)) if labels is None else np.asarray(labels, np.float64)
        rows = Rows(indptr, indices, values, y, self.features)
        rows.check()
        return rows

    def _hash(self, text: str) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        columns = np.concatenate([self._words(text), self._characters(text)])
        indices, counts = np.unique(columns, return_counts=True)
        values = (
            counts.astype(np.float32) if self.counts else np.ones(counts.size, np.float32)
        )
        if self.unit and values.size:
            values /= np.sqrt(np.square(values, dtype=np.float64).sum())
        return indices, values

    def _words(self, text: str) -> NDArray[np.uint32]:
        data = _utf8(" ".join(text.split()))  # makes every n-gram one contiguous span
        spaces = np.flatnonzero(data == SPACE)
        starts = np.concatenate([[0], spaces + 1]) if data.size else spaces
        stops = np.append(spaces, data.size) if data.size else spaces
        lengths = [n for n in self.words if n <= starts.size]
        return self._columns(
            data, [(starts[: starts.size - n + 1], stops[n - 1 :]) for n in lengths]
        )

    def _characters(self, text: str) -> NDArray[np.uint32]:
        data = _utf8(text)
        offsets = np.append(np.flatnonzero((data & 0xC0) != 0x80), data.size)
        lengths = [n for n in self.characters if n < offsets.size]
        return self._columns(data, [(offsets[:-n], offsets[n:]) for n in lengths])

    def _columns(self, data: NDArray[np.uint8], spans: list[Spans]) -> NDArray[np.uint32]:
        columns = [crc32_spans(data, *span, self.features) for span in spans]
        return np.concatenate([np.empty(0, np.uint32), *columns])


def _utf8(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(text.encode("utf-8", "surrogatepass"), np.uint8)
