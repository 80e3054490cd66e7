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
def test_lines_end_at_newlines_for_any_chunks(chunks: tuple[bytes, ...], expected: list[str]) -> None:
    assert lines_of(*chunks) == expected


@given(st.lists(st.binary(max_size=30), max_size=8))
def test_lines_do_not_depend_on_the_chunks(chunks: list[bytes]) -> None:
    assert lines_of(*chunks) == lines_of(b"".join(chunks))


@pytest.mark.parametrize("char", ["x", "€", "😀"])
def test_long_line_is_truncated_and_the_next_is_complete(char: str) -> None:
    fits, over = char * MAX_LINE_CHARS, char * (5 * MAX_LINE_CHARS)
    data = f"{fits}\n{over}\nnext\n".encode()
    chunks = [data[at : at + 4096] for at in range(0, len(data), 4096)]
    assert lines_of(*chunks) == [fits, fits + TRUNCATED, "next"]


@pytest.mark.parametrize("char", ["x", "😀"])
def test_truncated_line_is_marked_even_if_its_end_arrives_alone(char: str) -> None:
    assert lines_of((char * (MAX_LINE_CHARS + 1)).encode(), b"", b"\n") == [char * MAX_LINE_CHARS + TRUNCATED]


def test_line_without_an_end_uses_bounded_memory() -> None:
    buffer = LineBuffer(lambda line: None)
    for _ in range(1000):
        buffer.feed(b"x" * 65536)
    assert len(buffer._kept) <= 4 * MAX_LINE_CHARS


def test_both_streams_form_one_log_in_line_order() -> None:
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


def test_last_lines_are_retained_and_the_rest_counted() -> None:
    told: list[str] = []
    log = LogLines(30, told.append)
    for number in range(10):
        log.stdout.feed(f"line {number}\n".encode())
    assert log.kept() == ("(6 earlier lines are left out)", "line 6", "line 7", "line 8", "line 9")
    assert len(told) == 10


def test_last_line_is_retained_even_if_it_exceeds_the_limit() -> None:
    log = LogLines(3)
    log.stdout.feed(b"first\nsecond\n")
    assert log.kept() == ("(1 earlier lines are left out)", "second")


def test_number_of_retained_lines_is_limited() -> None:
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
def test_excerpt_of_the_last_output_begins_at_a_word(said: str, expected: str) -> None:
    found = last_words(said.encode())
    assert found == expected
    assert len(found) <= MAX_REASON_CHARS
