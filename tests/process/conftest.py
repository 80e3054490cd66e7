"""A fixture that checks that a test leaves no processes, children or descriptors behind."""

import os
import signal
import uuid
from collections.abc import Iterator

import pytest

from tests.process.children import alive_with, has_children, open_files


@pytest.fixture
def tag() -> Iterator[str]:
    """Yield a tag for the processes of a test. After the test, no process with the tag, no child and no descriptor may be
    left.
    """
    name = uuid.uuid4().hex
    files = open_files()
    yield name
    left = alive_with(name)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    assert not has_children()
    assert open_files() == files
