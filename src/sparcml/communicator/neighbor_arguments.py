"""Arguments of collectives with neighbours: checks and conversions."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..collectives.neighbor_allreduce import Mixing
from ..quantize import Quantizer
from ..stream import Stream
from ..validation import as_integer
from .arguments import to_item

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from ..collectives.numbers import Number


class TopologyLike(Protocol):
    """What a neighbor_allreduce needs to know of a topology."""

    @property
    def name(self) -> str:
        """Name for error messages."""

    @property
    def size(self) -> int:
        """Number of ranks."""

    @property
    def period(self) -> int:
        """Number of steps after which the matrices repeat."""

    @property
    def fingerprint(self) -> int:
        """Hash of all matrices, of 64 bits, the same in every process."""

    def weights(self, rank: int, step: int = 0) -> tuple[float, Mapping[int, float]]:
        """Return the rank's own weight and those of its neighbours."""

    def receivers(self, rank: int, step: int = 0) -> Sequence[int]:
        """Return the ranks that receive from a rank, in the order in which it sends."""


def check_topology(function: str, topology: Any, step: Any, size: int) -> int:
    """Return the step within the period; raise unless the topology is for `size` ranks."""
    if not hasattr(topology, "weights") or not hasattr(topology, "fingerprint"):
        raise TypeError(
            f"{function}: topology must be one of sparcml.decentralized such as ring(n), got "
            f"{type(topology).__name__}"
        )
    if topology.size != size:
        raise ValueError(
            f"{function}: topology must be for {size} ranks, got {topology.name} for "
            f"{topology.size}; construct it with comm.size"
        )
    return as_integer(function, "step", step, 0) % int(topology.period)


def check_quantizer(function: str, quantize: Any) -> None:
    """Raise unless the argument is a quantizer or None."""
    if quantize is not None and not isinstance(quantize, Quantizer):
        raise TypeError(
            f"{function}: quantize must be a quantizer such as sparcml.Half(), got "
            f"{quantize!r}; select entries with a sparsifier and pass the stream"
        )


def check_floats(function: str, x: Stream) -> None:
    """Raise unless a vector has float values, whose weighted mean is defined."""
    if x.dtype.kind != "f":
        raise TypeError(
            f"{function}: x must have float values, got {x.dtype}; convert it with "
            f".astype(np.float64)"
        )


def check_ranks(
    function: str, parameter: str, ranks: Iterable[Any], own: int, size: int
) -> list[int]:
    """Return the ranks as a list; raise unless they are different and not this one."""
    checked = [as_integer(function, parameter, rank) for rank in ranks]
    for rank in checked:
        if not 0 <= rank < size or rank == own:
            raise ValueError(
                f"{function}: {parameter} must be ranks in [0, {size}) other than {own}, got "
                f"{rank}"
            )
    if len(set(checked)) < len(checked):
        raise ValueError(f"{function}: {parameter} must be different, got {checked}")
    return checked


class Outgoing(NamedTuple):
    """What a rank sends in a neighbor_exchange.

    Attributes:
        items: Stream or number by receiver; receivers of one object have the same item.
        single: The item, if there is one for all receivers.
        restore: Converts received streams to the type of the vectors.
    """

    items: dict[int, Stream | Number]
    single: Stream | Number | None
    restore: Callable[[Stream | Number], Any]

    @property
    def streams(self) -> list[Stream]:
        """The vectors, each once."""
        each = {id(item): item for item in (self.single, *self.items.values())}
        return [item for item in each.values() if isinstance(item, Stream)]

    @property
    def stream(self) -> Stream | None:
        """A stream with the shape of all vectors, if there is one."""
        return next(iter(self.streams), None)


def to_outgoing(function: str, x: Any, sends: Sequence[int]) -> Outgoing:
    """Return what is sent to each rank of `sends`: x, or its items if it is a dictionary."""
    if not isinstance(x, Mapping):
        item, restore = to_item(function, x)
        return Outgoing(dict.fromkeys(sends, item), item, restore)
    if x.keys() != set(sends):
        raise ValueError(
            f"{function}: x must have one vector for each rank of sends, {list(sends)}, got "
            f"those of {list(x)}"
        )
    converted: dict[int, tuple[Stream | Number, Callable[[Stream | Number], Any]]] = {}
    for vector in x.values():
        if id(vector) not in converted:
            converted[id(vector)] = to_item(function, vector)
    items = {peer: converted[id(x[peer])][0] for peer in sends}
    restores = [restore for _, restore in converted.values()]
    return Outgoing(items, None, restores[0] if restores else _to_array)


def _to_array(item: Stream | Number) -> Any:
    return item.to_dense() if isinstance(item, Stream) else item


def mixing_of(topology: TopologyLike, rank: int, step: int) -> Mixing:
    """Return a rank's part of a step, with a hash of the topology and the step."""
    own, weights = topology.weights(rank, step)
    tag = zlib.crc32(f"{topology.fingerprint} {step}".encode()) & 0xFF
    name = f"{topology.name} at step {step}" if topology.period > 1 else topology.name
    return Mixing(own, weights, topology.receivers(rank, step), tag, name)
