"""Functions and handles of the MPI library that mpi4py has loaded, as plain numbers.

The compiled message loop calls these functions. No MPI is needed to build it: addresses are
looked up at run time, and handles are read from the objects of mpi4py, 4 bytes wide in MPICH
and 8 in Open MPI.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from functools import cache
from typing import Any

from mpi4py import MPI

from ..operations import OPS

NAMES = (
    "Isend",
    "Irecv",
    "Improbe",
    "Imrecv",
    "Iprobe",
    "Get_count",
    "Test",
    "Iallreduce",
)
TYPES = {
    "<f4": MPI.FLOAT,
    "<f8": MPI.DOUBLE,
    "<i4": MPI.INT32_T,
    "<i8": MPI.INT64_T,
}
MPI_OPS = {op: getattr(MPI, op.upper()) for op in OPS}
PROBE_TAG = 0x1234567  # not a value that a new status holds elsewhere


@dataclass(frozen=True)
class MpiFunctions:
    """What the compiled loop needs to know of an MPI library and a communicator.

    Attributes:
        functions: Addresses of the functions NAMES.
        handle_bytes: Bytes of a handle.
        handles: Handles of the communicators for messages and control messages, and of BYTE.
        any_source: Value of ANY_SOURCE.
        any_tag: Value of ANY_TAG.
        tag_at: Offset of the tag in a status.
        types: Handles of the datatypes, by the string of the dtype.
        ops: Handles of the operations, by name.
    """

    functions: list[int]
    handle_bytes: int
    handles: list[int]
    any_source: int
    any_tag: int
    tag_at: int
    types: dict[str, int]
    ops: dict[str, int]


def mpi_functions(comm: MPI.Comm, control: MPI.Comm) -> MpiFunctions | None:
    """Return the functions and handles, or None if the library does not reveal them."""
    functions, tag_at = _addresses(), _tag_offset()
    width = MPI._sizeof(MPI.Comm)
    same = {MPI._sizeof(kind) for kind in (MPI.Datatype, MPI.Request, MPI.Message)}
    if functions is None or tag_at is None or same != {width} or width not in (4, 8):
        return None
    handles = [_handle(x, width) for x in (comm, control, MPI.BYTE)]
    return MpiFunctions(
        functions,
        width,
        handles,
        MPI.ANY_SOURCE,
        MPI.ANY_TAG,
        tag_at,
        {name: _handle(kind, width) for name, kind in TYPES.items()},
        {name: _handle(op, width) for name, op in MPI_OPS.items()},
    )


@cache
def _addresses() -> list[int] | None:
    """Return the addresses of the functions in the library that mpi4py is linked with."""
    try:
        library = ctypes.CDLL(MPI.__file__)  # already loaded; finds its dependencies too
        return [
            int(ctypes.cast(getattr(library, f"MPI_{name}"), ctypes.c_void_p).value or 0)
            for name in NAMES
        ]
    except (AttributeError, OSError):
        return None


@cache
def _tag_offset() -> int | None:
    """Return where a status holds its tag, by setting one."""
    status = MPI.Status()
    status.Set_tag(PROBE_TAG)
    raw = ctypes.string_at(MPI._addressof(status), MPI._sizeof(MPI.Status))
    at = raw.find(PROBE_TAG.to_bytes(4, "little"))
    return at if at >= 0 and len(raw) <= 128 else None


def _handle(x: Any, width: int) -> int:
    return int.from_bytes(ctypes.string_at(MPI._addressof(x), width), "little")
