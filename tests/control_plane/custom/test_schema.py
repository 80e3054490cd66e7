"""Schemas of custom resources: defaults, and errors with kube-apiserver's messages."""

import pytest

from tests.control_plane.support.bench import (
    DEFINITIONS,
    OPTIONS,
    changed,
    made,
    new_backend,
    refused,
    served,
    thing,
    widgets,
)
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import custom_of
from wharfinger.control_plane.custom.schema import MAX_ERRORS, CustomSchema
from wharfinger.control_plane.verbs.options import ListOptions, WriteOptions
from wharfinger.control_plane.verbs.patching import PatchType, patch
from wharfinger.control_plane.verbs.reading import get, list_page
from wharfinger.control_plane.verbs.updating import replace
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, find, find_list


def schema(**properties: JsonValue) -> CustomSchema:
    """Return a schema of objects whose ``spec`` has these properties."""
    spec: JsonObject = {"type": "object", "properties": properties}
    return CustomSchema({"type": "object", "properties": {"spec": spec}})


def said(one: CustomSchema, spec: JsonValue, old: JsonObject | None = None) -> list[str]:
    """Return the errors that a schema reports for an object with this spec."""
    return [str(error) for error in one.errors({"spec": spec}, old)]


def test_missing_fields_are_reported_at_their_own_path() -> None:
    item: JsonObject = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    one = schema(sets={"type": "array", "items": item})
    assert said(one, {"sets": [{"name": "a"}, {}]}) == ["spec.sets[1].name: Required value"]
    assert [str(error) for error in CustomSchema({"required": ["spec"]}).errors({})] == ["spec: Required value"]


def test_an_error_of_the_whole_object_has_no_path() -> None:
    [error] = CustomSchema({"type": "object", "maxProperties": 0}).errors({"a": 1})
    assert error.field == "<nil>"


def test_forbidden_additional_properties_are_refused() -> None:
    one = schema(x={"type": "object", "additionalProperties": False})
    [error] = one.errors({"spec": {"x": {"a": 1}}})
    assert (error.field, error.reason) == ("spec.x", "FieldValueInvalid")


STRICT: JsonObject = {
    "type": "object",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            "required": ["size"],
            "properties": {
                "size": {"type": "integer", "minimum": 1},
                "color": {"type": "string", "default": "red"},
                "nested": {"type": "object", "properties": {"deep": {"type": "integer", "default": 7}}},
            },
        },
        "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
    },
}


def strict(backend: Backend) -> Served:
    """Define the kind ``Widget`` with a strict schema and a status subresource, and return it."""
    return widgets(backend, schema={"openAPIV3Schema": STRICT}, subresources={"status": {}})


def test_defaults_are_stored_and_owned_and_nulls_are_not() -> None:
    backend = new_backend()
    kind = strict(backend)

    obj = made(backend, kind, thing(kind, spec={"size": 1, "nested": {}, "color": None}))

    assert obj["spec"] == {"size": 1, "nested": {"deep": 7}, "color": "red"}
    owned = find(obj, "metadata", "managedFields", 0, "fieldsV1", "f:spec")
    assert owned == {".": {}, "f:color": {}, "f:nested": {".": {}, "f:deep": {}}, "f:size": {}}


def test_invalid_creations_are_refused() -> None:
    backend = new_backend()
    kind = strict(backend)
    with refused(422, "Invalid", 'Widget.example.com "a" is invalid: spec.size: Required value'):
        made(backend, kind, thing(kind, spec={"color": "blue"}))
    with refused(422, "Invalid", 'Widget.example.com "a" is invalid: spec: Required value'):
        made(backend, kind, thing(kind))
    with pytest.raises(StatusError) as caught:
        made(backend, kind, thing(kind, spec={"size": 0}))
    assert find_list(caught.value.details, "causes") == [
        {
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 0: spec.size in body should be greater than or equal to 1",
            "field": "spec.size",
        }
    ]
    assert backend.get(kind, "default", "a") is None


def test_updates_patches_and_applies_are_checked() -> None:
    backend = new_backend()
    kind = strict(backend)
    obj = made(backend, kind, thing(kind, spec={"size": 1}))

    with refused(422, "Invalid", "spec.size: Required value"):
        replace(backend, kind, "default", "a", "", {**obj, "spec": {}}, OPTIONS)
    merge: JsonObject = {"spec": {"size": "x"}}
    with refused(422, "Invalid", "spec.size in body must be of type integer"):
        patch(backend, kind, "default", "a", "", PatchType.MERGE, encode_json(merge), OPTIONS)
    applied = encode_json(thing(kind, spec={"size": "x"}))
    with refused(500, "", ".spec.size: expected numeric (int or float), got string"):
        patch(backend, kind, "default", "a", "", PatchType.APPLY, applied, WriteOptions("tester", force=True))
    removed: list[JsonValue] = [{"op": "remove", "path": "/spec/color"}]
    written = patch(backend, kind, "default", "a", "", PatchType.JSON, encode_json(removed), OPTIONS)
    assert find(written.obj, "spec", "color") == "red"


