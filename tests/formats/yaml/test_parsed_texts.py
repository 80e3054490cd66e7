"""The cache of parsed texts. It returns the same values as the reader, which parses a text at each call."""

import msgspec
import pytest

from tests.formats.support.yaml_table import ACCEPTED
from wharfinger.formats.yaml.parsed_texts import MAX_PACKED, ParsedTexts
from wharfinger.formats.yaml.reader import YamlError, read_yaml, read_yaml_documents

TEXT = b"a: [1, 2.5, 1e22, .5, true, null, x]\n---\nb: 12345678901234567890\n"


def taken_over(texts: ParsedTexts) -> ParsedTexts:
    """Return a new cache that has taken over the values of this one, as the cache of the next process does."""
    other = ParsedTexts()
    other.learn(texts.used())
    return other


def test_parsed_texts_have_the_values_and_lines_of_the_reader() -> None:
    texts = ParsedTexts()
    wanted = read_yaml_documents(TEXT, what="x")
    for each in (texts, texts, taken_over(texts)):
        found = each.documents(TEXT, what="x")
        assert found == wanted
        assert msgspec.json.encode(found) == msgspec.json.encode(wanted)  # in Python, 1 and 1.0 are equal


@pytest.mark.parametrize("text", [each.encode() for each, _ in ACCEPTED])
def test_texts_of_the_table_have_the_same_values(text: bytes) -> None:
    texts = ParsedTexts()
    wanted = read_yaml(text, what="x")
    assert texts.document(text, what="x") == taken_over(texts).document(text, what="x") == wanted


def test_each_caller_gets_its_own_copy() -> None:
    texts = ParsedTexts()
    first = texts.document(b"a: [1]", what="x")
    assert isinstance(first, dict)
    first["a"] = "changed"
    assert texts.document(b"a: [1]", what="x") == {"a": [1]}


def test_an_error_is_not_cached_and_names_its_file() -> None:
    texts = ParsedTexts()
    for file in ("one", "two"):
        with pytest.raises(YamlError, match=f"{file}: line 2"):
            texts.documents(b"a: [", what=file)
    assert not texts.used()


def test_a_second_document_is_refused() -> None:
    texts = ParsedTexts()
    for each in (texts, taken_over(texts)):
        with pytest.raises(YamlError, match="a second document"):
            each.document(b"a: 1\n--- {b: 1}\n", what="x")
    assert texts.document(b"# nothing\n", what="x") is None


def test_damaged_values_are_parsed_again() -> None:
    texts = ParsedTexts()
    texts.documents(TEXT, what="x")
    (key,) = texts.used()
    for damaged in (b"\xc1", msgspec.msgpack.encode([1]), b""):
        other = ParsedTexts()
        other.learn({key: damaged})
        assert other.documents(TEXT, what="x") == read_yaml_documents(TEXT, what="x")
        assert other.used() == texts.used()


def test_a_large_text_is_not_cached() -> None:
    texts = ParsedTexts()
    text = b"a: " + b"x" * MAX_PACKED
    assert texts.document(text, what="x") == read_yaml(text, what="x")
    assert not texts.used()


def test_only_used_texts_are_passed_on() -> None:
    texts = ParsedTexts()
    texts.document(b"a: 1", what="x")
    texts.document(b"b: 1", what="x")
    other = taken_over(texts)
    other.document(b"b: 1", what="x")
    assert list(other.used().values()) == [texts.used()[key] for key in other.used()]
    assert len(other.used()) == 1
