"""How a program finds its ranks, or is told what is missing."""

import os
import socket
import subprocess
import sys

import pytest

import sparcml
from sparcml import startup

from . import listening
from .jobs import outcomes

pytestmark = pytest.mark.torch


def test_torch_is_missing(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setattr(startup, "find_spec", lambda name: None)
    with pytest.raises(sparcml.TransportError, match=r"pip install '\.\[torch\]'"):
        sparcml.world()


def test_nothing_to_meet_at():
    with pytest.raises(sparcml.TransportError, match="init_process_group first, or"):
        sparcml.from_group()


def test_a_group_without_torch_distributed():
    with pytest.raises(sparcml.TransportError, match="is not initialized"):
        sparcml.from_group(object())


def test_the_store_listens_at_its_address_only():
    assert outcomes(2, listening.body) == ["finished"] * 2
    assert outcomes(2, listening.body, MASTER_ADDR="localhost") == ["finished"] * 2


def test_a_port_in_use_is_named_without_a_wait():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        limits = {"SPARCML_START_TIMEOUT": "3600"}
        (said,) = outcomes(1, listening.body, MASTER_PORT=port, **limits)
    assert said == (
        f"TransportError: world: rank 0 cannot listen at 127.0.0.1:{port}: the port is in use; "
        "set MASTER_PORT to a free one"
    )


def test_a_port_of_another_program_is_named_within_the_limit():
    """It accepts connections and never answers, as a store waits for without limit."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        done = subprocess.run(
            [sys.executable, "-c", "import sparcml; sparcml.world()"],
            env={**os.environ, **place, "RANK": "1", "SPARCML_START_TIMEOUT": "2"},
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert f"127.0.0.1:{port} does not answer like rank 0 of this job" in done.stderr
    assert done.returncode == 1
