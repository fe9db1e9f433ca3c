"""Old names of modules that have moved: importable until the next release.

Pickled estimators and user code name them.
"""

from __future__ import annotations

import sys
import warnings
from importlib import import_module
from importlib.machinery import ModuleSpec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

MOVED = {
    "kernels.linear": "linear.loops",
    "network.emulate": "cli.launch.emulate",
    "network.models": "planning.models",
    "network.plan": "planning.plan",
    "network.stragglers": "network.simulator",
    "transport.stats": "observe.stats",
    "transport.trace": "observe.timeline",
}
PICKLED = {"kernels.linear", "network.stragglers"}  # loading these is no use of an old name


class MovedModules:
    """Finds a module by its old name, and fills it with the names of the new one."""

    def find_spec(
        self, name: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        """Return a specification if the module has moved."""
        del path, target
        package, _, module = name.partition(".")
        if package != __package__ or module not in MOVED:
            return None
        return ModuleSpec(name, self)  # type: ignore[arg-type]  # a loader by its methods

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create an empty module."""

    def exec_module(self, module: ModuleType) -> None:
        """Fill the module."""
        name = module.__name__.partition(".")[2]
        if name not in PICKLED:
            warnings.warn(
                f"{module.__name__} is {__package__}.{MOVED[name]} now; the old name will be "
                f"removed in the next release",
                DeprecationWarning,
                stacklevel=2,
            )
        new = import_module(f"{__package__}.{MOVED[name]}")
        vars(module).update({k: v for k, v in vars(new).items() if not k.startswith("__")})


def install() -> None:
    """Let Python find the moved modules."""
    if not any(isinstance(finder, MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(MovedModules())
