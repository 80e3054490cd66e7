"""What every test of this part must leave behind: nothing."""

import os
import signal
import uuid
from collections.abc import Iterator

import pytest

from tests.process.children import alive_with, has_children, open_files


@pytest.fixture
def tag() -> Iterator[str]:
    """Marks a test's processes. Afterwards none of them may be alive, no child unreaped, no descriptor open."""
    name = uuid.uuid4().hex
    files = open_files()
    yield name
    left = alive_with(name)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []
    assert not has_children()
    assert open_files() == files
