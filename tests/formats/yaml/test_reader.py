"""The YAML reader: texts that Kubernetes reads, and texts that are refused before they cost much."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.formats.support.yaml_table import ACCEPTED, ONLY_WE_REFUSE, REFUSED, WE_KEEP
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import MAX_DEPTH, JsonValue, canonical_json, find, find_list
from wharfinger.formats.yaml.reader import (
    MAX_DOCUMENTS,
    YamlError,
    YamlLimitError,
    YamlLimits,
    read_yaml,
    read_yaml_all,
)

SMALL = YamlLimits(max_bytes=10_000, max_depth=10, max_nodes=1_000, max_characters=5_000)


def read(text: bytes | str, limits: YamlLimits = SMALL) -> JsonValue:
    return read_yaml(text, what="values.yaml", limits=limits)


def refused(text: bytes | str, limits: YamlLimits = SMALL) -> YamlError:
    with pytest.raises(YamlError) as caught:
        read(text, limits)
    return caught.value


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("text", "expected"), [*ACCEPTED, *WE_KEEP], ids=[text for text, _ in [*ACCEPTED, *WE_KEEP]])
def test_texts_are_read_as_by_kubernetes(text: str, expected: JsonValue) -> None:
    # Canonical bytes are compared, because True == 1 in Python but not in JSON.
    assert canonical_json(read(text)) == canonical_json(expected)


@pytest.mark.parametrize("text", [*REFUSED, *ONLY_WE_REFUSE])
def test_refusals_have_line_and_column(text: str) -> None:
    error = refused(text)

    assert isinstance(error, FormatError)
    assert error.line is not None
    assert error.column is not None
    assert str(error).startswith(f"values.yaml: line {error.line}, column {error.column}: ")


@pytest.mark.parametrize(
    ("text", "line", "column", "reason"),
    [
        ("a: 1\nb: 2\na: 3\n", 3, 1, "duplicate key 'a'"),
        ("a:\n  b: !foo x\n", 2, 6, "unknown tag '!foo'"),
        ("a: [1,\n", 2, 1, "did not find expected node content"),
        ("a: \u00e9\n\u00e9b: \x01\n", 2, 5, "control characters are not allowed"),
        (b"a: 1\nbc: \xff\n", 2, 5, "not UTF-8"),
        ("a: 1\n---\nb: 2\n", 2, 1, "found a second document, expected one"),
        ("a: *b", 1, 4, "no anchor &b before *b"),
        ("a: .inf", 1, 4, ".inf has no JSON form"),
        ("~: 1", 1, 1, "a key is null"),
    ],
)
def test_errors_report_line_column_and_reason(text: bytes | str, line: int, column: int, reason: str) -> None:
    error = refused(text)

    assert (error.line, error.column) == (line, column)
    assert reason in str(error)


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "---\n---\n...\n", "null", "--- ~\n"])
def test_an_empty_text_is_none(text: str) -> None:
    assert read(text) is None
    assert read_yaml_all(text, what="x") == []


def test_additional_empty_documents_do_not_count() -> None:
    assert read("# head\n---\n---\na: 1\n---\n# tail\n") == {"a": 1}


def test_a_stream_keeps_order_and_drops_empty_documents() -> None:
    text = "a: 1\n---\n# nothing\n---\n- b\n---\nfalse\n---\n''\n---\n0\n"

    assert read_yaml_all(text, what="x") == [{"a": 1}, ["b"], False, "", 0]


def test_anchors_end_with_their_document() -> None:
    with pytest.raises(YamlError, match="no anchor &x"):
        read_yaml_all("a: &x 1\n---\nb: *x\n", what="x")


def test_a_byte_order_mark_is_skipped_and_utf_16_refused() -> None:
    assert read(b"\xef\xbb\xbfa: 1") == {"a": 1}
    assert "not UTF-8" in str(refused("a: 1".encode("utf-16")))
    assert "a lone surrogate" in str(refused("a: \ud800"))


def test_the_size_limit_counts_bytes() -> None:
    limits = YamlLimits(max_bytes=10)

    assert read("a: " + "b" * 7, limits) == {"a": "b" * 7}
    assert "over the limit of 10" in str(refused("a: " + "b" * 8, limits))
    assert "over the limit of 10" in str(refused(b"a: " + b"b" * 8, limits))
    assert "over the limit of 10" in str(refused("a: " + "\u00e9" * 4, limits))


SHAPES = {
    "flow list": lambda n: "[" * n + "]" * n,
    "flow mapping": lambda n: "{a: " * n + "1" + "}" * n,
    "mixed flow": lambda n: "[{a: " * (n // 2) + "1" + "}]" * (n // 2),
    "block list": lambda n: "- " * n + "x",
    "block mapping": lambda n: "".join(" " * depth + "a:\n" for depth in range(n - 1)) + " " * n + "a: 1",
    "explicit keys": lambda n: "? " * n + "x",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_depth_is_allowed_up_to_the_limit(shape: str) -> None:
    if shape != "explicit keys":
        read(SHAPES[shape](10))
    assert any(
        reason in str(refused(SHAPES[shape](12))) for reason in ("deeper than 10", "a key is a list or a mapping")
    )


@pytest.mark.parametrize("shape", ["flow list", "flow mapping", "mixed flow", "block list", "explicit keys"])
def test_nesting_that_crashes_the_plain_loader_is_refused(shape: str) -> None:
    text = SHAPES[shape](50_000)
    assert len(text) < 400_000

    refused(text, YamlLimits())


def test_an_unclosed_flood_of_brackets_is_refused() -> None:
    error = refused("[" * 4_000_000, YamlLimits())

    assert str(error) == f"values.yaml: line 1, column {MAX_DEPTH + 1}: nested deeper than {MAX_DEPTH} levels"


def test_an_alias_adds_its_own_depth() -> None:
    anchored = "a: &a " + "[" * 5 + "]" * 5 + "\n"

    assert read(f"{anchored}b: {'[' * 4}*a{']' * 4}")
    assert "deeper than 10" in str(refused(f"{anchored}b: {'[' * 5}*a{']' * 5}"))
    chained = "a: &a [[[]]]\nb: &b [[[*a]]]\nc: &c [[[*b]]]\nd: [*c]\n"
    assert "deeper than 10" in str(refused(chained))


ALIAS_BOMB = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
MERGE_BOMB = "m0: &m0 {k0: v}\n" + "".join(
    f"m{n}: &m{n} {{<<: [{','.join([f'*m{n - 1}'] * 9)}], k{n}: v}}\n" for n in range(1, 20)
)
STRING_BOMB = "s: &s " + "x" * 100_000 + "\nl: [" + "*s," * 10_000 + "]\n"
NESTED_MERGES = "a: " + "{<<: " * 150 + "{" + ",".join(f"k{n}: 1" for n in range(20_000)) + "}" + "}" * 150


@pytest.mark.parametrize(
    ("bomb", "reason"),
    [
        (ALIAS_BOMB, "more than 1000000 values"),
        (MERGE_BOMB, "more than 1000000 values"),
        (STRING_BOMB, "more than 16777216 characters"),
        (NESTED_MERGES, "more than 1000000 values"),
    ],
    ids=["alias", "merge", "string", "nested merges"],
)
def test_alias_bombs_are_refused_by_their_expanded_size(bomb: str, reason: str) -> None:
    assert reason in str(refused(bomb, YamlLimits()))


def test_limits_apply_to_the_whole_stream() -> None:
    one = "[" + "1," * 400 + "]\n---\n"

    assert len(read_yaml_all(one * 2, what="x", limits=SMALL)) == 2
    with pytest.raises(YamlError, match="more than 1000 values"):
        read_yaml_all(one * 3, what="x", limits=SMALL)


def test_many_tag_directives_are_refused_and_a_few_are_read() -> None:
    few = "".join(f"%TAG !t{n}! tag:yaml.org,2002:\n" for n in range(64))

    assert read(few + "---\na: !t5!str 1\n") == {"a": "1"}
    assert "%TAG directives" in str(refused("%TAG !x! y\n" + few + "---\na: 1\n"))
    assert read("a: '" + "%TAG " * 100 + "'") == {"a": ("%TAG " * 100)}


def test_a_tag_with_an_escaped_half_surrogate_is_refused() -> None:
    assert "tag" in str(refused("a: !%ED%A0%80 x"))


def test_aliases_become_separate_copies() -> None:
    document = read("a: &a {x: [1]}\nb: *a\nc: {<<: *a}\n")

    find_list(document, "a", "x").append(2)
    assert find(document, "a", "x") == [1, 2]
    assert find(document, "b") == find(document, "c") == {"x": [1]}


def test_plain_yaml_is_read_as_by_pyyaml() -> None:
    text = "a:\n- b: 'x'\n  c: \"y\\n\"\n- [1, 2.5, {d: e}]\nf: |\n  one\n\n  two\n"

    assert read(text) == yaml.safe_load(text)


@given(st.text(max_size=200) | st.text("ab:-?[]{}&*!|>'\"%#,\n\t 01.<~", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        documents = read_yaml_all(text, what="x", limits=SMALL)
    except YamlError:
        return
    for document in documents:
        canonical_json(document)


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        read_yaml(data, what="x", limits=SMALL)
    except YamlError:
        return
    data.decode()


@pytest.mark.slow
@pytest.mark.unmeasured
def test_the_number_of_documents_is_bounded_including_empty_ones() -> None:
    assert read_yaml_all("---\n---\n1\n---\n", what="x", max_documents=3) == [1]
    with pytest.raises(YamlError, match="x: line 3, column 1: more than 2 documents"):
        read_yaml_all("---\n---\n---\n", what="x", max_documents=2)
    for read in (read_yaml, read_yaml_all):
        with pytest.raises(YamlError, match=f"more than {MAX_DOCUMENTS} documents"):
            read("---\n" * (MAX_DOCUMENTS + 1), what="x")


def test_a_stream_can_be_read_without_yaml_1_1_booleans() -> None:
    text = "y: on\nlist: [no, true, !!bool yes, &a n, *a]\n"
    assert read_yaml_all(text, what="x") == [{"true": True, "list": [False, True, True, False, False]}]
    assert read_yaml_all(text, what="x", old_booleans=False) == [{"y": "on", "list": ["no", True, True, "n", "n"]}]


def test_a_text_over_the_size_limits_has_its_own_error() -> None:
    with pytest.raises(YamlLimitError, match="more than 10 values, with aliases written out"):
        read_yaml("a: &a [1, 2, 3]\nb: [*a, *a, *a]\n", what="x", limits=YamlLimits(max_nodes=10))
    with pytest.raises(YamlError) as caught:
        read_yaml("a: b: c\n", what="x")
    assert not isinstance(caught.value, YamlLimitError)
