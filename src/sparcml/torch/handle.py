"""What compress gives back: state, statistics, and a change of method."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .checkpoint import consolidated, restored, saved

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from ..aggregate import Method
    from ..communicator import Communicator
    from .hook import Hook
    from .ledger import Ledger


class Handle:
    """A model's compression."""

    def __init__(
        self, comm: Communicator, ledger: Ledger, hook: Hook, names: Mapping[Tensor, str]
    ) -> None:
        self._comm, self._ledger, self._hook = comm, ledger, hook
        self._shapes = {n: tuple(p.shape) for p, n in names.items()}

    @property
    def method(self) -> Method:
        """What averages the gradients now."""
        return self._ledger.method

    def change(self, method: Method) -> None:
        """Go on with another method from the next step on; all ranks do the same.

        What the old one owes, the new one does.
        """
        self._hook.run(lambda: self._ledger.change(method, self._shapes))

    def state_dict(self, *, consolidate: bool = False) -> dict[str, Any]:
        """What this rank must remember, to be saved with `torch.save`.

        It loads with `weights_only=True`. Take it between steps, and save it before the next
        one, or copy it.

        Args:
            consolidate: One state for any number of ranks, the same on all of them:
                a collective call.
        """
        layout = self._hook.layout or self._hook.seen
        make = consolidated if consolidate else saved
        found: dict[str, Any] = self._hook.run(lambda: make(self._ledger, layout))
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that this rank, or all together, have saved.

        With the method it was saved with, training goes on bit for bit; another one takes over
        what is owed.

        Raises:
            ValueError: If it is another rank's, another number of ranks', or of another model.
        """
        comm, ledger = self._comm, self._ledger
        found = restored(state, comm, ledger.method, self._shapes)
        layout = [tuple(names) for names in state.get("layout", ())]

        def take_over() -> None:
            ledger.state, ledger.norm = found, float(state.get("norm", 0.0))

        self._hook.run(take_over)
        self._hook.layout = layout or None

    def close(self) -> None:
        """End the thread and the connections; the model cannot be trained on after it."""
        self._hook.close()
        self._comm.close()

    def __repr__(self) -> str:
        return f"Handle({self.method}, step={self._ledger.step}, ranks={self._comm.size})"
