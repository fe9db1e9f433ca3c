"""Plug-ins by name: sparsifiers, quantizers, aggregation methods and collectives.

Each family keeps one `Registry` beside its base class. A plug-in declares its name, an explicit
number (quantizers: their value formats) and its capabilities in its own file and registers
itself there; the wire format, the command line, the benchmarks, the planner, the documentation
and the tests look it up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Mapping[str, T], Generic[T]):
    """Entries by name, in the order of their numbers.

    Numbers are explicit because order is behaviour: they are sent in message headers, and
    `auto` breaks ties in favour of the lowest.

    Args:
        family: Singular name of the family, for error messages.
    """

    def __init__(self, family: str) -> None:
        self.family = family
        self._entries: dict[str, T] = {}
        self._numbers: dict[int, str] = {}

    def register(self, name: str, number: int, entry: T) -> T:
        """Add an entry and return it.

        Raises:
            ValueError: If the name or the number is taken.
        """
        if self.holds(name, entry):
            self.unregister(name)
        if name in self._entries:
            raise ValueError(f"register: {self.family} {name!r} is registered already")
        if number in self._numbers:
            raise ValueError(
                f"register: number {number} of {self.family} {name!r} is taken by "
                f"{self._numbers[number]!r}; choose another"
            )
        self._numbers[number] = name
        order = [self._numbers[n] for n in sorted(self._numbers)]
        entries = {**self._entries, name: entry}
        self._entries = {name: entries[name] for name in order}
        return entry

    def holds(self, name: str, entry: T) -> bool:
        """Return whether the name has an entry that was defined in the same place.

        A notebook cell that runs again, or `@dataclass(slots=True)`, defines a class twice.
        """
        known = self._entries.get(name)
        if not isinstance(known, type) or not isinstance(entry, type):
            return False
        return (known.__module__, known.__qualname__) == (
            entry.__module__,
            entry.__qualname__,
        )

    def number(self, name: str) -> int:
        """Return the number of a name."""
        return next(n for n, known in self._numbers.items() if known == name)

    def name(self, number: int) -> str | None:
        """Return the name of a number, or None if no entry has it."""
        return self._numbers.get(number)

    def unregister(self, name: str) -> None:
        """Remove an entry, such as a plug-in of a test."""
        del self._numbers[self.number(name)], self._entries[name]

    def __getitem__(self, name: str) -> T:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return f"Registry({self.family}: {', '.join(self)})"


def short_repr(plug_in: Any) -> str:
    """Return `repr` without the fields of a dataclass that have their default value."""
    if not is_dataclass(plug_in):
        return repr(plug_in)
    changed = [
        (f.name, value)
        for f in fields(plug_in)
        if (value := getattr(plug_in, f.name)) != f.default or f.default is MISSING
    ]
    texts = ", ".join(f"{name}={short_repr(value)}" for name, value in changed)
    return f"{type(plug_in).__name__}({texts})"
