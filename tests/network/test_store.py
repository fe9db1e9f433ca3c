"""Kept measurements: written, found again, overridden; broken ones never fail a job."""

import json
import socket
import time
from dataclasses import replace
from typing import Any

import pytest

import sparcml
from sparcml import files
from sparcml.cli import probe as probe_command
from sparcml.costs import ONE_MACHINE, Calibration, Network
from sparcml.network import store
from sparcml.network.store import Measurement, from_json
from sparcml.planning.models import of_size
from sparcml.planning.plan import plan

COST: dict[str, Any] = {"latency": 1e-4, "overhead": 2e-5, "seconds_per_byte": 1e-8}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv(store.VARIABLE, raising=False)
    return tmp_path / "sparcml"


def measurement(hosts=("a", "b"), engine="mpi", **costs):
    return Measurement(
        Network(**(COST | costs)),
        {"latency": 1e-6},
        0.05,
        {"latency": 5e-5, "seconds_per_byte": 9e-9, "misfit": 0.01},
        engine,
        tuple(hosts),
        4,
        time.time() - 3600,
    )


def this_machine(**costs):
    return measurement([socket.gethostname()], "threads", **costs)


def test_what_is_kept_is_found_again_with_its_age(folder):
    found = store.save(measurement())
    assert found.parent == folder
    back = store.load("mpi", ("a", "b"))
    assert back is not None
    assert back == from_json(back.to_json())
    assert back.network == measurement().network
    assert 3600 <= back.age < 3700
    assert back.model().source.startswith("measured 20")
    assert [file.name for file in folder.iterdir()] == [found.name]


def test_each_set_of_machines_and_engine_has_its_own():
    store.save(measurement())
    store.save(measurement(latency=5e-4))  # newer
    for engine, hosts in (("torch", ("a", "b")), ("mpi", ("a",)), ("mpi", ("a", "b", "c"))):
        assert store.load(engine, hosts) is None
    back = store.load("mpi", ("a", "b"))
    assert back is not None
    assert back.network.latency == 5e-4


def test_everything_kept_is_listed_the_latest_first(folder):
    assert store.load_all() == []
    store.save(replace(measurement(), measured=1.0))
    store.save(measurement(engine="torch"))
    (folder / "network-mpi-broken.json").write_text("{")
    assert [m.engine for m in store.load_all()] == ["torch", "mpi"]


def test_a_relative_cache_home_is_ignored(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    assert files.cache_folder().parts[-2:] == (".cache", "sparcml")
    assert files.cache_folder().is_absolute()


def test_without_a_home_nothing_is_kept(monkeypatch, capsys):
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "~")  # as where the system knows none
    with pytest.raises(FileNotFoundError, match="no home"):
        files.cache_folder()
    assert store.load_all() == []
    with sparcml.world() as comm:
        assert comm.network == ONE_MACHINE
    assert capsys.readouterr().err == ""


def test_a_world_uses_what_is_kept():
    with sparcml.world() as comm:
        assert comm.network == ONE_MACHINE
        assert comm.network.source == "assumed"
    store.save(this_machine())
    with sparcml.world() as comm:
        assert comm.network == Network(**COST)
        assert comm.duplicate().network == comm.network
        assert "4 ranks on threads" in comm.network.source


def broken():
    good = json.loads(this_machine().to_json())
    yield "no json", "{"
    yield "a list", "[]"
    yield "deep", "[" * 100_000
    yield "another version", json.dumps(good | {"sparcml network": 4})
    yield "nothing in it", json.dumps({"sparcml network": 3})
    yield "no hosts", json.dumps(good | {"hosts": None})
    yield (
        "negative",
        json.dumps(good | {"network": good["network"] | {"seconds_per_byte": -1}}),
    )
    yield (
        "not a number",
        json.dumps(good | {"network": good["network"] | {"seconds_per_byte": "x"}}),
    )
    yield (
        "nan",
        json.dumps(
            good | {"network": good["network"] | {"seconds_per_byte": float("nan")}}
        ),
    )
    yield "no ranks", json.dumps(good | {"ranks": -4})
    yield "hosts are text", json.dumps(good | {"hosts": "vm"})
    for row in ([], ["ring"], [["ring"], 1, 1, 1, 1], ["ring", 0, 1, 1, -1], 5):
        tuned = good["network"] | {"calibration": [row]}
        yield f"tuned {row}", json.dumps(good | {"network": tuned})
    yield "no time", json.dumps(good | {"measured": "yesterday"})
    yield "other machines", json.dumps(good | {"hosts": ["elsewhere"]})
    yield "not text", "\udcff\udcfe"


