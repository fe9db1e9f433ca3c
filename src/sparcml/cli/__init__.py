"""The command line: one command per file."""

import os
import sys
from importlib import import_module

__all__ = ["main"]

PLUGINS = "SPARCML_PLUGINS"  # modules to import first, separated by commas


def main() -> None:
    """Import the plug-ins, run the command line and exit with its code.

    Plug-ins come first because commands list the registered names in their help. Ranks that
    a command starts inherit the variable.
    """
    for name in filter(None, os.environ.get(PLUGINS, "").split(",")):
        try:
            import_module(name.strip())
        except ImportError as error:
            sys.exit(f"sparcml: {PLUGINS} must name modules that can be imported: {error}")
    from sparcml.cli import app

    app.main()
