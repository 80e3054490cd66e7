"""The check that tests leave no processes, children or descriptors behind."""

import os
import signal
import uuid
from collections.abc import Iterator

import pytest

from tests.process.children import alive_with, has_children, open_files


@pytest.fixture
def tag() -> Iterator[str]:
    """Mark a test's processes. After the test no such process may live, and no child or descriptor may be left."""
    name = uuid.uuid4().hex
    files = open_files()
    yield name
    left = alive_with(name)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    assert not has_children()
    assert open_files() == files
