"""Names of a package that are imported on first use, so that importing the package is cheap."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_names(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package.

    `__dir__` lists these names and those in the `__all__` of the package, and nothing else that
    the package has imported.

    Args:
        package: Name of the package.
        names: Relative names of modules, and what to import from each, separated by spaces.
            A module of this package is also a name itself; it is listed if nothing is imported
            from it.
    """
    module_of = {name: module for module, text in names.items() for name in text.split()}
    modules = {module[1:] for module in names if module.rfind(".") == 0}

    def get(name: str) -> Any:
        if name in modules:
            return import_module(f".{name}", package)
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(module_of[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    def list_names() -> list[str]:
        eager = vars(sys.modules[package]).get("__all__", ())
        return sorted({*eager, *module_of, *(m for m in modules if not names[f".{m}"])})

    return get, list_names
