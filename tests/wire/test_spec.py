"""The examples of docs/wire-format.md, byte by byte, both ways."""

import re
from pathlib import Path

import numpy as np
import pytest

from sparcml import Stream, wire
from sparcml.wire import indices

PAGE = Path(__file__).parents[2] / "docs" / "wire-format.md"
EXAMPLE = re.compile(r"```python\n(.+?)\n```\n```hex\n(.+?)\n```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text())
TAG = wire.Tag(call=3 << 3, sequence=7, round=1)


def unhex(dump):
    text = "".join(line[6:] for line in dump.splitlines())
    return np.frombuffer(bytes.fromhex(text), np.uint8)


def test_the_page_shows_every_index_format():
    shown = {wire.Header.read(unhex(dump)).index_format for _, dump in EXAMPLES}
    assert shown == set(indices.NAMES)


@pytest.mark.parametrize(("made", "dump"), EXAMPLES, ids=[made for made, _ in EXAMPLES])
def test_example(made, dump):
    stream = eval(made, {"Stream": Stream, "np": np})
    message, _ = wire.encode(stream, TAG)
    assert bytes(message) == bytes(unhex(dump))
    message = unhex(dump)
    header, back = wire.verify(message), wire.decode(message)
    assert header.tag == TAG
    assert back.is_dense == stream.is_dense
    np.testing.assert_array_equal(back.indices, stream.indices)
    np.testing.assert_array_equal(back.values, stream.values)
