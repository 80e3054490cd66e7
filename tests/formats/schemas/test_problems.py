import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.document import ValuePath
from wharfinger.formats.schemas.problem import Problem
from wharfinger.formats.schemas.problems import Finding, problem_of, types_sentence

HERE: ValuePath = ("a", 0)


def finding(keyword: str, expected: JsonValue, instance: JsonValue, schema: JsonObject | None = None) -> Finding:
    return Finding(HERE, keyword, expected, instance, schema or {}, "name")


@pytest.mark.parametrize(
    ("keyword", "expected", "instance", "message"),
    [
        ("type", "string", 5, "expected a string, found an integer"),
        ("type", ["boolean", "null", "array"], {}, "expected true or false or null or a list, found an object"),
        ("type", ["number"], None, "expected a number, found null"),
        ("enum", ["a"], "b", 'must be "a", found "b"'),
        ("enum", [1, None, True], 2, "must be one of 1, null, true, found 2"),
        ("enum", ["Fast", "Slow"], "fats", 'must be one of "Fast", "Slow", found "fats"; did you mean "Fast"?'),
        ("enum", [{"a": 1}, [2]], {"b": 3}, "must be one of an object, a list"),
        (
            "enum",
            list(range(20)),
            99,
            "must be one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 or 8 others, found 99",
        ),
        ("enum", ["x"], "y" * 1_000, 'must be "x", found "' + "y" * 79 + "…"),
        ("enum", ["x"], "\x1b\ud800", 'must be "x", found "\\u001b\\ud800"'),
        ("const", 10**100, 10**100 + 1, "must be an integer, found an integer"),
        ("const", "a", [], 'must be "a"'),
        ("pattern", "^x$", "y", 'must match ^X$, found "y"'),
        ("pattern", "^y$", "y", 'must match ^y$, found "y"'),
        ("format", "ipv4", "y", 'must be an IPv4 address, found "y"'),
        ("minimum", 3, 2, "must be at least 3, found 2"),
        ("maximum", 3.5, 4, "must be at most 3.5, found 4"),
        ("exclusiveMinimum", 3, 3, "must be greater than 3, found 3"),
        ("exclusiveMaximum", 3, 3, "must be less than 3, found 3"),
        ("multipleOf", 3, 4, "must be a multiple of 3, found 4"),
        ("minLength", 1, "", "must have at least 1 character, has 0"),
        ("maxLength", 2, "abc", "must have at most 2 characters, has 3"),
        ("minItems", 2, [1], "must have at least 2 items, has 1"),
        ("maxItems", 0, [1], "must have at most 0 items, has 1"),
        ("minProperties", 1, {}, "must have at least 1 member, has 0"),
        ("maxProperties", 1, {"a": 1, "b": 2}, "must have at most 1 member, has 2"),
        ("uniqueItems", True, [1, 1], "has equal items; each may occur only once"),
        ("not", {"type": "string"}, "x", "has a value that is not allowed here"),
        ("not", {}, "x", "is not allowed here"),
        ("items", False, [1], "has more items than are allowed"),
        ("falseSchema", None, "x", "is not allowed here"),
    ],
)
def test_messages_show_values_unless_hidden(
    keyword: str, expected: JsonValue, instance: JsonValue, message: str
) -> None:
    found = finding(keyword, expected, instance)

    assert problem_of(found, shown=True, patterns={"^x$": "^X$"}) == Problem("a[0]", message)
    hidden = problem_of(found, shown=False, patterns={})
    assert hidden is not None
    assert not any(word in hidden.message for word in ('found "', "did you mean", ", has"))


def test_required_and_unknown_properties_are_named() -> None:
    schema: JsonObject = {"properties": {"Name": {}, "port": {}}}

    def said(keyword: str, schema: JsonObject, *, shown: bool = True, name: str = "name") -> str:
        found = Finding(HERE, keyword, None, {}, schema, name)
        return str(problem_of(found, shown=shown, patterns={}))

    assert said("required", {}) == "a[0].name: is required"
    assert (
        said("additionalProperties", schema)
        == "a[0].name: is not a known setting; known: Name, port; did you mean Name?"
    )
    assert said("additionalProperties", schema, name="zzz") == "a[0].zzz: is not a known setting; known: Name, port"
    assert said("additionalProperties", {}) == "a[0].name: is not a known setting; none are known here"
    assert (
        said("additionalProperties", schema, shown=False)
        == "a[0]: has a member that is not a known setting; known: Name, port"
    )
    many: JsonObject = {"properties": {f"p{n}": {} for n in range(13)}}
    assert said("additionalProperties", many, name="x" * 200).endswith("p10, p11, …")


def test_some_keywords_have_no_message() -> None:
    assert problem_of(finding("oneOf", [], 1), shown=True, patterns={}) is None


def test_unknown_types_are_named_as_given() -> None:
    assert types_sentence(["file"], 1) == "expected file, found an integer"


def test_a_problem_at_the_root_is_its_message() -> None:
    assert str(Problem("", "is required")) == "is required"
