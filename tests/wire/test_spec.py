"""The examples of docs/wire-format.md, byte by byte, both ways."""

import re
from pathlib import Path

import numpy as np
import pytest

import sparcml
from sparcml import quantize, wire
from sparcml.quantize import QUANTIZERS
from sparcml.wire.header import INDEX_FORMATS

PAGE = Path(__file__).parents[2] / "docs" / "wire-format.md"
EXAMPLE = re.compile(r"```python\n(.+?)\n```\n```hex\n(.+?)\n```", re.DOTALL)
EXAMPLES = EXAMPLE.findall(PAGE.read_text())
TAG = wire.Tag(call=3 << 3, sequence=7, round=1)


def unhex(dump):
    text = "".join(line[6:] for line in dump.splitlines())
    return np.frombuffer(bytes.fromhex(text), np.uint8)


def test_the_page_shows_every_format():
    shown = [wire.Header.read(unhex(dump)) for _, dump in EXAMPLES]
    assert {header.index_format for header in shown} == set(INDEX_FORMATS)
    formats = {f for quantizer in QUANTIZERS.values() for f in quantizer.wire_formats}
    assert {header.value_format for header in shown} == {0, *formats}


@pytest.mark.parametrize(("made", "dump"), EXAMPLES, ids=[made for made, _ in EXAMPLES])
def test_example(made, dump):
    found = eval(made, {"np": np, "Stream": sparcml.Stream, **vars(quantize)})
    stream, coder = found if isinstance(found, tuple) else (found, None)
    message, _ = wire.encode(stream, TAG, coder)
    assert bytes(message) == bytes(unhex(dump))
    message = unhex(dump)
    header, back = wire.verify(message), wire.decode(message)
    assert header.tag == TAG
    assert back.is_dense == stream.is_dense
    np.testing.assert_array_equal(back.indices, stream.indices)
    np.testing.assert_array_equal(back.values, stream.values)
