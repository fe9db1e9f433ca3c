"""Hooks before and after the steps of an optimizer, which torch.compile does not trace."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

USER = "sparcml_user"  # attribute of a hook: the object that it belongs to


def register_step_hooks(
    optimizer: torch.optim.Optimizer,
    user: object,
    before: Callable[..., Any],
    after: Callable[..., Any],
) -> list[Any]:
    """Register methods of user as hooks, and return their handles.

    Dynamo inlines hooks into a compiled function that calls `optimizer.step()`. Messages cannot be
    traced, so it must leave them out.
    """
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
    hooks = [
        hook
        for kind in ("pre", "post")
        for hook in getattr(optimizer, f"_optimizer_step_{kind}_hooks", {}).values()
    ]
    return [getattr(hook, USER) for hook in hooks if hasattr(hook, USER)]
