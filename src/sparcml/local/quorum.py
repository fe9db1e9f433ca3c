"""Meetings of workers in a store: who takes part in a round, and whether it counts.

A group of gloo or MPI never changes its size. So workers agree before each exchange, in a store of
torch.distributed that outlives them, on who has arrived, and open a new group if that has changed.

1. A worker that ends its round registers under the number of the next meeting.
2. If all workers of the last round are there, or `grace` seconds have passed since there were at
   least `minimum`, one of them proposes those that have arrived. The first proposal counts.
3. The members exchange. Each then reports success, or proposes to repeat the round. It counts only
   if all of them succeeded: nobody applies a result that another one lacks.

A worker that is dead misses the next meeting and is dropped. One that is late finds the decision
without it, and comes to the next meeting, like one that is new. Only workers of the last round
propose, so late ones never form a group of their own. The store is a single point of failure.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from ..errors import TransportError
from ..validation import as_integer, as_seconds

PAUSE = 0.02  # seconds between two looks into the store
LATEST = "latest"  # number and members of the last meeting that counted
JOINING = -1  # completed rounds of a worker without the shared model


@dataclass(frozen=True)
class Meeting:
    """The members of a round.

    Attributes:
        number: Number of the meeting, from 1.
        rounds: Completed rounds of each member, by its number, ascending.
    """

    number: int
    rounds: dict[int, int]

    @property
    def members(self) -> tuple[int, ...]:
        """Numbers of the members."""
        return tuple(self.rounds)

    @property
    def newest(self) -> int:
        """Completed rounds of the members that are up to date."""
        return max(self.rounds.values())


class Quorum:
    """Decides with the other workers who takes part in a round.

    Args:
        store: A torch.distributed store that all workers reach, such as a TCPStore.
        member: Number of this worker; no two have the same.
        workers: Number of workers that start together; the first meeting waits for them.
        minimum: Workers that a round needs, at most `workers`.
        grace: Seconds to wait for the others once there are `minimum`.
        timeout: Seconds to wait for `minimum` workers; it must exceed the time of a round.
        name: Name of the training. Trainings that share a store must have different names.

    Attributes:
        store: The part of the store that belongs to this training.
    """

    def __init__(
        self,
        store: Any,
        member: int,
        workers: int,
        minimum: int = 1,
        grace: float = 10.0,
        timeout: float = 1800.0,
        name: str = "training",
    ) -> None:
        from torch.distributed import PrefixStore

        if not name:
            raise ValueError(f"Quorum: name must not be empty, got {name!r}")
        self.store = PrefixStore(f"sparcml/quorum/{name}", store)
        self.member = as_integer("Quorum", "member", member, minimum=0)
        self.workers = as_integer("Quorum", "workers", workers, minimum=1)
        self.minimum = as_integer("Quorum", "minimum", minimum, minimum=1)
        if self.minimum > self.workers:
            raise ValueError(
                f"Quorum: minimum must be at most the number of workers, {self.workers}, got "
                f"{self.minimum}; start more workers or lower minimum"
            )
        self.grace = as_seconds("Quorum", "grace", grace)
        self.timeout = as_seconds("Quorum", "timeout", timeout)
        self._number = 0

    def meet(self, rounds: int) -> Meeting:
        """Return the next meeting that decides for this worker.

        Args:
            rounds: Completed rounds of this worker; `JOINING` if it has none.

        Raises:
            TransportError: If there are too few workers for `timeout` seconds.
        """
        if not self._number:
            self._number, _ = self._latest()
            self.store.set(self._ended(self.member), "")  # by an earlier process
        while True:
            self._number += 1
            slot, decided = self._decide(self._number, rounds)
            # Another slot is that of an earlier process of this worker.
            if decided.get(str(self.member), (0, 0))[1] == slot:
                pairs = sorted((int(m), r) for m, (r, _) in decided.items())
                return Meeting(self._number, dict(pairs))
            # else too late for this one

    def leave(self) -> None:
        """Report that this worker comes to no more meetings."""
        self.store.set(self._ended(self.member), "yes")

    def commit(self, meeting: Meeting, succeeded: bool) -> bool:
        """Return whether the round counts, which is the same for all members.

        Args:
            meeting: The meeting.
            succeeded: Whether this worker has the result of the exchange.
        """
        key = f"{meeting.number}/commit"
        if succeeded:
            self.store.add(f"{meeting.number}/succeeded", 1)
        end = time.monotonic() + self.grace
        while not (known := self._get(key)):
            done = self.store.add(f"{meeting.number}/succeeded", 0) == len(meeting.rounds)
            if done or not succeeded or time.monotonic() > end:
                known = self._propose(key, "yes" if done else "no")
                break
            time.sleep(PAUSE)
        if known == "yes":
            self._advance(meeting)
        return known == "yes"

    def _advance(self, meeting: Meeting) -> None:
        """Make a meeting the last one that counted, unless a later one has counted.

        A worker that is delayed after its meeting may come here when the others have had the next
        one without it. With its own meeting as the last one, it would form a group of its own.
        """
        own, known = json.dumps([meeting.number, meeting.members]), self._get(LATEST)
        while known != own and (not known or json.loads(known)[0] < meeting.number):
            known = self.store.compare_set(LATEST, known, own).decode()

    def refuse(self, meeting: Meeting, text: str) -> None:
        """Report to all members that their round must not be repeated, and why."""
        self._propose(f"{meeting.number}/refusal", text)

    def refusal(self, meeting: Meeting) -> str:
        """Return why the round must not be repeated; empty if it may."""
        return self._get(f"{meeting.number}/refusal")

    def _decide(self, number: int, rounds: int) -> tuple[int, dict[str, tuple[int, int]]]:
        """Register for a meeting, and wait until its members are decided.

        Returns:
            The slot of this worker, and rounds and slot of each member.
        """
        slot = self.store.add(f"{number}/count", 1)
        self.store.set(f"{number}/slot/{slot}", json.dumps([self.member, rounds]))
        arrived: dict[str, tuple[int, int]] = {}
        start, enough = time.monotonic(), None
        while not (text := self._get(f"{number}/members")):
            now = time.monotonic()
            arrived |= self._arrivals(number, len(arrived))
            _, current = self._latest()
            if not current or self.member in current:
                if len(arrived) >= self.minimum and enough is None:
                    enough = now
                complete = (
                    all(str(m) in arrived for m in current)
                    if current
                    else len(arrived) >= self.workers
                )
                late = enough is not None and now - enough > self.grace
                if enough is not None and (complete or late):
                    text = self._propose(f"{number}/members", json.dumps(arrived))
                    break
            self._check_ended(current, arrived)
            if now - start > self.timeout:
                raise TransportError(
                    f"Quorum: worker {self.member} waited {self.timeout:g} s for a round of at "
                    f"least {self.minimum} workers, got {', '.join(sorted(arrived))}; start the "
                    f"missing ones again, or set timeout above the time of a round"
                )
            time.sleep(PAUSE)
        members: dict[str, tuple[int, int]] = json.loads(text)
        return slot, members

    def _check_ended(self, current: list[int], arrived: dict[str, tuple[int, int]]) -> None:
        """Raise if the workers of the last round have ended, and there are too few others."""
        others = [m for m in current if m != self.member]
        if not others or not all(self._get(self._ended(m)) for m in others):
            return
        if self.member not in current or len(arrived) < self.minimum:
            raise TransportError(
                f"Quorum: worker {self.member} came too late, because all other workers of the "
                f"last round ({', '.join(map(str, others))}) have ended; its change since its last "
                f"round was not exchanged. Let all workers make the same rounds, or raise grace"
            )

    @staticmethod
    def _ended(member: int) -> str:
        return f"ended/{member}"

    def _latest(self) -> tuple[int, list[int]]:
        """Return number and members of the last meeting that counted; 0 and none at first."""
        number, members = json.loads(self._get(LATEST) or "[0, []]")
        return number, members

    def _arrivals(self, number: int, known: int) -> dict[str, tuple[int, int]]:
        """Return workers that have registered after the first `known` ones."""
        found = {}
        for slot in range(known + 1, self.store.add(f"{number}/count", 0) + 1):
            text = self._get(f"{number}/slot/{slot}")
            if not text:  # it has counted and not yet written
                break
            member, rounds = json.loads(text)
            found[str(member)] = rounds, slot
        return found

    def _get(self, key: str) -> str:
        """Return the value of a key; empty if there is none."""
        return self.store.get(key).decode() if self.store.check([key]) else ""

    def _propose(self, key: str, value: str) -> str:
        """Set a key unless it is set, and return its value."""
        return str(self.store.compare_set(key, "", value).decode())
