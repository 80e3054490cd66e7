"""The values of a release."""

from collections.abc import Mapping

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.offline.building.values import ValuesError, references_of, release_values, with_value
from wharfinger.runtime.fixpoint.model import Id


def release(*entries: JsonObject, **values: JsonValue) -> JsonObject:
    return {"spec": {"valuesFrom": [*entries], "values": values}}


def data(who: Id) -> Mapping[str, str] | None:
    known = {"one": {"values.yaml": "a: 1\nb: {c: 1}"}, "two": {"more": "b: {d: 2}", "word": "true"}}
    return known.get(who.name)


def values(obj: JsonObject) -> JsonObject:
    return release_values(obj, references_of(obj, "apps"), data)


def test_later_references_win_and_inline_values_win_over_all() -> None:
    one: JsonObject = {"kind": "ConfigMap", "name": "one"}
    two: JsonObject = {"kind": "Secret", "name": "two", "valuesKey": "more"}
    assert values(release(one, two, a=3)) == {"a": 3, "b": {"c": 1, "d": 2}}


def test_a_reference_can_set_a_value_at_a_target_path() -> None:
    entry: JsonObject = {"kind": "ConfigMap", "name": "two", "valuesKey": "word", "targetPath": "x.y[1].z"}
    assert values(release(entry)) == {"x": {"y": [None, {"z": True}]}}


def test_missing_data_is_reported_unless_optional() -> None:
    absent: JsonObject = {"kind": "ConfigMap", "name": "absent"}
    with pytest.raises(ValuesError, match="ConfigMap apps/absent does not exist"):
        values(release(absent))
    assert values(release({**absent, "optional": True})) == {}
    with pytest.raises(ValuesError, match="has no key 'other'"):
        values(release({"kind": "ConfigMap", "name": "one", "valuesKey": "other"}))


def test_references_of_other_kinds_are_refused() -> None:
    with pytest.raises(ValuesError, match=r"spec.valuesFrom\[0\]: expected the kind"):
        references_of(release({"kind": "Pod", "name": "x"}), "apps")


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("a", "1", {"a": 1}),
        ("a", "007", {"a": "007"}),
        ("a", "'1'", {"a": "1"}),
        ("a", '"true"', {"a": "true"}),
        ("a", "null", {"a": None}),
        ("a", "", {"a": ""}),
        (r"a\.b.c", "x", {"a.b": {"c": "x"}}),
        ("a[0]", "x", {"a": ["x"]}),
    ],
)
def test_values_are_set_at_paths(path: str, text: str, expected: JsonObject) -> None:
    assert with_value({}, path, text) == expected


@pytest.mark.parametrize("path", ["", "[0]", "a[x]", "a[99999999]", "."])
def test_invalid_paths_are_refused(path: str) -> None:
    with pytest.raises(ValuesError):
        with_value({}, path, "x")
