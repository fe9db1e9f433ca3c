"""Files that are replaced, and those that must not be."""

import os
from pathlib import Path

import pytest

from sparcml.files import check_writable, replacing


def test_a_file_is_replaced_when_it_is_complete(tmp_path):
    path = tmp_path / "model"
    path.write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), replacing(path):
        raise ZeroDivisionError
    assert path.read_bytes() == b"old"
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = Path(tmp_path, "pipe")
    os.mkfifo(path)
    check_writable(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with replacing(path) as file:
            file.write(b"text")
        assert os.read(reader, 10) == b"text"
    finally:
        os.close(reader)
    assert path.is_fifo()
    assert list(tmp_path.iterdir()) == [path]
