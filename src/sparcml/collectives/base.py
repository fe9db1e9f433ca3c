"""Registry of collectives, and the codes that stand for them in messages.

A file that implements an allreduce ends with `register(Algorithm(...))`. The communicator,
the command line, the benchmarks, the planner and the tests find the algorithm in the
registry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..costs.workload import DENSIFY_WRITES, Round
from ..registry import Registry
from ..stream import MEAN, OPS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..costs.workload import Workload
    from ..stream import Stream
    from .call import Call

MAX_NUMBER = 31  # five bits of the call code
AGREEMENT = "agree"
WORDS = {  # of collectives whose name does not say what the user has called
    AGREEMENT: "allreduce ({op})",
    "agree_root": "broadcast or reduce",
    "agree_topology": "the first neighbor_allreduce with a topology",
    "allgather": "allgather",
    "alltoall": "alltoall",
    "barrier": "barrier",
    "broadcast": "broadcast",
    "consolidate": "state_dict(consolidate=True)",
    "neighbor_allreduce": "neighbor_allreduce",
    "neighbor_exchange": "neighbor_exchange",
    "numbers": "a reduction ({op}) of numbers",
}
OP_NAMES = (*OPS, MEAN)  # in the lower three bits of the call code


@dataclass(frozen=True)
class Collective:
    """A collective and the number that stands for it in message headers.

    Attributes:
        name: Name in the interface, the command line and tables.
        number: Fixed number from 0 to 31; also the position in tables and in ties.
    """

    name: str
    number: int


@dataclass(frozen=True)
class Algorithm(Collective):
    """An allreduce algorithm with its declared cost.

    Attributes:
        run: Function `(call, stream) -> stream` that performs the allreduce.
        cost: Function `(rank, workload) -> rounds` that declares what a rank sends and
            computes.
        is_dense: Whether the algorithm makes its input dense.
        is_native: Whether the engine's own allreduce is called. Its messages have no
            header, so that nothing in them reveals ranks in different calls.
        supports_quantization: Whether values may be quantized, each at most twice: by its
            sender and by the owner of its range.
        quantized_only: Whether `auto` considers the algorithm only with a quantizer.
        lossy: Whether entries are dropped; sum and mean only, and never chosen by `auto`.
        multi_node: Whether the algorithm is meant for nodes with several ranks; `auto`
            considers it only there.
        dense_result: Whether the result is dense although the input is sparse.
        planned: Whether the planner considers the algorithm, which is for long vectors.
        warm_cost: Cost of later calls, if they reuse what the first call computed.
        pipelined_cost: Cost with overlapping rounds combined, for estimates.
    """

    run: Callable[[Call, Stream], Stream]
    cost: Callable[[int, Workload], list[Round]]
    is_dense: bool = False
    is_native: bool = False
    supports_quantization: bool = False
    quantized_only: bool = False
    lossy: bool = False
    multi_node: bool = False
    dense_result: bool = False
    planned: bool = True
    warm_cost: Callable[[int, Workload], list[Round]] | None = None
    pipelined_cost: Callable[[int, Workload], list[Round]] | None = None

    def rounds(self, rank: int, workload: Workload) -> list[Round]:
        """Return the rounds of a rank for estimates, with the work of a dense input."""
        rounds = (self.pipelined_cost or self.warm_cost or self.cost)(rank, workload)
        if workload.is_dense or not self.is_dense:
            return rounds
        return [Round(written=DENSIFY_WRITES * workload.blocks), *rounds]

    def supports(self, op: str, *, quantized: bool = False) -> bool:
        """Whether the algorithm computes `op` exactly as specified.

        Engines do not define the minimum and maximum of NaN and of signed zeros.
        """
        if quantized and not self.supports_quantization:
            return False
        return not (self.is_native and op in ("min", "max"))


COLLECTIVES: Registry[Collective] = Registry("collective")
ALLREDUCES: Registry[Algorithm] = Registry("allreduce algorithm")


def register(collective: Collective) -> None:
    """Add a collective; an `Algorithm` also becomes an allreduce algorithm.

    Raises:
        ValueError: If the name or the number is taken, or the number is out of range.
    """
    if not 0 <= collective.number <= MAX_NUMBER:
        raise ValueError(
            f"register: number of {collective.name!r} must be from 0 to {MAX_NUMBER}, got "
            f"{collective.number}"
        )
    COLLECTIVES.register(collective.name, collective.number, collective)
    if isinstance(collective, Algorithm):
        ALLREDUCES.register(collective.name, collective.number, collective)


def unregister(name: str) -> None:
    """Remove a collective, such as one that a test has registered."""
    COLLECTIVES.unregister(name)
    if name in ALLREDUCES:
        ALLREDUCES.unregister(name)


def call_code(collective: str, op: str) -> int:
    """Return the `call` byte of messages: the collective and the operation."""
    return COLLECTIVES[collective].number << 3 | OP_NAMES.index(op)


def call_name(code: int) -> str:
    """Return a `call` byte in words, for error messages."""
    name, op = COLLECTIVES.name(code >> 3), call_op(code)
    if name is None or op is None:
        return f"unknown call {code}"
    if name in ALLREDUCES:
        return f"allreduce ({op}) by {name}"
    return WORDS.get(name, f"{name} ({op})").format(op=op)


def reduces_vectors(code: int) -> bool:
    """Return whether a `call` byte is of an allreduce, or of the agreement before one."""
    return COLLECTIVES.name(code >> 3) in (AGREEMENT, *ALLREDUCES)


def call_op(code: int) -> str | None:
    """Return the operation of a `call` byte, or None if the byte is malformed."""
    return OP_NAMES[code & 7] if code & 7 < len(OP_NAMES) else None