@pytest.mark.parametrize(("what", "text"), [*broken()], ids=lambda value: value[:15])
def test_a_broken_file_never_fails_a_job(what, text, capsys):
    path = store.save(this_machine())
    path.write_bytes(text.encode(errors="surrogateescape"))
    with sparcml.world() as comm:
        assert comm.network == ONE_MACHINE
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert str(path) in err
    assert "sparcml probe" in err


def test_a_folder_in_its_place_neither(capsys):
    path = store.save(this_machine())
    path.unlink()
    path.mkdir()
    with sparcml.world() as comm:
        assert comm.network == ONE_MACHINE
    assert capsys.readouterr().err.count("\n") == 1


def test_the_environment_overrides(monkeypatch, tmp_path):
    store.save(this_machine())
    other = tmp_path / "other"
    other.write_text(measurement(latency=7e-4).to_json())
    cases = {
        "1gbit": sparcml.network.network("1gbit"),
        "none": ONE_MACHINE,
        " NONE ": ONE_MACHINE,
        str(other): Network(**(COST | {"latency": 7e-4})),
        "": Network(**COST),
    }
    for value, want in cases.items():
        monkeypatch.setenv(store.VARIABLE, value)
        with sparcml.world() as comm:
            assert comm.network == want, value


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("fast", ["got 'fast'", "gige", "a file", "none"]),
        ("/nowhere/at/all", ["No such file", "sparcml probe --json", "none"]),
        ("nowhere.json", ["No such file", "sparcml probe --json", "none"]),
    ],
)
def test_a_wrong_name_is_an_error_that_says_what_to_do(value, words, monkeypatch):
    monkeypatch.setenv(store.VARIABLE, value)
    with pytest.raises(ValueError, match=store.VARIABLE) as error:
        sparcml.world()
    for word in words:
        assert word in str(error.value)


def test_weights_hold_for_as_many_ranks_only():
    tuned = (Calibration("ring", 1e-3, 1.0, 2.0, 3.0),)
    found = measurement()
    found = replace(found, network=replace(found.network, calibration=tuned, burst=100.0))
    back = from_json(found.to_json())
    assert back == found
    assert back.model(found.ranks).calibration == back.model().calibration == tuned
    other = back.model(found.ranks + 1)
    assert (other.calibration, other.burst) == ((), 0.0)
    assert f"not calibrated for {found.ranks + 1}" in other.source
    assert other == replace(found.network, calibration=(), burst=0.0)


def test_a_quick_probe_does_not_replace_a_whole_one(capsys):
    whole = replace(this_machine(), allreduce_misfits={"ring": 0.1})
    path = store.save(whole)
    before = path.read_text()
    probe_command._report(this_machine(), as_json=True, save=None)
    assert "not saved: the saved measurement includes allreduces" in capsys.readouterr().err
    assert path.read_text() == before
    probe_command._report(
        replace(whole, allreduce_misfits={"ring": 0.9}), as_json=True, save=None
    )
    assert "times differ by 90%" in capsys.readouterr().err
    assert path.read_text() == before
    probe_command._report(this_machine(), as_json=True, save=True)
    assert path.read_text() != before


def test_a_plan_takes_what_was_measured(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(measurement(seconds_per_byte=1e-7).to_json())
    found = plan(of_size("10M"), 8, str(path), 0.1, methods=[sparcml.Dense()])
    assert found.network.seconds_per_byte == 1e-7
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        plan(of_size("10M"), 8, str(tmp_path / "no.json"), 0.1, methods=[sparcml.Dense()])
