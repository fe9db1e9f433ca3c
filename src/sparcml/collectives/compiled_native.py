"""The allreduce of an MPI library, from an array to an array in one compiled call.

The library does not detect that ranks differ, so the ranks agree first, in the same call: the
messages are those of `agree`, with the sequence number before that of the allreduce.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import buffer_pool
from ..costs.workload import native_nbytes
from ..kernels import _core
from ..operations import OPS
from ..stream import MEAN
from ..wire.header import DTYPE_CODES
from .base import AGREEMENT, call_code

if TYPE_CHECKING:
    from ..observe import CountingTransport
    from ..stream.arrays import Values
    from ..transport import Message
    from ..transport.mpi_functions import MpiFunctions
    from .loop_host import LoopHost


SHORT = range(
    1 << 15, 1 << 20
)  # bytes of results in the memory of messages, which is quicker


class NativeAllreduce:
    """The engine's own allreduce of one communicator.

    Args:
        host: What the loop asks of Python.
        link: Counting transport of the communicator.
        loop: The compiled loop.
        mpi: Functions of MPI.
    """

    def __init__(
        self,
        host: LoopHost,
        link: CountingTransport,
        loop: _core.MessageLoop,
        mpi: MpiFunctions,
    ) -> None:
        self._host, self._link, self._native = host, link, loop.native
        self._ops = {op: (OPS[op].number, handle) for op, handle in mpi.ops.items()}
        self._ops[MEAN] = self._ops["sum"]
        self._types = {
            np.dtype(name): (DTYPE_CODES[np.dtype(name)], number)
            for name, number in mpi.types.items()
        }
        self._agreements = {op: call_code(AGREEMENT, op) for op in self._ops}

    def has(self, op: str, dtype: np.dtype[Any]) -> bool:
        """Return whether the library reduces these values as `dense.native` does."""
        return dtype in self._types and (dtype.kind != "f" or op not in ("min", "max"))

    def run(
        self, op: str, sequence: int, values: Values, block: int = 1, *, agree: bool
    ) -> Values | list[Message]:
        """Return the result, or the headers of all ranks if these differ.

        Args:
            op: Operation, as the caller names it.
            sequence: Number of the agreement, or of the allreduce if the ranks have agreed.
            values: A contiguous array.
            block: Number of values per block.
            agree: Whether to compare the vectors of all ranks first.
        """
        code, type_ = self._types[values.dtype]
        op_code, handle = self._ops[op]
        out = _empty(values)
        returned = self._native(
            self._host,
            self._agreements[op] if agree else -1,
            sequence & 0xFFFFFFFF,
            self._link.stats.sent is not None,
            code,
            values.size // block,
            block,
            op_code,
            type_,
            handle,
            values,
            out,
        )
        found = returned[0]
        self._host.count(returned)
        if found is True:
            out[np.isnan(out)] = np.nan  # the canonical one
        elif found is not False:
            return list(np.frombuffer(found, np.uint8).reshape(self._link.size, -1))
        link = self._link
        nodes = link.transport.nodes
        nbytes = native_nbytes(nodes.native_algorithm, link.rank, link.size, values.nbytes)
        link.stats.count_native(int(nbytes))
        return out


def _empty(x: Values) -> Values:
    """Return memory for a result like x."""
    if x.nbytes in SHORT:
        return np.frombuffer(_core.message_memory(x.nbytes), x.dtype)
    return buffer_pool.empty(x.size, x.dtype)
