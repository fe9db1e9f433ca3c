"""The optimizer inside wrappers, and hooks around its steps, which torch.compile does not trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

USER = "sparcml_user"  # attribute of a hook: the object that it belongs to
WRAPPED = ("optimizer", "base_optimizer")  # attributes of wrappers


def unwrap_optimizer(function: str, optimizer: Any) -> torch.optim.Optimizer:
    """Return the optimizer that wrappers such as Accelerate's contain.

    Its class tells which method suits. A ZeroRedundancyOptimizer is returned itself: only it
    has all parameters.

    Args:
        function: Name of the call, for error messages.
        optimizer: An optimizer, or a wrapper such as those of Accelerate, Lookahead and SAM.

    Raises:
        TypeError: If there is no optimizer of torch.
    """
    inside = _inside(optimizer)
    if not isinstance(inside, torch.optim.Optimizer):
        raise TypeError(
            f"{function}: optimizer must be a torch.optim.Optimizer, got "
            f"{type(inside).__name__}"
        )
    if not hasattr(inside, "_optimizer_step_pre_hooks"):
        raise TypeError(
            f"{function}: optimizer must have the hooks of a torch.optim.Optimizer, got "
            f"{type(inside).__name__}, which has none; pass the optimizer that it contains"
        )
    return inside


def innermost(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Return the part of a ZeroRedundancyOptimizer on this rank; others are returned themselves.

    Its class makes the updates, and it has the state of the parameters of this rank.
    """
    part = getattr(optimizer, "optim", None)
    return part if isinstance(part, torch.optim.Optimizer) else optimizer


def _inside(optimizer: Any) -> Any:
    """Return what is inside all wrappers."""
    seen = []
    while hasattr(optimizer, "param_groups"):
        seen.append(optimizer)
        attributes = (getattr(optimizer, name, None) for name in WRAPPED)
        found = [o for o in attributes if isinstance(o, torch.optim.Optimizer)]
        if not found or any(found[0] is known for known in seen):
            break
        optimizer = found[0]
    return optimizer


def register_step_hooks(
    optimizer: torch.optim.Optimizer,
    user: object,
    before: Callable[..., Any],
    after: Callable[..., Any],
) -> list[Any]:
    """Register methods of user as hooks, and return their handles.

    Wrappers call the step of what they contain, so that the hooks are registered there.
    Dynamo inlines hooks into a compiled function that calls `optimizer.step()`. Messages cannot be
    traced, so it must leave them out.
    """
    optimizer = _inside(optimizer)
    hooks = []
    for method in (before, after):
        hook: Any = torch.compiler.disable(method)
        setattr(hook, USER, user)
        hooks.append(hook)
    return [
        optimizer.register_step_pre_hook(hooks[0]),
        optimizer.register_step_post_hook(hooks[1]),
    ]


def users_of(optimizer: Any) -> list[object]:
    """Return the objects that have registered hooks."""
    optimizer = _inside(optimizer)
    hooks = [
        hook
        for kind in ("pre", "post")
        for hook in getattr(optimizer, f"_optimizer_step_{kind}_hooks", {}).values()
    ]
    return [getattr(hook, USER) for hook in hooks if hasattr(hook, USER)]
