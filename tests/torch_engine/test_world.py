"""How a program finds its ranks, or is told what is missing."""

import pytest

import sparcml
from sparcml import startup

pytestmark = pytest.mark.torch


def test_torch_is_missing(monkeypatch):
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "x")
    monkeypatch.setattr(startup, "find_spec", lambda name: None)
    with pytest.raises(sparcml.TransportError, match=r"pip install sparcml\[torch\]"):
        sparcml.world()


def test_nothing_to_meet_at():
    with pytest.raises(sparcml.TransportError, match="init_process_group first, or"):
        sparcml.from_group()


def test_a_group_without_torch_distributed():
    with pytest.raises(sparcml.TransportError, match="is not initialized"):
        sparcml.from_group(object())
