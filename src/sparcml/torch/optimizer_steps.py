"""A context manager that works before and after each step of an optimizer, and counts them."""

from __future__ import annotations

import contextlib
import time
import warnings
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

from ..errors import SparcmlError
from .local_stats import LocalStats
from .step_hooks import register_step_hooks

if TYPE_CHECKING:
    from types import TracebackType

    import torch

    from ..communicator.communicator import Communicator


class OptimizerSteps(ABC):
    """Work of a rank around the steps of its optimizer, until the end of the block."""

    _comm: Communicator

    def _watch(self, optimizer: torch.optim.Optimizer) -> None:
        """Register the hooks, as the last part of the constructor."""
        self._stats = self._logged = LocalStats()
        self._sent_before = self._sent  # by the constructor
        self._entered_at: int | None = None
        self._hooks: list[Any] = register_step_hooks(
            optimizer, self, self._before_step, self._after_step
        )

    def __enter__(self) -> Self:
        self._check_open()
        if self._entered_at is not None:
            raise RuntimeError(
                f"{type(self).__name__}: with must not be nested, got an object that was entered "
                f"already; use one block"
            )
        self._entered_at = self.steps
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None and self._hooks:
                self._warn_without_steps()
                self.finish()
            elif error is not None and not (
                isinstance(error, SystemExit) and error.code in (None, 0)
            ):
                self._report(error)
        finally:
            self.close()

    @property
    @abstractmethod
    def steps(self) -> int:
        """Number of completed steps of the optimizer."""

    @abstractmethod
    def finish(self) -> None:
        """Give all ranks the same parameters. Collective."""

    @property
    def stats(self) -> LocalStats:
        """Steps, bytes and seconds of this rank since the start."""
        return self._stats.plus(bytes=self._sent - self._sent_before)

    def log(self, writer: Any, step: int | None = None) -> None:
        """Write the statistics of the steps since the last call as scalars.

        Args:
            writer: A torch.utils.tensorboard.SummaryWriter, or an object with `add_scalar`.
            step: Step number of the scalars. Default: the number of completed steps.
        """
        now = self.stats
        for name, value in now.since(self._logged).scalars().items():
            writer.add_scalar(
                f"sparcml/{name}", value, self.steps if step is None else step
            )
        self._logged = now

    def close(self) -> None:
        """Remove the hooks from the optimizer and close the connections."""
        if self._remove_hooks():
            with contextlib.suppress(SparcmlError):  # an exchange may be in flight
                self._comm.close()

    def _check_open(self) -> None:
        """Raise a RuntimeError after `close`."""
        if not self._hooks:
            raise RuntimeError(
                f"{type(self).__name__}: object must be open, got one that is closed; construct "
                f"another, which continues from state_dict()"
            )

    def _remove_hooks(self) -> bool:
        """Return whether there were any."""
        hooks, self._hooks = self._hooks, []
        for hook in hooks:
            hook.remove()
        return bool(hooks)

    def _report(self, error: BaseException) -> None:
        """Report an error that ends the block to all ranks, whose waits then raise it."""
        self._comm.abort(error)

    @abstractmethod
    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> Any:
        """Work before a step; the result is as that of a pre-hook."""

    @abstractmethod
    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Work after a step."""

    def _warn_without_steps(self) -> None:
        if self.steps == self._entered_at:
            warnings.warn(
                f"{type(self).__name__}: optimizer must make steps inside the block, got none; "
                f"pass the optimizer whose step() the loop calls",
                RuntimeWarning,
                stacklevel=3,
            )

    def _count(self, start: float, **amounts: int) -> None:
        self._stats = self._stats.plus(exposed=time.perf_counter() - start, **amounts)

    @property
    def _sent(self) -> int:
        """Bytes sent so far, also by exchanges in the background."""
        return self._comm.stats.bytes
