"""Jobs of a test that failed are ended here: they must not disturb the tests that follow."""

import pytest

from . import ranks


@pytest.fixture(autouse=True)
def _end_jobs():
    yield
    ranks.end_jobs()
