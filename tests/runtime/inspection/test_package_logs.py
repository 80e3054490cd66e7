"""The stored log lines: they are stored by package, without secrets, and within limits."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from wharfinger.queue.lane import acting_for
from wharfinger.runtime.inspection.package_logs import (
    CUT,
    MAX_LINE_CHARS,
    MAX_LINES,
    MAX_PACKAGE_CHARS,
    PackageLogs,
    open_package_logs,
)

SECRET = "hunter2-planted"
log = logging.getLogger("wharfinger.of.a.test")


@contextmanager
def kept(max_chars: int = 1_000_000) -> Iterator[PackageLogs]:
    logs = PackageLogs(lambda name: (SECRET,) if name == "a" else (), "run", max_chars)
    root, level = logging.getLogger(), log.level
    root.addHandler(logs)
    log.setLevel(logging.DEBUG)
    try:
        yield logs
    finally:
        log.setLevel(level)
        root.removeHandler(logs)


def messages(logs: PackageLogs, package: str, after: int = 0) -> list[str]:
    found = logs.of(package, after)
    return [line.message for line in found.lines] if found is not None else []


def test_lines_are_not_read_while_another_thread_logs() -> None:
    """Adding a line to the deque of lines while a reader iterates over it would raise an error."""
    with kept() as logs:
        with acting_for("a"):
            log.info("hello")
        found: list[list[str]] = []
        reader = threading.Thread(target=lambda: found.append(messages(logs, "a")))
        logs.acquire()  # logging does this around `emit`
        try:
            reader.start()
            reader.join(0.1)
            assert found == []
        finally:
            logs.release()
        reader.join()
        assert found == [["hello"]]


def test_log_lines_are_stored_by_package() -> None:
    with kept() as logs:
        log.info("about no package")
        with acting_for("a"):
            log.info("hello %s", "there")
            log.warning("hook: it runs", extra={"fields": {"hook": "hooks/a.sh", "binding": "x", "proxyJsonLog": True}})
            logging.getLogger("other.library").warning("not ours")
        with acting_for("b"):
            log.debug("quiet")
        assert messages(logs, "a") == ["hello there", 'hook: it runs {"binding":"x"}']
        found = logs.of("a")
        assert found is not None
        assert [(line.number, line.level, line.hook) for line in found.lines] == [
            (1, "info", ""),
            (2, "warning", "hooks/a.sh"),
        ]
        assert messages(logs, "a", after=1) == ['hook: it runs {"binding":"x"}']
        assert messages(logs, "b") == ["quiet"]
        assert logs.of("c") is None
        assert logs.empty("c").run == found.run == "run"


def test_a_line_is_redacted_before_it_is_stored() -> None:
    with kept() as logs, acting_for("a"):
        log.info("cannot log in with %s", SECRET)
        log.info("password=opensesame", extra={"fields": {"note": SECRET}})
        try:
            raise ValueError(SECRET)
        except ValueError:
            log.exception("failed")
        log.info("%s%s", "x" * (MAX_LINE_CHARS - 4), SECRET)
        text = "\n".join(messages(logs, "a"))
    assert SECRET not in text
    assert "opensesame" not in text
    assert "failed (ValueError: ***)" in text
    assert text.endswith((CUT, "***"))
    assert "hunter2" not in text


def test_lines_of_one_package_are_bounded() -> None:
    with kept(100_000_000) as logs, acting_for("a"):
        for number in range(MAX_LINES + 5):
            log.info("%d", number)
        found = logs.of("a")
        assert found is not None
        assert (len(found.lines), found.dropped, found.lines[0].message) == (MAX_LINES, 5, "5")
        later = logs.of("a", after=found.lines[-1].number)
        assert later is not None
        assert (later.lines, later.dropped) == ((), 0)
        log.info("one more")
        last = found.lines[-1].number
        one = logs.of("a", after=last)
        assert one is not None
        assert ([line.message for line in one.lines], one.dropped) == (["one more"], 0)
        behind = logs.of("a", after=2)
        assert behind is not None
        assert behind.dropped == 4  # these are the lines 3 to 6; the reader has read the others
        for _ in range(200):
            log.info("x" * MAX_LINE_CHARS)
        assert sum(map(len, messages(logs, "a"))) <= MAX_PACKAGE_CHARS


def test_lines_of_all_packages_are_bounded_and_the_oldest_are_dropped() -> None:
    with kept(2_500) as logs:
        for number in range(30):
            with acting_for(f"p{number % 3}"):
                log.info("%d", number)
        numbers = sorted(int(text) for name in ("p0", "p1", "p2") for text in messages(logs, name))
        assert numbers == list(range(30 - len(numbers), 30))
        assert len(numbers) == 12
        with acting_for("new"):
            for _ in range(100):
                log.info("x")
        assert logs.of("p0") is None
        assert len(messages(logs, "new")) == 12
        with acting_for("p0"):
            log.info("again")
        again = logs.of("p0", after=3)
        assert again is not None
        assert ([line.number for line in again.lines], again.dropped) == ([11], 7)


def test_a_failure_to_store_a_line_is_no_error_of_the_caller(capsys: pytest.CaptureFixture[str]) -> None:
    def fails(_name: str) -> tuple[str, ...]:
        log.warning("from inside")
        raise RuntimeError("no secrets")

    with open_package_logs(fails, "run") as logs, acting_for("a"):
        log.error("a line")
    assert logs.of("a") is None
    assert "RuntimeError" in capsys.readouterr().err
    assert logs not in logging.getLogger().handlers
