"""Build src/sparcml/linear/data/spam.bin, the mails of the package.

    python benchmarks/build_spam.py

It needs spam-assassin.jsonl.gz, in ../shared/data or in the folder SPARCML_DATA. Every run gives
the same bytes. All 6,046 mails would need 10 MB; half of them are enough for a demonstration.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

import numpy as np
from workloads import data

from sparcml.linear import Hashing, Rows
from sparcml.linear.data.bundled import pack

TARGET = Path(__file__).resolve().parents[1] / "src/sparcml/linear/spam.bin"
KEPT = 2  # one mail of so many
HASHING = Hashing(16_609_143, words=(1, 3), characters=(3,))


def mails(kept: int = KEPT) -> Rows:
    """Return one mail of `kept`, in random order."""
    with gzip.open(
        data.folder() / "spam-assassin.jsonl.gz", "rt", encoding="utf-8"
    ) as file:
        found = [json.loads(line) for line in file]
    order = np.random.default_rng(0).permutation(len(found))[: len(found) // kept]
    bodies = [found[i]["body"] for i in order]
    return HASHING.rows(bodies, [1 if found[i]["label"] == 1 else -1 for i in order])


def main() -> None:
    """Write the file, and print its contents."""
    try:
        rows = mails()
    except FileNotFoundError as error:
        sys.exit(f"build_spam: {error}")
    code = pack(rows)
    TARGET.write_bytes(code)
    print(
        f"{TARGET.name}: {len(rows)} rows, {rows.nnz / len(rows):.0f} entries per row, "
        f"{np.unique(rows.indices).size} active columns, {len(code)} bytes, "
        f"{8 * len(code) / rows.nnz:.2f} bits per entry"
    )


if __name__ == "__main__":
    main()
