"""The changed fields of an object. They are exact, and contain no secrets: of a changed secret, they show
only that it changed.
"""

import json

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.formats.json.pointers import pointer_steps
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.inspection.field_changes import MAX_FIELDS, MAX_VALUE_CHARS, differences, field_changes
from wharfinger.runtime.package_details import FieldChangeSnapshot

PLAIN = st.dictionaries(
    st.sampled_from("abc~/"),
    st.recursive(
        st.booleans() | st.integers(0, 2) | st.sampled_from(["x", "y"]),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
        max_leaves=5,
    ),
    max_size=3,
)


def changes(before: JsonObject, after: JsonObject, *secrets: str) -> dict[str, tuple[str, str]]:
    found, more = field_changes(before, after, secrets)
    assert more == 0
    return {each.pointer: (each.before, each.after) for each in found}


def test_changed_added_and_removed_fields_are_found() -> None:
    before: JsonObject = {"spec": {"replicas": 1, "gone": "a", "list": [1, 2], "long": [1]}, "status": {"x": 1}}
    after: JsonObject = {"spec": {"replicas": 2, "new": {"a": 1}, "list": [1, 3], "long": [1, 2]}, "status": {"x": 2}}
    assert changes(before, after) == {
        "/spec/replicas": ("1", "2"),
        "/spec/new": ("", '{"a":1}'),
        "/spec/list/1": ("2", "3"),
        "/spec/long": ("[1]", "[1,2]"),
        "/spec/gone": ('"a"', ""),
    }
    assert changes({"a": True}, {"a": 1}) == {"/a": ("true", "1")}


def test_metadata_written_by_the_server_is_not_a_change() -> None:
    assert changes({"metadata": {"resourceVersion": "1", "uid": "a"}}, {"metadata": {"resourceVersion": "2"}}) == {}


def test_secrets_are_masked_and_their_change_is_shown() -> None:
    secret: JsonObject = {"kind": "Secret", "data": {"password": "b25l"}}
    found = changes(secret, {"kind": "Secret", "data": {"password": "dHdv", "new": "eA=="}})
    assert found == {"/data/password": ('"***"', '"***"'), "/data/new": ("", '"***"')}
    plain = changes({"text": "old hunter2222"}, {"text": "new hunter2222"}, "hunter2222")
    assert plain == {"/text": ('"old ***"', '"new ***"')}
    renamed = changes({"a": {"hunter2222": 1}}, {"a": {"hunter2222": 2}}, "hunter2222")
    assert list(renamed.values()) == [('"***"', '"***"')]


def test_a_new_object_is_a_single_change() -> None:
    found, _ = field_changes(None, {"kind": "Secret", "stringData": {"a": "hunter2"}}, ())
    assert found == (FieldChangeSnapshot("", "", '{"kind":"Secret","stringData":{"a":"***"},"metadata":{}}'),)
    assert field_changes({"a": 1}, None, ()) == ((), 0)


def test_number_and_length_of_changes_are_bounded() -> None:
    many: JsonObject = {str(number): number for number in range(MAX_FIELDS + 7)}
    found, more = field_changes({}, many, ())
    assert (len(found), more) == (MAX_FIELDS, 7)
    (long,), _ = field_changes({"a": 1}, {"a": "x" * (MAX_VALUE_CHARS + 1)}, ())
    assert long.after == f'"({MAX_VALUE_CHARS + 3} characters)"'


@given(PLAIN, PLAIN)
def test_applying_the_changes_to_one_object_gives_the_other(before: JsonObject, after: JsonObject) -> None:
    made: JsonValue = json.loads(json.dumps(before))
    for path, _, becomes in differences(before, after):
        made = _with(made, list(path), _at(after, list(path)) if becomes else None, remove=not becomes)
    assert json.dumps(made, sort_keys=True) == json.dumps(after, sort_keys=True)
    assert all(pointer_steps(each.pointer) for each in field_changes(before, after, ())[0])


def _at(value: JsonValue, path: list[str]) -> JsonValue:
    for step in path:
        value = value[step] if isinstance(value, dict) else value[int(step)]  # type: ignore[index]
    return value


def _with(value: JsonValue, path: list[str], new: JsonValue, *, remove: bool) -> JsonValue:
    if not path:
        return new
    step = path[0]
    if isinstance(value, list):
        return [_with(item, path[1:], new, remove=remove) if str(at) == step else item for at, item in enumerate(value)]
    assert isinstance(value, dict)
    result = dict(value)
    if remove and len(path) == 1:
        del result[step]
    else:
        result[step] = _with(result.get(step), path[1:], new, remove=remove)
    return result
