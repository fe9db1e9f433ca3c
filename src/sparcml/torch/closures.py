"""Closures of `optimizer.step(closure)`, which compute the gradients inside the step.

Work that needs the gradients must then run after the closure, and before the optimizer reads
them. Frameworks such as Lightning always pass a closure.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def after_gradients(
    args: Sequence[Any], kwargs: Mapping[str, Any], work: Callable[[], None]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Run work in a pre-hook of a step once the gradients are computed: now, or in the closure.

    Returns:
        The result of the pre-hook.
    """
    changed = after_closure(args, kwargs, work)
    if changed is None:
        work()
    return changed


def after_closure(
    args: Sequence[Any], kwargs: Mapping[str, Any], work: Callable[[], None]
) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
    """Return arguments of `optimizer.step` whose closure is followed by other work.

    Args:
        args: Arguments of the step; the first is the optimizer.
        kwargs: Arguments by name.
        work: Runs after every call of the closure.

    Returns:
        The arguments as a pre-hook of the step returns them; None without a closure.
    """
    closure = args[1] if len(args) > 1 else kwargs.get("closure")
    if closure is None:
        return None

    work = torch.compiler.disable(work)  # unlike the closure

    @wraps(closure)
    def both() -> Any:
        with torch.enable_grad():
            loss = closure()
        work()
        return loss

    if len(args) > 1:
        return (args[0], both, *args[2:]), dict(kwargs)
    return tuple(args), {**kwargs, "closure": both}
