from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.control_plane.support.samples import builtin
from wharfinger.control_plane.api.by_kind.defaults import apply_defaults
from wharfinger.control_plane.api.by_kind.validation import validate, validate_update
from wharfinger.control_plane.catalog.builtin_kinds import BUILTIN_KINDS
from wharfinger.control_plane.kinds.kind import Kind
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError

CONFIG = builtin("", "v1", "configmaps").kind
SECRET = builtin("", "v1", "secrets").kind
SERVICE = builtin("", "v1", "services").kind
ROLE = builtin("rbac.authorization.k8s.io", "v1", "roles").kind


SERVICE_OBJECT: JsonObject = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "web", "namespace": "n"},
    "spec": {"ports": [{"port": 80}]},
}


def named(name: str, **fields: JsonValue) -> JsonObject:
    return {"metadata": {"name": name, "namespace": "n"}, **fields}


def said(errors: list[FieldError]) -> list[str]:
    return [str(error)[:90] for error in errors]


def test_valid_objects_have_no_errors() -> None:
    assert validate(CONFIG, named("a.b-c", data={"key.name": "x"}, binaryData={"KEY_NAME": "AA=="})) == []
    assert validate(ROLE, named("system:node:x")) == []
    assert validate(SERVICE, apply_defaults(SERVICE_OBJECT)) == []


@pytest.mark.parametrize(
    ("metadata", "field", "words"),
    [
        ({}, "metadata.name", "Required value: name or generateName is required"),
        ({"name": 5}, "metadata.name", "Required value"),
        ({"name": "Upper"}, "metadata.name", "a lowercase RFC 1123 subdomain"),
        ({"name": "x" * 254}, "metadata.name", "must be no more than 253 characters"),
        ({"name": "a", "labels": {"-x": "1"}}, "metadata.labels", 'Invalid value: "-x": name part'),
        ({"name": "a", "labels": {"x": "a b"}}, "metadata.labels", 'Invalid value: "a b": a valid label'),
        ({"name": "a", "annotations": {"a b": "x"}}, "metadata.annotations", 'Invalid value: "a b"'),
        (
            {"name": "a", "annotations": {"a": "x" * 262_145}},
            "metadata.annotations",
            "Too long: may not be more than 262144",
        ),
        ({"name": "a", "finalizers": ["unqualified"]}, "metadata.finalizers[0]", "nor is it fully qualified"),
        ({"name": "a", "finalizers": ["-/x"]}, "metadata.finalizers", "prefix part"),
    ],
)
def test_invalid_names_in_metadata_are_reported(metadata: JsonObject, field: str, words: str) -> None:
    errors = validate(CONFIG, {"metadata": metadata})

    assert any(error.field == field and words in error.message for error in errors)


def test_names_follow_the_rules_of_their_kind() -> None:
    assert said(validate(SERVICE, named("a.b")))[0] == 'metadata.name: Invalid value: "a.b": must not contain dots'
    assert "must be no more than 63 characters" in said(validate(SERVICE, named("x" * 64)))[0] + "".join(
        error.message for error in validate(SERVICE, named("x" * 64))
    )
    assert "RFC 1123 label" in validate(SERVICE, named("Up"))[0].message
    assert "may not contain '/'" in validate(ROLE, named("a/b"))[0].message
    assert "may not be '..'" in validate(ROLE, named(".."))[0].message


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("bad key", "a valid config key"),
        ("x" * 254, "must be no more than 253"),
        (".", "must not be '.'"),
        ("..a", "must not start with '..'"),
    ],
)
def test_invalid_data_keys_are_refused(key: str, words: str) -> None:
    assert words in validate(CONFIG, named("a", data={key: "x"}))[0].message
    assert words in validate(SECRET, named("a", data={key: "eA=="}))[0].message


def test_data_over_the_size_limit_is_refused() -> None:
    assert said(validate(CONFIG, named("a", data={"k": "x" * 1_048_577}))) == [
        "[]: Too long: may not be more than 1048576 bytes"
    ]
    assert said(validate(SECRET, named("a", data={"k": "x" * 1_500_000}))) == [
        "data: Too long: may not be more than 1048576 bytes"
    ]


def test_changes_of_immutable_fields() -> None:
    old = named("a", data={"x": "1"}, immutable=True)
    old["metadata"] = {"name": "a", "uid": "u", "deletionTimestamp": "t", "finalizers": ["a.b/c"], "namespace": "n"}
    new = named("a", data={"x": "2"}, immutable=True)
    new["metadata"] = {
        "name": "a",
        "uid": "other",
        "deletionTimestamp": "t",
        "finalizers": ["a.b/c", "a.b/d"],
        "namespace": "n",
    }

    fields = [error.field for error in validate_update(CONFIG, new, old)]

    assert fields == ["metadata.finalizers", "metadata.uid"] * 2 + ["data"]
    assert validate_update(CONFIG, old, old) == []


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


@given(
    st.sampled_from(BUILTIN_KINDS),
    st.dictionaries(st.sampled_from(["metadata", "spec", "data", "status", "immutable"]), VALUES),
    st.dictionaries(
        st.sampled_from(["name", "labels", "annotations", "finalizers", "uid", "deletionTimestamp"]), VALUES
    ),
)
def test_arbitrary_objects_do_not_crash(kind: Kind, obj: dict[str, JsonValue], metadata: dict[str, JsonValue]) -> None:
    whole = {**obj, "metadata": metadata}

    with suppress(ShapeError):  # the control plane refuses such objects before it validates them
        validate(kind, whole)
    with suppress(ShapeError):
        validate_update(kind, whole, obj)
