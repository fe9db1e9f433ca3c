"""The command line: one command a file."""

from sparcml.cli.app import main as main

__all__ = ["main"]
