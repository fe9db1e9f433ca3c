"""The table of commands. A command is imported when it is run, not for the list of commands."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Entry:
    """Where a command is defined.

    Attributes:
        module: Its module in `sparcml.cli`, which has a function or an app of this name.
        summary: First paragraph of its help, for the list of commands.
        settings: Settings of its context.
    """

    module: str
    summary: str
    settings: Mapping[str, Any] | None = None


COMMANDS = {
    "run": Entry(
        "run",
        "Run a Python script on several ranks of this machine.",
        # Options after the script belong to the script.
        {"allow_interspersed_args": False},
    ),
    "demo": Entry(
        "demo.command",
        "Train a spam classifier on 4 ranks with sparse and dense allreduces, and compare.",
    ),
    "fit": Entry("fit", "Train a linear model on LIBSVM files, on one or many ranks."),
    "info": Entry("info", "Show versions, instruction sets, engines and settings."),
    "plan": Entry(
        "plan",
        "Estimate a training step with every method and collective, dense included.",
    ),
    "predict": Entry(
        "predict",
        "Write one prediction per line, and print the accuracy on the labels of the text.",
    ),
    "probe": Entry(
        "probe", "Measure the network between the ranks of a job, and their speed."
    ),
    "topology": Entry(
        "topology",
        "Compare topologies: spectral gap, degree, bytes per step and steps to consensus.",
    ),
    "bench": Entry("bench", "Measure collectives and check their results."),
}


class LazyCommands(TyperGroup):
    """A group that lists commands by their summaries, and imports the one to run."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, entry in COMMANDS.items():
            self.add_command(TyperCommand(name, help=entry.summary))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command itself, and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name is None else load(name), rest


def load(name: str) -> Any:
    """Import a command."""
    entry = COMMANDS[name]
    defined = getattr(import_module(f"sparcml.cli.{entry.module}"), name)
    if isinstance(defined, typer.Typer):
        return typer.main.get_command(defined)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    settings = None if entry.settings is None else dict(entry.settings)
    alone.command(name, context_settings=settings)(defined)
    return typer.main.get_command(alone)
