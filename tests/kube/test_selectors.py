import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.selectors import (
    FieldTerm,
    LabelSelector,
    SelectorError,
    key_problems,
    parse_field_selector,
    parse_label_selector,
    value_problems,
)

WORDS = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,5}[A-Za-z0-9])?", fullmatch=True).filter(
    lambda word: word not in {"in", "notin"}
)


def labelled(**labels: str) -> JsonObject:
    return {"metadata": {"labels": dict(labels)}}


@pytest.mark.parametrize(
    ("text", "holds", "fails"),
    [
        ("", [{}, {"a": "1"}], []),
        ("a", [{"a": ""}], [{}, {"b": "1"}]),
        ("a\0", [{"a": ""}], [{}]),
        ("\0a", [{}], []),
        ("!a", [{}], [{"a": ""}]),
        ("a=1", [{"a": "1"}], [{}, {"a": "2"}]),
        ("a==1", [{"a": "1"}], [{}]),
        ("a=", [{"a": ""}], [{}, {"a": "1"}]),
        ("a!=1", [{}, {"a": "2"}], [{"a": "1"}]),
        ("a in (1, 2)", [{"a": "1"}, {"a": "2"}], [{}, {"a": "3"}]),
        ("a in (1,)", [{"a": ""}], [{"a": "3"}]),
        ("a notin (1,2)", [{}, {"a": "3"}], [{"a": "1"}]),
        ("a>3", [{"a": "4"}], [{}, {"a": "3"}, {"a": "x"}]),
        ("a<3", [{"a": "-4"}], [{"a": "3"}]),
        ("a=1,b", [{"a": "1", "b": ""}], [{"a": "1"}, {"b": ""}]),
        (" a = 1 , !b ", [{"a": "1"}], [{"a": "1", "b": ""}]),
        ("example.com/a=x", [{"example.com/a": "x"}], [{"a": "x"}]),
    ],
)
def test_label_selectors_match_labels(text: str, holds: list[dict[str, str]], fails: list[dict[str, str]]) -> None:
    selector = parse_label_selector(text)

    assert all(selector.matches({"metadata": {"labels": dict(labels)}}) for labels in holds)
    assert not any(selector.matches({"metadata": {"labels": dict(labels)}}) for labels in fails)


def test_objects_without_labels_match_only_negated_terms() -> None:
    assert parse_label_selector("!a").matches({})
    assert not parse_label_selector("a").matches({"metadata": {"labels": None}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a===b", "found '=', expected: identifier"),
        ("a=b c", "found 'c', expected: ',' or 'end of string'"),
        ("a,", "expected: identifier after ','"),
        (",a", "found ',', expected: !, identifier, or 'end of string'"),
        ("a in 1", "found '1' expected: '('"),
        ("a in (1", "expected: ',' or ')'"),
        ("a in (1 2)", "found '2', expected: ',' or ')'"),
        ("a ~ b", "expected: in, notin, =, ==, !=, gt, lt"),
        ("a > b", "the value must be an integer"),
        ("!", "expected: identifier"),
        ("-bad=1", "name part must consist of"),
        ("a=-bad", 'Invalid value: "-bad": a valid label must be'),
        ("/a", "prefix part must be non-empty"),
        ("UP/a", "prefix part a lowercase RFC 1123 subdomain"),
        (f"{'x' * 64}=1", "name part must be no more than 63 bytes"),
        (f"a={'x' * 64}", "must be no more than 63 bytes"),
    ],
)
def test_invalid_label_selectors_are_refused(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        parse_label_selector(text)

    assert message in str(caught.value)


@given(st.text(max_size=40))
@example("a in (")
@example("a!")
def test_any_text_is_a_label_selector_or_an_error(text: str) -> None:
    try:
        selector = parse_label_selector(text)
    except SelectorError:
        return
    assert isinstance(selector, LabelSelector)


@given(st.dictionaries(WORDS, WORDS, max_size=4))
def test_a_selector_of_all_labels_matches_them(labels: dict[str, str]) -> None:
    text = ",".join(f"{key}={value}" for key, value in labels.items())

    assert parse_label_selector(text).matches({"metadata": {"labels": dict(labels)}})
    assert labels == {} or not parse_label_selector(text).matches({"metadata": {}})


@given(WORDS, st.sets(WORDS, min_size=1, max_size=4), WORDS)
def test_in_and_notin_are_opposites_if_the_label_exists(key: str, among: set[str], value: str) -> None:
    inside = parse_label_selector(f"{key} in ({','.join(sorted(among))})")
    outside = parse_label_selector(f"{key} notin ({','.join(sorted(among))})")
    obj = labelled(**{key: value})

    assert inside.matches(obj) != outside.matches(obj)
    assert inside.matches(obj) == (value in among)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("", True),
        ("metadata.name=a", True),
        ("metadata.name==a", True),
        ("metadata.name!=a", False),
        ("metadata.name!=b,spec.on=true", True),
        ("spec.absent=", True),
        ("spec.count=3", True),
        (r"spec.text=x\,y\=z\\", True),
    ],
)
def test_field_selectors_match_fields(text: str, matches: bool) -> None:
    obj: JsonObject = {"metadata": {"name": "a"}, "spec": {"on": True, "count": 3, "text": "x,y=z\\", "list": [1]}}

    assert parse_field_selector(text, lambda path: True).matches(obj) == matches


def test_a_field_selector_may_require_one_name() -> None:
    assert parse_field_selector("metadata.name=a,x=y", lambda path: True).name == "a"
    assert parse_field_selector("metadata.name!=a", lambda path: True).name == ""


def test_unsupported_fields_are_errors() -> None:
    with pytest.raises(SelectorError, match=r"field label not supported: spec\.x"):
        parse_field_selector("spec.x=1", {"metadata.name"}.__contains__)
    with pytest.raises(SelectorError, match="can't understand 'what'"):
        parse_field_selector("what", lambda path: True)


@given(st.text(max_size=40))
def test_any_text_is_a_field_selector_or_an_error(text: str) -> None:
    try:
        parse_field_selector(text, lambda path: True)
    except SelectorError:
        return


@given(st.text(max_size=12))
def test_escaped_values_are_read_back(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")

    assert parse_field_selector(f"x={escaped}", lambda path: True).terms == (FieldTerm("x", value, equal=True),)


def test_valid_keys_and_values_have_no_problems() -> None:
    assert key_problems("app.kubernetes.io/name") == []
    assert key_problems("x" * 254 + "/a") == ["prefix part must be no more than 253 bytes"]
    assert "name part must be non-empty" in key_problems("example.com/")
    assert value_problems("") == []
