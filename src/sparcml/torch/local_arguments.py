"""Arguments of local training: the settings of its method, and whether the optimizer is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..communicator.communicator import Communicator
from .grad_scaler import called_by_scaler
from .step_hooks import users_of

if TYPE_CHECKING:
    from .. import local

AVERAGE, LOCAL = "average", "local"
PLACES = (AVERAGE, LOCAL)  # of what is not exchanged


def build_settings(
    form: type[local.Method], sync_every: Any, method: Any, settings: dict[str, Any]
) -> local.Method:
    """Return the object of `sparcml.local`; raise a TypeError for settings it does not have."""
    given = {"sync_every": sync_every, "method": method}
    settings = {**{k: v for k, v in given.items() if v is not None}, **settings}
    known = set(form.__dataclass_fields__) & set(vars(form()))
    for name in settings.keys() - known:
        raise TypeError(
            f"{form.__name__}: {name} must be a setting of sparcml.local.{form.__name__}, got an "
            f"unknown name; use {', '.join(sorted(known))}"
        )
    return form(**settings)


def check_arguments(
    name: str, comm: Any, group: Any, buffers: Any, optimizer_state: Any
) -> None:
    """Raise an error unless these can be arguments of local training."""
    if comm is not None and not isinstance(comm, Communicator):
        raise TypeError(
            f"{name}: comm must be a Communicator, got {comm!r}; use sparcml.world()"
        )
    if comm is not None and group is not None:
        raise ValueError(
            f"{name}: group must be None if comm is given, got {group!r}; pass one of them"
        )
    for parameter, value in (("buffers", buffers), ("optimizer_state", optimizer_state)):
        if value not in PLACES:
            raise ValueError(
                f"{name}: {parameter} must be {' or '.join(PLACES)}, got {value!r}"
            )


def check_unused(name: str, optimizer: Any, users: tuple[type, ...]) -> None:
    """Raise an error if the optimizer has a hook of one of these classes."""
    if any(isinstance(user, users) for user in users_of(optimizer)):
        raise RuntimeError(
            f"{name}: optimizer must not be in use, got one that is in use already; call "
            f"close() of the earlier object"
        )


def check_scaler(name: str, ranks: int) -> None:
    """Raise an error if a GradScaler calls the step, and there are several ranks."""
    if ranks > 1 and called_by_scaler():
        raise RuntimeError(
            f"{name}: optimizer.step() must not be called by a GradScaler, got such a call; it "
            f"skips steps of single ranks, so use torch.autocast with bfloat16"
        )
