"""Files of arrays with a header: NumPy's npz without pickle, with a format and a version.

The array `header` is JSON in UTF-8, with `format` and `version` among its keys. A file replaces
an existing one when it is complete.
"""

from __future__ import annotations

import errno
import json
import zipfile
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


def write_npz(
    path: Path,
    format_name: str,
    version: int,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
) -> None:
    """Write a file; an existing one stays as it was unless this succeeds.

    Raises:
        OSError: If the file cannot be written; names the file.
    """
    text = json.dumps({"format": format_name, "version": version, **header})
    encoded = np.frombuffer(text.encode(), np.uint8)
    try:
        with replacing(path) as file:
            np.savez(file, **{HEADER: encoded, **arrays})  # type: ignore[arg-type]
    except OSError as error:
        raise OSError(
            error.errno,
            f"{error.strerror or error}; the file was not written, and an existing one is "
            f"unchanged",
            str(path),
        ) from error


def read_npz(
    path: Path, format_name: str, versions: range
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the header and the arrays of a file of one of these versions.

    Raises:
        DataError: If the file has another format or version, or is damaged.
        OSError: If the file cannot be read.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DataError(f"{path}: not a {format_name}")
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as archive:
                _check_checksums(archive)
                header = _read_header(path, format_name, versions, archive)
                arrays = {name: archive[name] for name in archive if name != HEADER}
                return header, arrays
        except (DataError, MemoryError):
            raise
        except Exception as error:  # zipfile and its decoders raise errors of many types
            if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
                raise
            reason = str(error) or type(error).__name__
            raise DataError(f"{path}: the {format_name} is damaged: {reason}") from error


def _check_checksums(archive: Any) -> None:
    """Raise BadZipFile for a damaged array, whose header NumPy would evaluate otherwise."""
    if (damaged := archive.zip.testzip()) is not None:
        raise zipfile.BadZipFile(f"the checksum of {damaged!r} is wrong")


def _read_header(
    path: Path, format_name: str, versions: range, archive: Any
) -> dict[str, Any]:
    if HEADER not in archive:
        raise DataError(f"{path}: not a {format_name}, but another npz file")
    header = json.loads(archive[HEADER].astype(np.uint8).tobytes())
    actual = header.get("format") if isinstance(header, dict) else None
    if actual != format_name:
        raise DataError(f"{path}: not a {format_name}, but {actual!r}")
    if header.get("version") not in versions:
        raise DataError(
            f"{path}: the {format_name} must have version {versions[0]} to {versions[-1]}, "
            f"got {header.get('version')}"
        )
    return dict(header)
