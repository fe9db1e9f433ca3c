"""What compress and wrap give back: state, statistics, and a change of method."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from .checkpoint import consolidated, restored, saved

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from torch import Tensor

    from ..aggregate import Method
    from .buckets import Layout
    from .reducer import GradientReducer
    from .stats import Stats


class Handle(ABC):
    """A model's compression.

    Args:
        reducer: What averages its gradients.
        names: Of its parameters.
    """

    def __init__(self, reducer: GradientReducer, names: Mapping[Tensor, str]) -> None:
        self._reducer = reducer
        self._logged: Stats | None = None
        self._shapes = {n: tuple(p.shape) for p, n in names.items()}

    @property
    def method(self) -> Method:
        """What averages the gradients now."""
        return self._reducer.method

    @property
    def rank(self) -> int:
        """This rank's number."""
        return self._reducer.comm.rank

    @property
    def steps(self) -> int:
        """How many steps were made."""
        return self._reducer.step

    def change(self, method: Method) -> None:
        """Go on with another method from the next step on; all ranks do the same.

        What the old one owes, the new one does.
        """
        self._between_steps(lambda: self._reducer.change(method, self._shapes))

    def state_dict(self, *, consolidate: bool = False) -> dict[str, Any]:
        """What this rank must remember, to be saved with `torch.save` after a step.

        It consists of tensors, numbers and names, so it loads with `weights_only=True`.
        Later steps do not change it.

        Args:
            consolidate: One state for any number of ranks, the same on all of them:
                a collective call.
        """
        make, layout = consolidated if consolidate else saved, self._get_layout()
        found: dict[str, Any] = self._between_steps(
            lambda: make(self._reducer, layout, self._shapes)
        )
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state that this rank, or all together, have saved.

        With the method it was saved with, training goes on bit for bit; another one takes over
        what is owed.

        Raises:
            ValueError: If it is another rank's, another number of ranks', or of another model.
        """
        reducer = self._reducer
        found = restored(state, reducer.comm, reducer.method, self._shapes)

        def take_over() -> None:
            reducer.state, reducer.norm = found, float(state["norm"])

        self._between_steps(take_over)
        self._set_layout([tuple(names) for names in state["layout"]])

    @property
    @abstractmethod
    def stats(self) -> Stats:
        """Bytes, seconds and norms of this rank since the start."""

    def log(self, writer: Any, step: int | None = None) -> None:
        """Add what the steps since the last call have cost, as scalars.

        Args:
            writer: A torch.utils.tensorboard.SummaryWriter, or anything with `add_scalar`.
            step: The number to log them at; that of steps made by default.
        """
        now = self.stats
        for name, value in now.since(self._logged).scalars().items():
            writer.add_scalar(
                f"sparcml/{name}", value, self.steps if step is None else step
            )
        self._logged = now

    @abstractmethod
    def explain(self) -> str:
        """What is done with the gradients, and what might be better."""

    def close(self) -> None:
        """End what works for it, and the connections; there is no step after it."""
        self._reducer.comm.close()

    def __repr__(self) -> str:
        reducer = self._reducer
        return f"Handle({self.method}, step={reducer.step}, ranks={reducer.comm.size})"

    @abstractmethod
    def _between_steps(self, work: Callable[[], Any]) -> Any:
        """Do it where the communicator is free."""

    @abstractmethod
    def _get_layout(self) -> Layout:
        """Which gradients are summed together."""

    @abstractmethod
    def _set_layout(self, layout: Layout) -> None:
        """Sum these together from here on."""
