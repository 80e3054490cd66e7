"""The line numbers of the values in a YAML text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonValue
from wharfinger.formats.yaml.lines import MAX_LEVELS, MAX_PLACES, Path, yaml_lines
from wharfinger.formats.yaml.reader import read_yaml_all
from wharfinger.formats.yaml.writer import write_yaml, write_yaml_all

TEXT = b"""\
# a comment
a: 1
b:
  - x: 1
    y: [p,
        q]
  - x: {q: 2}

c: &anchor
  d: |
    many
    lines
e: *anchor
f:
  <<: *anchor
  "g.h": 1
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("a",), 2),
        (("b",), 3),
        (("b", 0), 4),
        (("b", 0, "y"), 5),
        (("b", 0, "y", 0), 5),
        (("b", 0, "y", 1), 6),
        (("b", 1, "x", "q"), 7),
        (("b", 1, "x", "none", 7), 7),
        (("b", 9), 3),
        (("c", "d"), 10),
        (("e", "d"), 13),
        (("f", "d"), 14),
        (("f", "g.h"), 16),
        (("none",), 2),
        ((), 2),
    ],
)
def test_each_value_has_the_line_of_its_key_or_of_its_container(path: Path, line: int) -> None:
    (lines,) = yaml_lines(TEXT)
    assert lines.of(path) == line


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a", 2),
        ("b[0].y[1]", 6),
        ("b.0.y.1", 6),
        ("b[1].x.q", 7),
        ("f.g.h", 16),
        ("b[2]", None),
        ("x", None),
        ("", None),
    ],
)
def test_a_field_is_found_by_its_name_in_messages(text: str, line: int | None) -> None:
    (lines,) = yaml_lines(TEXT)
    assert lines.named(text) == line


def test_members_are_found_without_indexes_in_the_order_of_the_text() -> None:
    (lines,) = yaml_lines(TEXT)
    assert [*lines.matching(("b", "x"))] == [("b", 0, "x"), ("b", 1, "x")]
    assert [*lines.matching(("b",))] == [("b",)]
    assert [*lines.matching(())] == [*lines.matching(("x",))] == []


def test_json_has_lines_too() -> None:
    (lines,) = yaml_lines(b'{"a": {\n"b": [1,\n{"c": 2}]}}')
    assert [lines.of(path) for path in (("a",), ("a", "b"), ("a", "b", 1, "c"))] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "firsts"),
    [
        (b"", []),
        (b"# nothing\n", []),
        (b"---\n---\n# c\n---\nnull\n---\na: 1\n---\n~\n", [7]),
        (b"a: 1\n---\n[1]\n...\n---\n''\n", [1, 3, 6]),
        (b"a: 1\nb: c: d\n", [1]),
        (b"a: [1, 2", [1]),
        (b"\xff\xfe", [1]),
        (b"a: 1\n\xff: 2", [1]),
        (b"? [a]\n: 1\n? {b: c}\n: 2\n", [1]),
        (b"\x00", []),
        (b"- a: 1\n b: 2", [1]),
    ],
)
def test_lines_before_an_error_are_known(text: bytes, firsts: list[int]) -> None:
    assert [lines.first for lines in yaml_lines(text)] == firsts


def test_the_number_of_places_and_levels_is_limited() -> None:
    (deep,) = yaml_lines(b"[" * 10_000)
    assert max(map(len, deep.places)) == MAX_LEVELS
    (long,) = yaml_lines(b"- 1\n" * (MAX_PLACES + 10))
    assert len(long.places) == MAX_PLACES
    assert long.of((MAX_PLACES + 5,)) == 1


def _values(children: st.SearchStrategy[JsonValue]) -> st.SearchStrategy[JsonValue]:
    return st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=3), children, max_size=4)


VALUES = st.recursive(st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=4), _values, max_leaves=12)


def _paths(value: JsonValue, path: Path = ()) -> list[Path]:
    found = [path] if path else []
    if isinstance(value, dict):
        found += [inner for key, each in value.items() for inner in _paths(each, (*path, key))]
    elif isinstance(value, list):
        found += [inner for index, each in enumerate(value) for inner in _paths(each, (*path, index))]
    return found


@given(st.lists(VALUES, max_size=3))
def test_every_written_value_has_a_line_in_ascending_order(documents: list[JsonValue]) -> None:
    try:
        text = write_yaml_all(documents)
    except FormatError:
        return
    found = yaml_lines(text.encode())
    read = read_yaml_all(text.encode(), what="it")
    assert len(found) == len(read)
    for lines, document in zip(found, read, strict=True):
        paths = _paths(document)
        assert list(lines.places) == paths
        assert list(lines.places.values()) == sorted(lines.places.values())
        assert all(lines.first <= line <= text.count("\n") for line in lines.places.values())
    for document in read:
        (alone,) = yaml_lines(write_yaml(document).encode())
        assert list(alone.places) == _paths(document)


def test_too_many_directives_are_not_parsed() -> None:
    """A text with 300,000 directives would take minutes, so it is not parsed. The reader refuses such a text, too."""
    text = b"".join(b"%%TAG !a%d! x\n" % number for number in range(300_000)) + b"--- a\n"
    assert yaml_lines(text) == ()
