import logging

import pytest
import trio
from trio.testing import MockClock

from wharfinger.runtime.daemon.repeated_warning import RepeatedWarning


async def test_a_warning_is_logged_once_and_then_rarely(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    said = RepeatedWarning(logging.getLogger("wharfinger.test"), 60)
    for _ in range(100):
        said.warn("no answer")
        await trio.sleep(1)
    assert caplog.messages == ["no answer"] * 2
    said.warn("refused")
    assert caplog.messages[-1] == "refused"
    assert said.clear()
    assert not said.clear()
    said.warn("refused")
    assert caplog.messages[-2:] == ["refused"] * 2
