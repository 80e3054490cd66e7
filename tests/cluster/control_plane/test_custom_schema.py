"""Schemas of custom resources at work: defaults, and refusals in the kube-apiserver's words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cluster.control_plane.bench import (
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
from tests.scale import scaled
from wharfinger.cluster.control_plane import custom_schema
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.custom_schema import MAX_ERRORS, CustomSchema
from wharfinger.cluster.control_plane.options import ListOptions, WriteOptions
from wharfinger.cluster.control_plane.patching import PatchType, patch
from wharfinger.cluster.control_plane.reading import get, list_page
from wharfinger.cluster.control_plane.status import StatusError
from wharfinger.cluster.control_plane.updating import replace
from wharfinger.formats.json_value import JsonObject, JsonValue, encode_json, find, find_list


def schema(**properties: JsonValue) -> CustomSchema:
    """A schema whose ``spec`` has these properties."""
    spec: JsonObject = {"type": "object", "properties": properties}
    return CustomSchema({"type": "object", "properties": {"spec": spec}}, what="the schema")


def said(one: CustomSchema, spec: JsonValue, old: JsonObject | None = None) -> list[str]:
    """What is wrong with an object of this spec."""
    return [str(error) for error in one.errors({"spec": spec}, old)]


@pytest.mark.parametrize(
    ("keywords", "value", "reason", "message"),
    [
        (
            {"type": "string"},
            5,
            "FieldValueTypeInvalid",
            'Invalid value: "integer": spec.x in body must be of type string: "integer"',
        ),
        (
            {"type": "integer"},
            "a",
            "FieldValueTypeInvalid",
            'Invalid value: "string": spec.x in body must be of type integer: "string"',
        ),
        (
            {"type": "object"},
            [],
            "FieldValueTypeInvalid",
            'Invalid value: "array": spec.x in body must be of type object: "array"',
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            {},
            "FieldValueTypeInvalid",
            'Invalid value: "object": spec.x in body must be of type array: "object"',
        ),
        (
            {"type": "boolean", "nullable": True},
            1.5,
            "FieldValueTypeInvalid",
            'Invalid value: "number": spec.x in body must be of type boolean: "number"',
        ),
        (
            {"x-kubernetes-int-or-string": True},
            True,
            "FieldValueTypeInvalid",
            'Invalid value: "boolean": spec.x in body must be of type integer,string: "boolean"',
        ),
        (
            {"type": "string", "enum": ["a", "b"]},
            "c",
            "FieldValueNotSupported",
            'Unsupported value: "c": supported values: "a", "b"',
        ),
        (
            {"type": "string", "pattern": "^[a-z]+$"},
            "A",
            "FieldValueInvalid",
            "Invalid value: \"A\": spec.x in body should match '^[a-z]+$'",
        ),
        (
            {"type": "string", "format": "date-time"},
            "noon",
            "FieldValueTypeInvalid",
            'Invalid value: "noon": spec.x in body must be of type date-time: "noon"',
        ),
        (
            {"type": "string", "minLength": 2},
            "a",
            "FieldValueInvalid",
            'Invalid value: "a": spec.x in body should be at least 2 chars long',
        ),
        ({"type": "string", "maxLength": 2}, "abc", "FieldValueTooLong", "Too long: may not be more than 2 bytes"),
        (
            {"type": "integer", "minimum": 1},
            0,
            "FieldValueInvalid",
            "Invalid value: 0: spec.x in body should be greater than or equal to 1",
        ),
        (
            {"type": "integer", "maximum": 1},
            2,
            "FieldValueInvalid",
            "Invalid value: 2: spec.x in body should be less than or equal to 1",
        ),
        (
            {"type": "number", "minimum": 1, "exclusiveMinimum": True},
            1,
            "FieldValueInvalid",
            "Invalid value: 1: spec.x in body should be greater than 1",
        ),
        (
            {"type": "number", "maximum": 1, "exclusiveMaximum": True},
            1.5,
            "FieldValueInvalid",
            "Invalid value: 1.5: spec.x in body should be less than 1",
        ),
        (
            {"type": "integer", "multipleOf": 2},
            3,
            "FieldValueInvalid",
            "Invalid value: 3: spec.x in body should be a multiple of 2",
        ),
        (
            {"type": "array", "minItems": 1, "items": {"type": "string"}},
            [],
            "FieldValueInvalid",
            "Invalid value: []: spec.x in body should have at least 1 items",
        ),
        (
            {"type": "array", "maxItems": 1, "items": {"type": "string"}},
            ["a", "b"],
            "FieldValueTooMany",
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "array", "uniqueItems": True, "items": {"type": "string"}},
            ["a", "a"],
            "FieldValueInvalid",
            'Invalid value: ["a","a"]: spec.x in body shouldn\'t contain duplicates',
        ),
        (
            {"type": "object", "minProperties": 1},
            {},
            "FieldValueInvalid",
            "Invalid value: {}: spec.x in body should have at least 1 properties",
        ),
        (
            {"type": "object", "maxProperties": 1, "additionalProperties": {"type": "integer"}},
            {"a": 1, "b": 2},
            "FieldValueTooMany",
            "Too many: 2: must have at most 1 items",
        ),
        (
            {"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]},
            3,
            "FieldValueInvalid",
            'Invalid value: "": spec.x in body must validate at least one schema (anyOf)',
        ),
        (
            {"type": "integer", "oneOf": [{"minimum": 1}, {"maximum": 5}]},
            3,
            "FieldValueInvalid",
            'Invalid value: "": spec.x in body must validate one and only one schema (oneOf)',
        ),
        (
            {"type": "integer", "not": {"minimum": 1}},
            3,
            "FieldValueInvalid",
            'Invalid value: "": spec.x in body must not validate the schema (not)',
        ),
    ],
)
def test_every_keyword_has_its_words(keywords: JsonObject, value: JsonValue, reason: str, message: str) -> None:
    [error] = schema(x=keywords).errors({"spec": {"x": value}})
    assert (error.field, error.reason, error.message) == ("spec.x", reason, message)


def test_what_is_missing_is_named_where_it_should_be() -> None:
    item: JsonObject = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
    one = schema(sets={"type": "array", "items": item})
    assert said(one, {"sets": [{"name": "a"}, {}]}) == ["spec.sets[1].name: Required value"]
    assert [str(error) for error in CustomSchema({"required": ["spec"]}, what="s").errors({})] == [
        "spec: Required value"
    ]


def test_the_object_itself_may_be_wrong() -> None:
    [error] = CustomSchema({"type": "object", "maxProperties": 0}, what="s").errors({"a": 1})
    assert error.field == "<nil>"


def test_properties_that_are_refused() -> None:
    one = schema(x={"type": "object", "additionalProperties": False})
    [error] = one.errors({"spec": {"x": {"a": 1}}})
    assert (error.field, error.reason) == ("spec.x", "FieldValueInvalid")


def test_errors_are_sorted_and_bounded_and_values_in_them_too() -> None:
    numbers: JsonObject = {"type": "array", "items": {"type": "integer"}}
    one = schema(a=numbers, b={"type": "string", "enum": ["x"]})
    errors = one.errors({"spec": {"a": ["no"] * 500, "b": "y" * 5000}})
    assert len(errors) == MAX_ERRORS
    assert [error.field for error in errors] == sorted(error.field for error in errors)
    [long] = one.errors({"spec": {"b": "y" * 5000}})
    assert len(long.message) < 400


def test_a_value_that_is_too_large_to_explain_is_refused_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(custom_schema, "MAX_WORK", 1)
    [error] = schema(x={"type": "string"}).errors({"spec": {"x": 5}})
    assert (error.field, error.reason) == ("spec.x", "FieldValueInvalid")
    assert error.message.startswith("Invalid value: ")


def test_what_a_write_leaves_as_it_was_is_not_held_against_it() -> None:
    one = schema(x={"type": "string"}, y={"type": "object", "required": ["z"]}, n={"type": "integer"})
    old: JsonObject = {"spec": {"x": 5, "y": {}}}
    assert said(one, {"x": 5, "y": {}, "n": 1}, old) == []
    assert said(one, {"x": 6, "y": {}}, old) == [
        'spec.x: Invalid value: "integer": spec.x in body must be of type string: "integer"'
    ]
    assert said(one, {"y": {"other": 1}}, old) == ["spec.y.z: Required value"]
    assert said(one, {"x": None}, {"spec": {"x": None}}) == []
    assert said(one, {"x": None}, {"spec": {}}) != []
    assert said(one, {"n": True}, {"spec": {"n": 1}}) != []


def test_many_old_faults_do_not_hide_a_new_one(monkeypatch: pytest.MonkeyPatch) -> None:
    one = schema(items={"type": "array", "items": {"type": "integer"}}, z={"type": "integer"})
    bad: list[JsonValue] = ["bad"] * 1_000
    old: JsonObject = {"spec": {"items": bad, "z": 1}}

    assert said(one, {"items": bad, "z": 2}, old) == []
    (error,) = said(one, {"items": bad, "z": "broken"}, old)
    assert error.startswith('spec.z: Invalid value: "string"')
    # What is not looked at any more may be new: it is refused, not let in.
    monkeypatch.setattr(custom_schema, "MAX_WORK", 2_500)
    (error,) = said(one, {"items": bad, "z": 2}, old)
    assert error.startswith("spec.items[0]: ")
    monkeypatch.undo()
    monkeypatch.setattr(custom_schema, "_MOST_COMPARED", 100)
    assert len(said(one, {"items": bad, "z": 2}, old)) == MAX_ERRORS


def test_a_value_with_many_faults_is_compared_once() -> None:
    names = [f"p{number}" for number in range(3_000)]
    one = schema(x={"type": "object", "required": [*names]})
    spec: JsonObject = {"x": {"text": "x" * 500_000}}

    assert said(one, spec, {"spec": spec}) == []
    assert len(said(one, {"x": {"text": "y"}}, {"spec": spec})) == MAX_ERRORS


def test_a_schema_that_cannot_be_compiled_keeps_nobody_out() -> None:
    one = CustomSchema({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}}, what="the schema")
    assert one.problem.startswith("the schema: properties.a.pattern: ")
    obj: JsonObject = {"a": None}
    assert (one.errors(obj), one.defaulted(obj), one.completed(obj)) == ([], obj, obj)
    assert schema().problem == ""


LEAVES: tuple[JsonObject, ...] = (
    {"type": "string"},
    {"type": "integer", "minimum": 1, "default": 3},
    {"type": "string", "enum": ["a", "b"], "nullable": True},
    {"type": "string", "pattern": "^a+$", "maxLength": 3},
    {"x-kubernetes-int-or-string": True},
    {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
)
SCHEMAS: st.SearchStrategy[JsonObject] = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.one_of(
        inner.map(lambda item: {"type": "array", "items": item, "maxItems": 2, "uniqueItems": True}),
        inner.map(lambda item: {"type": "object", "additionalProperties": item, "minProperties": 1}),
        inner.map(
            lambda item: {"type": "object", "properties": {"a": item}, "required": ["a"], "not": {"required": ["b"]}}
        ),
        inner.map(lambda item: {"anyOf": [item, {"type": "boolean"}]}),
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 5) | st.floats(0, 2) | st.text("ab", max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


@settings(max_examples=scaled(5000, 80), deadline=None)
@given(SCHEMAS, VALUES)
def test_what_is_decided_is_explained(document: JsonObject, value: JsonValue) -> None:
    """Errors exactly where the deciding engine refuses; with the defaults in, defaults change nothing more."""
    one = schema(x=document)
    obj: JsonObject = {"spec": {"x": value}}
    compiled = one._compiled
    assert not isinstance(compiled, str)
    errors = one.errors(obj)
    assert bool(errors) == bool(compiled.schema.problems(obj))
    assert all(error.field.startswith("spec.x") and error.message for error in errors)
    assert one.errors(obj, obj) == [] or "null" in encode_json(value).decode()
    full = one.defaulted(obj)
    assert one.defaulted(full) == full


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
    """Widgets of that schema, with a status subresource."""
    return widgets(backend, schema={"openAPIV3Schema": STRICT}, subresources={"status": {}})


def test_defaults_are_stored_and_owned_and_nulls_are_not() -> None:
    backend = new_backend()
    kind = strict(backend)

    obj = made(backend, kind, thing(kind, spec={"size": 1, "nested": {}, "color": None}))

    assert obj["spec"] == {"size": 1, "nested": {"deep": 7}, "color": "red"}
    owned = find(obj, "metadata", "managedFields", 0, "fieldsV1", "f:spec")
    assert owned == {".": {}, "f:color": {}, "f:nested": {".": {}, "f:deep": {}}, "f:size": {}}


def test_creations_that_are_refused() -> None:
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
    for type_, body in ((PatchType.MERGE, merge), (PatchType.APPLY, thing(kind, spec={"size": "x"}))):
        with refused(422, "Invalid", "spec.size in body must be of type integer"):
            patch(backend, kind, "default", "a", "", type_, body, WriteOptions("tester", force=True))
    removed: list[JsonValue] = [{"op": "remove", "path": "/spec/color"}]
    written = patch(backend, kind, "default", "a", "", PatchType.JSON, removed, OPTIONS)
    assert find(written.obj, "spec", "color") == "red"


def test_status_is_checked_where_it_is_written() -> None:
    backend = new_backend()
    kind = strict(backend)
    obj = made(backend, kind, thing(kind, spec={"size": 1}))

    with refused(422, "Invalid", "status.ready: Invalid value"):
        replace(backend, kind, "default", "a", "status", {**obj, "status": {"ready": "yes"}}, OPTIONS)
    done = replace(backend, kind, "default", "a", "status", {**obj, "status": {"ready": True}}, OPTIONS)
    assert done.obj["status"] == {"ready": True}


def tightened(backend: Backend, document: JsonObject) -> Served:
    """The widgets' definition, with another schema."""
    definitions = served(backend, *DEFINITIONS)
    definition = get(backend, definitions, "", "widgets.example.com")
    patch_body: list[JsonValue] = [
        {"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": document}
    ]
    patch(backend, definitions, "", "widgets.example.com", "", PatchType.JSON, patch_body, OPTIONS)
    assert find(definition, "metadata", "generation") == 1
    return served(backend, "example.com", "v1", "widgets")


