"""Hostile text, which is escaped for a terminal."""

import json

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.terminal_text import is_safe, json_printable, printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("", ""),
        ("plain ✓ 漢字 é 🙂 👩\u200d🚀", "plain ✓ 漢字 é 🙂 👩\u200d🚀"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\r\n\tb", "a\\r\\n\\tb"),
        ("\x9b2J\x7f\x00", "\\x9b2J\\x7f\\x00"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("\ufeff\u200b\u2028", "\\ufeff\\u200b\\u2028"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_characters_are_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown
    assert is_safe(text) == (text == shown)


def test_allowed_characters_are_not_escaped() -> None:
    assert printable("a\nb\r", allow="\n") == "a\nb\\r"
    assert is_safe("a\nb", allow="\n")
    assert not is_safe("a\nb\r", allow="\n")


@given(st.text())
def test_the_result_is_safe_and_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert is_safe(shown)
    assert printable(shown) == shown
    shown.encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_escaped_json_document_has_the_same_value(text: str) -> None:
    document = json_printable(json.dumps({text: [text]}, ensure_ascii=False, indent=1))
    assert is_safe(document, allow="\n")
    assert json.loads(document) == {text: [text]}


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=50))
def test_a_json_document_can_be_escaped_for_yaml(text: str) -> None:
    document = json_printable(json.dumps({"text": text}, ensure_ascii=False), yaml=True)
    assert is_safe(document)
    assert yaml.safe_load(document) == {"text": text}


def test_characters_beyond_the_basic_plane_are_escaped_as_pairs_in_json() -> None:
    assert json_printable('"\U000e0041"') == '"\\udb40\\udc41"'
    assert json_printable('"\U000e0041"', yaml=True) == '"\\U000e0041"'
