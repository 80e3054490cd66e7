"""The parsers of /proc/<pid>/stat and of environments, with hostile names, forged lines, and real processes."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.process.proc_stat import (
    MARKER,
    MARKER_BYTES_MAX,
    ProcessStat,
    ProcFormatError,
    marker_value,
    parse_start_ticks,
    parse_stat,
    parse_tokens,
    parse_uid,
)

TAIL = (
    "S 1 20 30 0 -1 {flags} 99 0 0 0 7 8 0 0 20 0 {threads} 0 4711 1000 10 18446744073709551615 1 2 3 0 0 0 0 0 0 0 0 0 "
    "17 1 0 0 0 0 0 5 6 7 8 9 {start} {end} 0\n"
)


def line(name: bytes, *, flags: int = 0x400100, threads: int = 1, start: int = 100, end: int = 350) -> bytes:
    return b"42 (" + name + b") " + TAIL.format(flags=flags, threads=threads, start=start, end=end).encode()


def test_the_fields_are_those_of_the_manual_page() -> None:
    assert parse_stat(line(b"sh")) == ProcessStat(
        pid=42,
        state="S",
        ppid=1,
        pgid=20,
        sid=30,
        start_ticks=4711,
        threads=1,
        exiting=False,
        kernel_thread=False,
        environ_bytes=250,
    )


@given(st.binary(max_size=64))
def test_a_process_name_cannot_forge_other_fields(name: bytes) -> None:
    assert parse_stat(line(name)) == parse_stat(line(b"sh"))
    assert parse_start_ticks(line(name)) == 4711


@pytest.mark.parametrize("name", [b"a b", b")", b"((", b") R 1 1 1 0", b"x\ny", b""])
def test_unusual_process_names_are_parsed(name: bytes) -> None:
    assert parse_stat(line(name)).sid == 30


def test_flags_and_threads_show_whether_a_process_can_run() -> None:
    assert parse_stat(line(b"k", flags=0x00200000)).kernel_thread
    assert parse_stat(line(b"x", flags=0x00000004)).exiting
    assert parse_stat(line(b"e", start=0, end=0)).environ_bytes == -1
    assert parse_stat(line(b"e", start=5, end=5)).environ_bytes == 0
    zombie, half_dead = (parse_stat(line(b"z", threads=n).replace(b") S", b") Z")) for n in (1, 3))
    assert not zombie.alive
    assert half_dead.alive


@given(st.binary(max_size=200))
def test_other_texts_are_refused(data: bytes) -> None:
    with pytest.raises(ProcFormatError):
        parse_stat(data)
    with pytest.raises(ProcFormatError):
        parse_start_ticks(data)


@pytest.mark.parametrize("start", [b"", b"x", b"4711", b"x y", b"\xff z"])
def test_a_start_time_that_is_not_a_number_is_refused(start: bytes) -> None:
    data = line(b"sh")[: line(b"sh").index(b"4711")] + start
    with pytest.raises(ProcFormatError):
        parse_start_ticks(data)


@pytest.mark.parametrize(
    "data", [b"", b"42", line(b"sh")[:60], line(b"sh").replace(b"42 ", b"x "), line(b"sh").replace(b" S ", b" \xff ")]
)
def test_broken_lines_are_refused(data: bytes) -> None:
    with pytest.raises(ProcFormatError):
        parse_stat(data)


def test_the_stat_of_this_process_agrees_with_the_system() -> None:
    stat = parse_stat(Path("/proc/self/stat").read_bytes())

    assert (stat.pid, stat.ppid) == (os.getpid(), os.getppid())
    assert (stat.pgid, stat.sid) == (os.getpgrp(), os.getsid(0))
    assert stat.alive
    assert stat.start_ticks == parse_start_ticks(Path("/proc/self/stat").read_bytes())
    assert stat.environ_bytes == len(Path("/proc/self/environ").read_bytes())


@pytest.mark.parametrize(
    ("environ", "tokens"),
    [
        (b"", set()),
        (b"A=1\0B=2\0", set()),
        (b"WHARFINGER_RUN=abc", {"abc"}),
        (b"A=1\0WHARFINGER_RUN=abc\0B=2\0", {"abc"}),
        (b"A=1\0WHARFINGER_RUN=abc:def\0", {"abc", "def"}),
        (b"XWHARFINGER_RUN=abc\0A=WHARFINGER_RUN=abc\0", set()),
        (b"WHARFINGER_RUN=\0", set()),
        (b"WHARFINGER_RUN=a\0WHARFINGER_RUN=b\0", {"a", "b"}),
        (b"WHARFINGER_RUN=\xff\xfe\0", {"\ufffd\ufffd"}),
    ],
)
def test_tokens_come_only_from_the_marker_variable(environ: bytes, tokens: set[str]) -> None:
    assert parse_tokens(environ) == tokens


@given(st.lists(st.text("0123456789abcdef", min_size=1, max_size=32), min_size=1, max_size=60))
def test_a_chain_of_runs_carries_all_tokens_and_stays_bounded(tokens: list[str]) -> None:
    value = ""
    for token in tokens:
        value = marker_value(value, token)
        assert len(value) <= MARKER_BYTES_MAX
        assert token in parse_tokens(f"{MARKER}={value}".encode())
    if len(":".join(tokens)) <= MARKER_BYTES_MAX:
        assert parse_tokens(f"{MARKER}={value}".encode()) == set(tokens)


@pytest.mark.parametrize(
    ("status", "uid"),
    [
        (b"Name:\tx\nUid:\t1000\t0\t0\t0\nGid:\t5\t5\t5\t5\n", 1000),
        (b"Name:\tUid: 7 \\nUid:\t8\nUid:\t9\t9\t9\t9\n", 9),
        (b"", 0),
        (b"Uid:\n", 0),
    ],
)
def test_the_real_user_is_read(status: bytes, uid: int) -> None:
    assert parse_uid(status) == uid
