"""One kind to catch."""

import pytest

from wharfinger.debug.errors import DebugAnswerError, DebugError, DebugSocketError, NoDaemonError


@pytest.mark.parametrize("kind", [DebugSocketError, NoDaemonError, DebugAnswerError])
def test_a_command_catches_them_all(kind: type[DebugError]) -> None:
    assert issubclass(kind, DebugError)
