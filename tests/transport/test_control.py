"""Who waits in another call, and who is only further on in the same order of calls."""

import pytest

from sparcml.transport import ThreadGroup, ThreadTransport
from sparcml.transport.control import INPUT


@pytest.mark.parametrize(
    ("theirs", "differs"),
    [
        ("ring #5", False),
        ("after ring #5", False),  # it has all it needs, and this rank not yet
        ("ring #6", False),
        ("after ring #4", False),
        ("sharded #5", True),
        ("after sharded #5", True),
    ],
)
def test_only_another_call_of_the_same_number_differs(theirs, differs):
    transport = ThreadTransport(ThreadGroup(2), 0, 1.0)
    transport.operation = "ring #5"
    transport.control.begin_wait(1, "receive from rank 1")
    transport.control.record_wait(1, (0, f"{theirs}, receive from rank 0{INPUT}"))
    found = transport.control.find_mismatch()
    assert (found is not None) == differs
    if found is not None:
        assert "rank 0 waits in ring #5, but rank 1 waits in sharded #5" in str(found)