def test_status_is_validated_by_writes_to_status() -> None:
    backend = new_backend()
    kind = strict(backend)
    obj = made(backend, kind, thing(kind, spec={"size": 1}))

    with refused(422, "Invalid", "status.ready: Invalid value"):
        replace(backend, kind, "default", "a", "status", {**obj, "status": {"ready": "yes"}}, OPTIONS)
    done = replace(backend, kind, "default", "a", "status", {**obj, "status": {"ready": True}}, OPTIONS)
    assert done.obj["status"] == {"ready": True}


def tightened(backend: Backend, document: JsonObject) -> Served:
    """Replace the schema of the kind ``Widget`` with ``document``, and return the kind."""
    definitions = served(backend, *DEFINITIONS)
    definition = get(backend, definitions, "", "widgets.example.com")
    patch_body: list[JsonValue] = [
        {"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": document}
    ]
    patch(backend, definitions, "", "widgets.example.com", "", PatchType.JSON, encode_json(patch_body), OPTIONS)
    assert find(definition, "metadata", "generation") == 1
    return served(backend, "example.com", "v1", "widgets")


def test_an_object_of_an_older_schema_gets_new_defaults() -> None:
    backend = new_backend()
    kind = widgets(backend)
    made(backend, kind, thing(kind, metadata={"finalizers": ["example.com/hold"]}, spec={"color": "x"}))
    spec: JsonObject = {
        "type": "object",
        "required": ["size", "shape"],
        "properties": {
            "size": {"type": "integer"},
            "color": {"type": "string"},
            "shape": {"type": "string", "default": "round"},
        },
    }
    kind = tightened(backend, {"type": "object", "properties": {"spec": spec}})

    read = get(backend, kind, "default", "a")
    assert read["spec"] == {"color": "x", "shape": "round"}
    assert list_page(backend, kind, "default", ListOptions()).items == (read,)
    text = encode_json({"spec": {"color": "x"}})
    brought = patch(backend, kind, "default", "a", "", PatchType.MERGE, text, OPTIONS).obj
    assert find(brought, "metadata", "resourceVersion") != find(read, "metadata", "resourceVersion")  # it is stored now
    assert find(brought, "metadata", "generation") == find(read, "metadata", "generation")
    same = patch(backend, kind, "default", "a", "", PatchType.MERGE, text, OPTIONS).obj
    assert find(same, "metadata", "resourceVersion") == find(brought, "metadata", "resourceVersion")
    with refused(422, "Invalid", "spec.size: Required value"):
        patch(backend, kind, "default", "a", "", PatchType.MERGE, encode_json({"spec": {"color": "y"}}), OPTIONS)
    freed = replace(backend, kind, "default", "a", "", changed(same, {"finalizers": None}), OPTIONS)
    assert find(freed.obj, "metadata", "finalizers") is None


@pytest.mark.slow
@pytest.mark.unmeasured
def test_excessive_defaults_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    many: JsonObject = {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"a": {"type": "array", "items": {"type": "string"}, "default": ["x"] * 2000}},
        },
    }
    backend = new_backend()
    kind = widgets(backend, schema={"openAPIV3Schema": {"type": "object", "properties": {"l": many}}})
    entries: list[JsonValue] = [{} for _ in range(3000)]
    with refused(400, "BadRequest", "Widget: the defaults of the schema are larger than"):
        made(backend, kind, thing(kind, l=entries))
    custom = custom_of(kind.version)
    assert custom is not None
    assert custom.completed({"l": entries}) == {"l": entries}


def test_errors_are_bounded() -> None:
    one = schema(l={"type": "array", "items": {"type": "integer"}})
    assert len(one.errors({"spec": {"l": ["no"] * (MAX_ERRORS + 5)}})) == MAX_ERRORS


def test_rules_skip_invalid_objects_and_old_duplicates_are_tolerated() -> None:
    rule: JsonValue = [{"rule": "self.size() < 3"}]
    one = schema(
        s={"type": "string", "maxLength": 5, "x-kubernetes-validations": rule},
        l={"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    )
    assert said(one, {"s": "abcd"}) == ['spec.s: Invalid value: "abcd": failed rule: self.size() < 3']
    assert said(one, {"s": "abcdef"})[-1].startswith(
        "<nil>: Invalid value: null: some validation rules were not checked"
    )
    twice: JsonObject = {"spec": {"l": ["a", "a"]}}
    assert said(one, {"l": ["a", "a", "b"]}, twice) == []
    assert said(one, {"l": ["a", "a"]}, {"spec": {}}) == ['spec.l[1]: Duplicate value: "a"']