def test_an_object_of_an_older_schema_reads_with_new_defaults_and_can_still_be_let_go() -> None:
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
    same = patch(backend, kind, "default", "a", "", PatchType.MERGE, {"spec": {"color": "x"}}, OPTIONS).obj
    assert find(same, "metadata", "resourceVersion") == find(read, "metadata", "resourceVersion")
    with refused(422, "Invalid", "spec.size: Required value"):
        patch(backend, kind, "default", "a", "", PatchType.MERGE, {"spec": {"color": "y"}}, OPTIONS)
    freed = replace(backend, kind, "default", "a", "", changed(read, {"finalizers": None}), OPTIONS)
    assert find(freed.obj, "metadata", "finalizers") is None


def test_a_definition_says_that_its_objects_are_not_checked() -> None:
    backend = new_backend()
    kind = widgets(backend, schema={"openAPIV3Schema": {"type": "object", "properties": {"a": {"pattern": "("}}}})
    definitions = served(backend, *DEFINITIONS)

    def condition() -> JsonValue:
        found = get(backend, definitions, "", "widgets.example.com")
        conditions = find_list(found, "status", "conditions")
        return next((find(item, "message") for item in conditions if find(item, "type") == "NonStructuralSchema"), None)

    assert str(condition()).startswith("the schema of version v1: properties.a.pattern: ")
    assert made(backend, kind, thing(kind, a=1))["a"] == 1
    tightened(backend, {"type": "object"})
    assert condition() is None


@pytest.mark.unmeasured
def test_defaults_out_of_all_proportion_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    many: JsonObject = {"type": "array", "items": {"type": "object", "properties": {"a": {"default": ["x"] * 1000}}}}
    backend = new_backend()
    kind = widgets(backend, schema={"openAPIV3Schema": {"type": "object", "properties": {"l": many}}})
    entries: list[JsonValue] = [{} for _ in range(3000)]
    with refused(400, "BadRequest", "Widget: with its defaults the value has more than"):
        made(backend, kind, thing(kind, l=entries))
    assert kind.version.custom is not None
    assert kind.version.custom.completed({"l": entries}) == {"l": entries}
