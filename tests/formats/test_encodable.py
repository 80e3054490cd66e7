"""Text for streams that have not all characters: what they have stays, the rest is to be read all the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.encodable import encodable


@pytest.mark.parametrize(
    ("text", "encoding", "shown"),
    [
        ("✓ größe", "ascii", "\\u2713 gr\\xf6\\xdfe"),
        ("✓ größe", "latin-1", "\\u2713 größe"),
        ("✓ größe", "utf-8", "✓ größe"),
        ("half \ud83d", "utf-8", "half \\ud83d"),
    ],
)
def test_what_a_stream_has_not_is_an_escape(text: str, encoding: str, shown: str) -> None:
    assert encodable(text, encoding) == shown


@given(st.text(), st.sampled_from(["ascii", "latin-1", "utf-8", "cp437"]))
def test_it_can_be_written(text: str, encoding: str) -> None:
    shown = encodable(text, encoding)
    assert shown.encode(encoding).decode(encoding) == shown
