"""Numbers with units, and files that are replaced."""

import pytest

from sparcml import files, units


@pytest.mark.parametrize(
    ("parse", "text", "number"),
    [
        (units.parse_bandwidth, "1gbit", 1e9),
        (units.parse_bandwidth, " 2.5 Gbit/s ", 2.5e9),
        (units.parse_bandwidth, "1e3kbit", 1e6),
        (units.parse_bandwidth, "-1bit", -1),
        (units.parse_duration, "50us", 50e-6),
        (units.parse_duration, "2 ms", 2e-3),
        (units.parse_duration, "0s", 0),
        (units.parse_count, "25.6M", 25.6e6),
        (units.parse_count, "7B", 7e9),
        (units.parse_count, "1e3", 1000),
        (units.parse_size, "64K", 65536),
        (units.parse_size, "7", 7),
    ],
)
def test_parsing(parse, text, number):
    assert parse(text) == pytest.approx(number)


@pytest.mark.parametrize("parse", [units.parse_bandwidth, units.parse_duration])
@pytest.mark.parametrize("text", ["", "fast", "1", "1.2.3gbit", "1.2.3us", "1h", "nanbit"])
def test_text_that_is_not_a_number_with_a_unit(parse, text):
    with pytest.raises(ValueError, match="must be"):
        parse(text)


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5K", "K", "64Q"])
def test_text_that_is_not_a_size(text):
    with pytest.raises(ValueError, match="size must be"):
        units.parse_size(text)


def test_formatting():
    assert units.format_bandwidth(25 * 10**8) == "2.5gbit"
    assert units.format_bytes(999) == "999 B"
    assert units.format_bytes(2_500_000) == "2.5 MB"
    assert units.format_age(3 * 86400) == "3 days"
    assert units.format_age(59) == "59 seconds"


def test_a_file_is_replaced_once_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    with files.replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    with pytest.raises(RuntimeError):
        _fail_within(path)
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def _fail_within(path):
    with files.replacing(path) as file:
        file.write(b"broken")
        raise RuntimeError
