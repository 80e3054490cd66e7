import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.hooks.running.log_lines import (
    MAX_LINE_CHARS,
    MAX_LINES,
    MAX_REASON_CHARS,
    TRUNCATED,
    LineBuffer,
    LogLines,
    last_words,
)


def lines_of(*chunks: bytes) -> list[str]:
    found: list[str] = []
    buffer = LineBuffer(found.append)
    for chunk in chunks:
        buffer.feed(chunk)
    buffer.end()
    return found


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ((), []),
        ((b"one\ntwo\n",), ["one", "two"]),
        ((b"on", b"e\nt", b"wo"), ["one", "two"]),
        ((b"one\n", b"", b"\n \t\r\n", b"two"), ["one", "two"]),
        ((b"  one \r\n",), ["  one"]),
        (("ä".encode()[:1], "ä".encode()[1:] + b"\n"), ["ä"]),
        ((b"\xff\xfe\n",), ["\ufffd\ufffd"]),
        ((b'{"level":"info"}\n{"a":\n1}\n',), ['{"level":"info"}', '{"a":', "1}"]),
    ],
)
def test_a_line_is_what_ends_with_a_newline_however_it_arrives(chunks: tuple[bytes, ...], expected: list[str]) -> None:
    assert lines_of(*chunks) == expected


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_the_pieces_do_not_matter(chunks: list[bytes]) -> None:
    assert lines_of(*chunks) == lines_of(b"".join(chunks))


@pytest.mark.parametrize("char", ["x", "€", "😀"])
def test_a_long_line_is_cut_and_marked_and_the_next_is_whole(char: str) -> None:
    fits, over = char * MAX_LINE_CHARS, char * (5 * MAX_LINE_CHARS)
    data = f"{fits}\n{over}\nnext\n".encode()
    chunks = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert lines_of(*chunks) == [fits, fits + TRUNCATED, "next"]


@pytest.mark.parametrize("char", ["x", "😀"])
def test_a_cut_line_is_marked_even_if_its_end_arrives_alone(char: str) -> None:
    assert lines_of((char * (MAX_LINE_CHARS + 1)).encode(), b"", b"\n") == [char * MAX_LINE_CHARS + TRUNCATED]


def test_a_line_without_an_end_holds_bounded_memory() -> None:
    buffer = LineBuffer(lambda line: None)
    for _ in range(1000):
        buffer.feed(b"x" * 65536)
    assert len(buffer._kept) <= 4 * MAX_LINE_CHARS


def test_both_streams_make_one_log_in_the_order_of_their_lines() -> None:
    told: list[str] = []
    log = LogLines(1000, told.append)
    log.stdout.feed(b"begin")
    log.stderr.feed(b"warning\n")
    log.stdout.feed(b"ning\n")
    log.stdout.feed(b"last")
    log.end()
    log.note("a note")
    assert log.kept() == ("warning", "beginning", "last", "a note")
    assert told == list(log.kept())


def test_of_too_many_lines_the_last_are_kept_and_the_rest_counted() -> None:
    told: list[str] = []
    log = LogLines(30, told.append)
    for number in range(10):
        log.stdout.feed(f"line {number}\n".encode())
    assert log.kept() == ("(6 earlier lines are left out)", "line 6", "line 7", "line 8", "line 9")
    assert len(told) == 10


def test_the_last_line_is_kept_even_if_it_is_too_long_alone() -> None:
    log = LogLines(3)
    log.stdout.feed(b"first\nsecond\n")
    assert log.kept() == ("(1 earlier lines are left out)", "second")


def test_so_many_lines_are_kept_however_short_they_are() -> None:
    log = LogLines(1024 * 1024)
    log.stdout.feed(b"x\n" * (MAX_LINES + 7))
    assert log.kept() == ("(7 earlier lines are left out)", *("x",) * MAX_LINES)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", ""),
        (" \n", ""),
        ("why\n", "why"),
        ("first\n" + "x" * MAX_REASON_CHARS, "x" * MAX_REASON_CHARS),
        ("secret\n" + "y" * 1020 + "\nwhy", "y" * 1020 + "\nwhy"),
        ("the secret\n" + "y" * 1010 + "\nwhy", "y" * 1010 + "\nwhy"),
        ("the password\n" + "y" * 1030 + "\nwhy", "why"),
        ("a password is " + "y" * 1020, "is " + "y" * 1020),
        ("password" + "y" * 1019, "a word of over 1024 characters"),
    ],
)
def test_the_last_words_never_begin_within_one(said: str, expected: str) -> None:
    found = last_words(said.encode())
    assert found == expected
    assert len(found) <= MAX_REASON_CHARS
