"""Text for streams whose encoding lacks some characters, and bytes that are quoted in messages."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.encodable import encodable, quoted, write_text


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("✓ größe", "ascii", "\\u2713 gr\\xf6\\xdfe"),
        ("✓ größe", "latin-1", "\\u2713 größe"),
        ("✓ größe", "utf-8", "✓ größe"),
        ("half \ud83d", "utf-8", "half \\ud83d"),
    ],
)
def test_missing_characters_become_escapes(text: str, encoding: str, shown: str) -> None:
    assert encodable(text, encoding) == shown


@given(st.text(), st.sampled_from(["ascii", "latin-1", "utf-8", "cp437"]))
def test_the_result_can_be_encoded(text: str, encoding: str) -> None:
    shown = encodable(text, encoding)
    assert shown.encode(encoding).decode(encoding) == shown


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"abc", "'abc'"),
        (b"", "''"),
        (b"a\n\x1b", "'a\\n\\x1b'"),
        (b"x" * 30, f"'{'x' * 20}'"),
        (b"x" * 19 + "ü".encode(), f"'{'x' * 19}'"),
        (b"\xe00U", "bytes that are not text (e0 30 55)"),
        (b"ab\xff" + b"x" * 30, "bytes that are not text (61 62 ff 78 78 78 78 78)"),
    ],
)
def test_bytes_are_quoted_in_messages(data: bytes, shown: str) -> None:
    assert quoted(data, 20) == shown


@given(st.binary(max_size=30))
def test_bytes_in_a_message_can_be_shown(data: bytes) -> None:
    assert quoted(data, 20).isprintable()


def test_a_text_is_written_in_the_encoding_of_the_stream() -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii")
    write_text(stream, "\u2713 ok\n")
    assert written.getvalue() == b"\\u2713 ok\n"
