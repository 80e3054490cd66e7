"""The values of commands: outcomes, and how they are described."""

import signal

import pytest

from wharfinger.process.command import Ending, Outcome, Usage


def outcome(ending: Ending, returncode: int) -> Outcome:
    return Outcome(ending, returncode, b"", b"", Usage(0.0, 0.0, 0))


@pytest.mark.parametrize(
    ("ending", "returncode", "text"),
    [
        (Ending.EXITED, 0, "exit status 0"),
        (Ending.EXITED, 3, "exit status 3"),
        (Ending.EXITED, -signal.SIGSEGV, "killed by SIGSEGV"),
        (Ending.EXITED, -40, "killed by signal 40"),
        (Ending.DEADLINE, -signal.SIGTERM, "deadline passed (killed by SIGTERM)"),
        (Ending.DEADLINE, 143, "deadline passed (exit status 143)"),
        (Ending.OUTPUT_LIMIT, -signal.SIGKILL, "output limit passed (killed by SIGKILL)"),
    ],
)
def test_an_outcome_describes_itself(ending: Ending, returncode: int, text: str) -> None:
    assert outcome(ending, returncode).describe() == text


def test_only_an_exit_with_status_0_is_ok() -> None:
    assert outcome(Ending.EXITED, 0).ok
    assert not outcome(Ending.EXITED, 1).ok
    assert not outcome(Ending.DEADLINE, 0).ok
    assert not outcome(Ending.OUTPUT_LIMIT, 0).ok
