"""Real data sets and their readers.

The files are in ../shared/data, or in the folder SPARCML_DATA.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"
COLUMNS = 1 << 18  # of hashed text
HELD_OUT = 5  # one row of so many is kept for the test


class Table(NamedTuple):
    """Training rows and test rows."""

    rows: Any
    labels: NDArray[Any]
    test_rows: Any
    test_labels: NDArray[Any]


def folder() -> Path:
    """Return the folder of the data.

    Raises:
        FileNotFoundError: If it does not exist; the message names it.
    """
    found = place()
    if not found.is_dir():
        raise FileNotFoundError(
            f"no data at {found}: put the files of the data set there "
            f"(fashion-mnist/*.gz, spam-assassin.jsonl.gz), or set SPARCML_DATA"
        )
    return found


def place() -> Path:
    """Return the expected folder of the data."""
    return Path(os.environ.get("SPARCML_DATA") or BESIDE)


@cache
def fashion_mnist() -> Table:
    """Return 60,000 + 10,000 images of 784 pixels, less the mean training image; 10 classes."""

    def read(name: str, start: int) -> NDArray[np.uint8]:
        with gzip.open(folder() / "fashion-mnist" / f"{name}-ubyte.gz") as file:
            return np.frombuffer(file.read(), np.uint8, offset=start)

    images = [
        read(f"{part}-images-idx3", 16).reshape(-1, 784) / np.float32(255)
        for part in ("train", "t10k")
    ]
    labels = [read(f"{part}-labels-idx1", 8).astype(np.intp) for part in ("train", "t10k")]
    middle = images[0].mean(axis=0)
    return Table(images[0] - middle, labels[0], images[1] - middle, labels[1])


@cache
def spam() -> Table:
    """Return 6,046 mails: words, their 3-grams and 3-grams of characters, hashed; unit rows.

    There are 2^18 columns instead of the 16.6 M of the paper's Webspam: 8 ranks in one process,
    each with a dense residual of that size, would spend their time on it.
    """
    from scipy import sparse

    with gzip.open(folder() / "spam-assassin.jsonl.gz", "rt", encoding="utf-8") as file:
        mails = [json.loads(line) for line in file]
    columns = [_hashed(mail["body"]) for mail in mails]
    counts = np.array([len(found) for found in columns])
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    edges = np.append(0, np.cumsum(counts))
    rows = sparse.csr_matrix(
        (values, np.concatenate(columns), edges), (len(mails), COLUMNS)
    )
    labels = np.array([1 if mail["label"] == 1 else -1 for mail in mails], np.float32)
    order = np.random.default_rng(0).permutation(len(mails))
    test, train = np.split(order, [len(mails) // HELD_OUT])
    return Table(rows[train], labels[train], rows[test], labels[test])


# CRC-32 of three bytes is the exclusive or of one value per byte, because CRCs are affine.
_CRC = np.array(
    [[zlib.crc32((byte << 8 * at).to_bytes(3)) for byte in range(256)] for at in (2, 1, 0)],
    np.int64,
)


def _hashed(text: str) -> NDArray[np.int32]:
    grams = _words(text) if text.isascii() else _grams(text)
    words = {zlib.crc32(gram.encode("utf-8", "surrogatepass")) for gram in grams}
    found = np.fromiter(words, np.int64, len(words))
    if text.isascii() and len(text) >= 3:
        letters = np.frombuffer(text.encode(), np.uint8)
        crcs = _CRC[0, letters[:-2]] ^ _CRC[1, letters[1:-1]] ^ _CRC[2, letters[2:]]
        found = np.append(found, crcs)
    return np.unique(found % COLUMNS).astype(np.int32)


def _grams(text: str) -> Iterator[str]:
    yield from _words(text)
    yield from (text[i : i + 3] for i in range(len(text) - 2))


def _words(text: str) -> Iterator[str]:
    words = text.split()
    yield from words
    yield from (" ".join(words[i : i + 3]) for i in range(len(words) - 2))
