"""The common base class of the errors of `wharfinger.debug`."""

import pytest

from wharfinger.debug.errors import DebugAnswerError, DebugError, DebugSocketError, NoDaemonError


@pytest.mark.parametrize("kind", [DebugSocketError, NoDaemonError, DebugAnswerError])
def test_all_errors_are_debug_errors(kind: type[DebugError]) -> None:
    assert issubclass(kind, DebugError)


def test_a_debug_socket_error_is_an_os_error() -> None:
    error = DebugSocketError("debug socket x: taken")
    assert isinstance(error, OSError)
    assert str(error) == "debug socket x: taken"
