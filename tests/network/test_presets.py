"""Networks by name and by rate."""

import pytest

from sparcml.costs import Network
from sparcml.network import network
from sparcml.network.presets import PRESETS, link_bandwidth
from sparcml.units import format_bandwidth


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_network(name):
    found = network(name)
    assert 0 < found.seconds_per_byte < 1e-7
    assert 0 < found.overhead <= found.latency < 1e-3
    assert network(name.upper()) == found


@pytest.mark.parametrize(
    ("name", "bytes_per_second", "latency"),
    [
        ("1gbit", 125e6, 50e-6),
        ("100mbit", 12.5e6, 50e-6),
        ("2.5 Gbit/s", 312.5e6, 50e-6),
        ("1gbit,200us", 125e6, 200e-6),
        ("100gbit, 2µs", 12.5e9, 2e-6),
        ("1e3kbit,0s", 125e3, 0.0),
        ("gige", 125e6, 50e-6),
    ],
)
def test_any_rate_with_any_latency(name, bytes_per_second, latency):
    found = network(name)
    assert found.seconds_per_byte == pytest.approx(1 / bytes_per_second)
    assert found.latency == pytest.approx(latency)


def test_a_network_is_taken_as_it_is():
    mine = Network(latency=1.0)
    assert network(mine) is mine


@pytest.mark.parametrize("name", ["", "infiniband", "10", "gbit", "1gbyte", "1.2.3gbit"])
def test_unknown_names_list_the_known(name):
    with pytest.raises(
        ValueError, match=r"network: name must be .*gige.*aries.*1gbit,50us"
    ):
        network(name)


@pytest.mark.parametrize("name", ["0gbit", "-1gbit", "1bit", "1e9tbit", "1e999gbit"])
def test_impossible_rates_are_refused(name):
    with pytest.raises(ValueError, match="bandwidth must be from"):
        network(name)


@pytest.mark.parametrize("name", ["1gbit,fast", "1gbit,-1us", "1gbit,1h"])
def test_impossible_latencies_are_refused(name):
    with pytest.raises(ValueError, match="latency must be"):
        network(name)


@pytest.mark.parametrize(
    ("network", "bits"),
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
def test_emulated_bandwidths(network, bits):
    assert link_bandwidth(network) == bits


def test_presets_have_a_bandwidth():
    for name in PRESETS:
        bits = link_bandwidth(name)
        assert link_bandwidth(format_bandwidth(bits)) == bits


@pytest.mark.parametrize("network", ["", "fast", "1", "gbit", "1gbyte", "nanbit"])
def test_unknown_links_list_the_presets(network):
    with pytest.raises(ValueError, match="network: name must be one of gige, 10gbit"):
        link_bandwidth(network)


@pytest.mark.parametrize(
    "network", ["0gbit", "-1gbit", "0.1kbit", "5kbit", "2tbit", "9" * 400 + "bit"]
)
def test_impossible_links_are_refused(network):
    with pytest.raises(ValueError, match=r"bandwidth must be|10kbit to 1tbit"):
        link_bandwidth(network)


def test_latency_is_refused():
    with pytest.raises(ValueError, match="latency cannot be emulated"):
        link_bandwidth("1gbit,50us")
