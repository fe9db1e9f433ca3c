"""Arrays and a header in one file: NumPy's npz, without pickle, with a version.

The array `header` is JSON in UTF-8; its `format` says what the file is, and its `version` how
to read it. Files are written beside their place and take it when they are complete.
"""

from __future__ import annotations

import json
import zipfile
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import DataError
from ...files import replacing

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

MAGIC = b"PK\x03\x04"
HEADER = "header"


def store(
    path: Path,
    kind: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file; one that was there stays as it was unless this succeeds.

    Raises:
        OSError: If it cannot be written; names the file.
    """
    said = json.dumps({"format": kind, "version": version, **header})
    text = np.frombuffer(said.encode(), np.uint8)
    try:
        with replacing(path) as file:
            np.savez(file, **{HEADER: text, **arrays})  # type: ignore[arg-type]  # names
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror or error}; it could not be written, and what was there before "
            f"is as it was",
            str(path),
        ) from error


def stored(path: Path, kind: str, version: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The header and the arrays of a file.

    Raises:
        DataError: If it is something else, of another version, or damaged.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DataError(f"{path}: this is no {kind}")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as found:
                header = _header(path, kind, version, found)
                return header, {name: found[name] for name in found if name != HEADER}
        except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{path}: this {kind} is damaged: {error}") from error


def _header(path: Path, kind: str, version: int, found: Any) -> dict[str, Any]:
    if HEADER not in found:
        raise DataError(f"{path}: this is no {kind}, but some other file of NumPy's")
    header = json.loads(found[HEADER].astype(np.uint8).tobytes())
    there = header.get("format") if isinstance(header, dict) else None
    if there != kind:
        raise DataError(f"{path}: this is no {kind}, but says to be {there!r}")
    if header.get("version") != version:
        raise DataError(
            f"{path}: this {kind} has version {header.get('version')}; this sparcml reads "
            f"version {version}"
        )
    return dict(header)
