"""Reading a trace, and what every trace must be."""

import json

PHASES = {"encode", "send", "wait", "decode", "add"}


def events_of(path, kind="X"):
    return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == kind]


def total(events, name, rank):
    return sum(
        e["args"].get("bytes", 0) for e in events if (e["name"], e["pid"]) == (name, rank)
    )


def check(path, ranks):
    """What every trace must be, wherever it was taken."""
    events = events_of(path)
    for rank in range(ranks):
        mine = [e for e in events if e["pid"] == rank]
        assert {e["name"] for e in mine} >= PHASES
        threads = {e["tid"] for e in mine}
        for tid in threads:
            check_nesting([e for e in mine if e["tid"] == tid])
    names = {(e["name"], e["args"].get("name")) for e in events_of(path, "M")}
    assert names >= {("process_name", f"rank {rank}") for rank in range(ranks)}
    return events


def check_nesting(events):
    """Every phase lies within the event of its call; a nanosecond is lost by rounding."""
    calls = {e["args"]["call"]: e for e in events if e["name"] not in PHASES}
    for event in events:
        call = calls[event["args"]["call"]]
        assert event["ts"] >= call["ts"] - 0.002
        assert event["ts"] + event["dur"] <= call["ts"] + call["dur"] + 0.002
