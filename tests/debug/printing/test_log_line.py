"""Lines of a package's log as text."""

from dataclasses import replace

from tests.debug.support.samples import HOSTILE, LOG
from wharfinger.debug.printing.log_line import log_line_text
from wharfinger.formats.terminal_text import is_safe


def test_a_log_line_has_time_level_and_message() -> None:
    assert log_line_text(LOG.lines[0]) == "2026-05-17T12:30:45.123456Z INFO    installing 1.2.3"


def test_control_characters_are_escaped() -> None:
    assert is_safe(log_line_text(replace(LOG.lines[0], level=HOSTILE, message=HOSTILE)))
