"""The command line in this process: what a user's mistake needs no new interpreter for."""

import sys

import pytest

from sparcml.cli import main


def called(monkeypatch, capfd, *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of `sparcml ARGUMENTS`."""
    monkeypatch.setattr(sys, "argv", ["sparcml", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert isinstance(stop.value.code, int)
    return stop.value.code, *capfd.readouterr()
