"""Arguments of local training: the settings of its method, and whether the optimizer is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..communicator.communicator import Communicator

if TYPE_CHECKING:
    from .. import local

BUFFERS = ("average", "local")


def build_settings(
    form: type[local.Method], sync_every: Any, method: Any, settings: dict[str, Any]
) -> local.Method:
    """Return the object of `sparcml.local`; raise a TypeError for settings it does not have."""
    given = {"sync_every": sync_every, "method": method}
    settings = {**{k: v for k, v in given.items() if v is not None}, **settings}
    known = set(form.__dataclass_fields__) & set(vars(form()))
    for name in settings.keys() - known:
        raise TypeError(
            f"{form.__name__}: {name} must be a setting of sparcml.local.{form.__name__}, which "
            f"has {', '.join(sorted(known))}"
        )
    return form(**settings)


def check_arguments(
    name: str, comm: Any, group: Any, buffers: Any, optimizer_state: Any
) -> None:
    """Raise an error unless these can be arguments of local training."""
    if comm is not None and not isinstance(comm, Communicator):
        raise TypeError(f"{name}: comm must be a Communicator, got {comm!r}")
    if comm is not None and group is not None:
        raise ValueError(f"{name}: group must be None if comm is given, got {group!r}")
    if buffers not in BUFFERS:
        raise ValueError(f"{name}: buffers must be {' or '.join(BUFFERS)}, got {buffers!r}")
    if optimizer_state not in BUFFERS:
        raise ValueError(
            f"{name}: optimizer_state must be {' or '.join(BUFFERS)}, got {optimizer_state!r}"
        )


def check_unused(name: str, optimizer: Any, users: tuple[type, ...]) -> None:
    """Raise an error if the optimizer has a hook of one of these classes."""
    for kind in ("pre", "post"):
        hooks = getattr(optimizer, f"_optimizer_step_{kind}_hooks", {}).values()
        if any(isinstance(getattr(hook, "__self__", None), users) for hook in hooks):
            raise RuntimeError(
                f"{name}: this optimizer is in use already; call close() of the earlier object"
            )
