"""The rule by which ranks wait, and the setting that replaces it."""

import pytest

from sparcml.transport.timeouts import (
    POLICIES,
    SETTING,
    available_processors,
    policy_name,
)


def test_ranks_with_a_processor_each_spin(monkeypatch):
    monkeypatch.delenv(SETTING, raising=False)
    assert policy_name(2, 2.0) == "spin"
    assert policy_name(1, 1.0) == "spin"
    assert policy_name(3, 2.0) == "yield"
    assert policy_name(2, 1.5) == "yield"  # a share of a processor, by a cgroup
    assert available_processors() > 0


def test_the_setting_replaces_the_rule(monkeypatch):
    for name in POLICIES:
        monkeypatch.setenv(SETTING, name)
        assert policy_name(1, 64.0) == name
    monkeypatch.setenv(SETTING, "sleep")
    with pytest.raises(
        ValueError, match=r"SPARCML_WAIT: value must be one of spin, yield, nap"
    ):
        policy_name(1, 1.0)


def test_no_policy_holds_a_processor_for_long():
    assert all(0 <= p.spin <= p.yield_ <= 2e-3 for p in POLICIES.values())
