"""Names and rates of networks."""

import pytest

from sparcml.network.presets import PRESETS
from sparcml.network.rates import format_rate, parse_rate


@pytest.mark.parametrize(
    ("network", "rate"),
    [
        ("gige", 10**9),
        ("1gbit", 10**9),
        ("100mbit", 10**8),
        ("25gbit", 25 * 10**9),
        ("2.5gbit", 25 * 10**8),
        (" 40 Gbit/s ", 4 * 10**10),
        ("56Kbit", 56_000),
        ("10000bit", 10_000),
        ("1tbit", 10**12),
    ],
)
def test_rates_are_understood(network, rate):
    assert parse_rate(network) == rate


def test_known_names_are_rates_and_come_back():
    for name in PRESETS:
        assert parse_rate(format_rate(parse_rate(name))) == parse_rate(name)
    assert format_rate(25 * 10**8) == "2.5gbit"


@pytest.mark.parametrize("network", ["", "fast", "1", "gbit", "1gbyte", "nanbit"])
def test_an_unknown_network_lists_the_known(network):
    with pytest.raises(ValueError, match=r"unknown network .* one of gige, 10gbit"):
        parse_rate(network)


@pytest.mark.parametrize(
    "network", ["0gbit", "-1gbit", "0.1kbit", "5kbit", "2tbit", "9" * 400 + "bit"]
)
def test_impossible_rates_are_refused(network):
    with pytest.raises(ValueError, match=r"no link carries|between 10kbit and 1tbit"):
        parse_rate(network)


def test_latency_is_refused():
    with pytest.raises(ValueError, match="latency cannot be emulated"):
        parse_rate("1gbit,50us")
