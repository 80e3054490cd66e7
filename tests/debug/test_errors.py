"""One kind to catch."""

import pytest

from wharfinger.debug.errors import DebugAnswerError, DebugError, DebugSocketError, NoDaemonError


@pytest.mark.parametrize("kind", [DebugSocketError, NoDaemonError, DebugAnswerError])
def test_a_command_catches_them_all(kind: type[DebugError]) -> None:
    assert issubclass(kind, DebugError)


def test_a_daemon_that_cannot_listen_says_so_as_any_listener_does() -> None:
    error = DebugSocketError("debug socket x: taken")
    assert isinstance(error, OSError)
    assert str(error) == "debug socket x: taken"
