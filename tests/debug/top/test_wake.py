"""The pipe by which signals and answers wake the event loop of the live view."""

import os
import select
import signal

from wharfinger.debug.top.wake import ENDING, SIGNALS, open_wake


def is_readable(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def test_signals_are_written_into_the_pipe() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    with open_wake() as wake:
        assert not is_readable(wake.descriptor)
        for number in (signal.SIGTERM, signal.SIGWINCH, signal.SIGINT):
            signal.raise_signal(number)
        assert is_readable(wake.descriptor)
        assert wake.signals() == [signal.SIGTERM, signal.SIGWINCH, signal.SIGINT]
        assert wake.signals() == []
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert signal.SIGWINCH not in ENDING


def test_messages_wake_the_loop_without_a_signal() -> None:
    with open_wake() as wake:
        wake.ring()
        assert is_readable(wake.descriptor)
        assert wake.signals() == []


def test_a_full_or_closed_pipe_is_ignored() -> None:
    with open_wake() as wake:
        for _ in range(70_000):
            wake.ring()
        assert is_readable(wake.descriptor)
    wake.ring()


def test_the_previous_wakeup_pipe_is_restored() -> None:
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    earlier = signal.set_wakeup_fd(writer)
    try:
        with open_wake():
            pass
        assert signal.set_wakeup_fd(writer) == writer
    finally:
        signal.set_wakeup_fd(earlier)
        os.close(reader)
        os.close(writer)
