"""Entry point of the command line: runs a command and reports usage errors."""

import sys
from typing import Annotated

import typer

from sparcml import __version__
from sparcml.cli.lazy_commands import LazyCommands
from sparcml.errors import SparcmlError

RENAMED = {  # options of version 0.1
    "--rate": "--learning-rate",
    "--steps": "--schedule",
    "--warm-up": "--warmup-epochs",
    "--batch": "--batch-size",
    "--block": "--block-size",
    "--tolerance": "--tol",
    "--held-out": "--validation-fraction",
    "--keep": "--save",
    "--no-keep": "--no-save",
    "--sparse": "--sparse-epochs",
    "--dense": "--dense-epochs",
}

app = typer.Typer(
    name="sparcml",
    cls=LazyCommands,
    help="Sparse and quantized collectives for machine learning.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sparcml {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    show_version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    del show_version


def main() -> None:
    """Run the command line and exit with its code."""
    try:
        code = app(prog_name="sparcml", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except (SparcmlError, OSError) as error:
        code = _complain(str(error), 1)
    except Exception as error:
        # Usage errors have no public base class that every typer shares.
        if not hasattr(error, "format_message"):
            raise
        code = _complain(_usage(error), 2)
    sys.exit(code if isinstance(code, int) else 0)


def _usage(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    command = getattr(context, "command_path", "sparcml")
    option = getattr(error, "option_name", None)
    if option in RENAMED:
        return f"{command}: option {option} is {RENAMED[option]} since version 0.2"
    text = " ".join(error.format_message().split())  # type: ignore[attr-defined]
    text = text.removeprefix("Invalid value: ")
    text = text.removeprefix(
        f"{command.rpartition(' ')[2]}: "
    )  # a function of the same name
    return f"{command}: {text}" if text else f"{command}: see {command} --help"


def _complain(text: str, code: int) -> int:
    typer.echo(text, err=True)
    return code
