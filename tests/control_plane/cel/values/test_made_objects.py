"""Objects that CEL expressions construct, written as JSON."""

import pytest

from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.documents import document_value
from wharfinger.control_plane.cel.values.made_objects import MadeError, document_of, misnamed
from wharfinger.control_plane.cel.values.values import (
    CelMap,
    Duration,
    MadeObject,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    type_name,
)
from wharfinger.formats.json.value import JsonValue


@pytest.mark.parametrize(
    ("value", "document"),
    [
        (None, None),
        (True, True),
        (Uint(3), 3),
        (1.5, 1.5),
        (b"ab", "YWI="),
        (Duration(1_500_000_000), "1.5s"),
        (Timestamp(0), "1970-01-01T00:00:00Z"),
        ([1, CelMap([("a", 2)])], [1, {"a": 2}]),
        (document_value({"a": [1]}), {"a": [1]}),
        (MadeObject("Object", [("a", MadeObject("Object.a", [("b", "c")]))]), {"a": {"b": "c"}}),
    ],
)
def test_values_are_written_as_json(value: Value, document: JsonValue) -> None:
    assert document_of(value) == document


@pytest.mark.parametrize(
    "value", [CelMap([(1, 2)]), TypeValue("int"), [TypeValue("int")], float("inf"), [float("nan")]]
)
def test_other_values_are_refused(value: Value) -> None:
    with pytest.raises(MadeError):
        document_of(value)


def test_type_names_must_match_the_fields() -> None:
    inner = MadeObject("Object.a")
    assert misnamed(MadeObject("Object", [("a", [inner]), ("b", CelMap([("x", MadeObject("Object.b"))]))])) == ""
    assert misnamed(MadeObject("Object", [("b", inner)])) == (
        'unexpected type name "Object.a", expected "Object.b", which matches field name path from root Object type'
    )


def test_objects_of_different_types_differ() -> None:
    assert operations.equal(MadeObject("Object.a", [("x", 1)]), MadeObject("Object.a", [("x", 1)]))
    assert not operations.equal(MadeObject("Object.a", [("x", 1)]), MadeObject("Object.b", [("x", 1)]))
    assert not operations.equal(MadeObject("Object.a", [("x", 1)]), CelMap([("x", 1)]))
    assert type_name(MadeObject("Object.a")) == "Object.a"
