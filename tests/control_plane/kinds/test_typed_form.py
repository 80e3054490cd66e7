"""The form of built-in objects after Go has decoded and encoded them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wharfinger.control_plane.kinds.type_shapes import builtin_list_types
from wharfinger.control_plane.kinds.typed_form import typed_form
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.quantities import canonical_quantity


def form(kind: str, obj: JsonObject, group: str = "") -> JsonObject:
    return typed_form(obj, builtin_list_types(group, "v1", kind))


def test_empty_optional_fields_are_left_out() -> None:
    obj: JsonObject = {
        "metadata": {"name": "c", "labels": {}, "creationTimestamp": None, "finalizers": [], "generation": 0},
        "data": {},
        "immutable": False,
    }
    assert form("ConfigMap", obj) == {"metadata": {"name": "c"}, "immutable": False}


def test_structs_held_by_value_are_printed() -> None:
    assert form("Service", {}) == {"metadata": {}, "spec": {}, "status": {"loadBalancer": {}}}
    assert form("Pod", {"spec": {"containers": [{"name": "a"}]}})["spec"] == {
        "containers": [{"name": "a", "resources": {}}]
    }
    condition: JsonObject = {"type": "Ready", "status": "True"}
    assert form("Pod", {"status": {"conditions": [condition]}})["status"] == {
        "conditions": [condition | {"lastProbeTime": None, "lastTransitionTime": None}]
    }


def test_empty_structs_held_by_pointer_are_printed() -> None:
    pod = form("Pod", {"spec": {"securityContext": {}, "volumes": [{"name": "v", "emptyDir": {}}], "hostname": ""}})
    assert pod["spec"] == {"containers": None, "securityContext": {}, "volumes": [{"name": "v", "emptyDir": {}}]}


def test_undeclared_fields_are_removed() -> None:
    assert form("ConfigMap", {"metadata": {"nom": "c"}, "dat": {}}) == {"metadata": {}}


def test_a_null_text_in_a_map_is_empty() -> None:
    assert form("ConfigMap", {"metadata": {}, "data": {"a": None, "b": "1"}})["data"] == {"a": "", "b": "1"}


def test_zero_numbers_are_printed_only_if_held_by_pointer() -> None:
    spec: JsonObject = {"replicas": 0, "minReadySeconds": 0, "paused": False}
    formed = form("Deployment", {"spec": spec}, "apps")["spec"]
    assert formed == {
        "replicas": 0,
        "selector": None,
        "strategy": {},
        "template": {"metadata": {}, "spec": {"containers": None}},
    }


def test_arbitrary_values_are_not_changed() -> None:
    schema: JsonObject = {"default": None, "enum": [None, {}], "properties": {"a": {"default": {"x": None}}}}
    version: JsonObject = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec: JsonObject = {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster", "versions": [version]}
    formed = form("CustomResourceDefinition", {"spec": spec}, "apiextensions.k8s.io")["spec"]
    kept: JsonObject = {"enum": [None, {}], "properties": {"a": {"default": {"x": None}}}}
    assert formed == spec | {"versions": [version | {"schema": {"openAPIV3Schema": kept}}]}


def test_only_the_metadata_of_a_custom_kind_changes() -> None:
    obj: JsonObject = {"metadata": {"name": "t", "labels": {}}, "spec": {"a": None, "b": []}}
    assert typed_form(obj, builtin_list_types("example.com", "v1", "Thing")) == {
        "metadata": {"name": "t"},
        "spec": {"a": None, "b": []},
    }


@pytest.mark.parametrize(
    ("given_", "printed"),
    [
        (".", "0"),
        (1, "1"),
        (0.5, "500m"),
        ("0.5Gi", "512Mi"),
        ("1000m", "1"),
        ("1500m", "1500m"),
        ("1.5", "1500m"),
        ("1000", "1k"),
        ("1024", "1024"),
        ("1024Ki", "1Mi"),
        ("1.5Gi", "1536Mi"),
        ("0.1Gi", "107374182400m"),
        ("100Ki", "100Ki"),
        ("0.5Ki", "512"),
        ("1e3", "1e3"),
        ("12e6", "12e6"),
        ("5E2", "500"),
        ("-0", "0"),
        ("-1000m", "-1"),
        ("+2", "+2"),
        ("007m", "007m"),
        ("1E+3", "1E+3"),
        ("5.", "5."),
        ("1.500", "1.500"),
        ("1e31", "10e30"),
        ("9Ei", "9223372036854775807"),
        ("e3", "0"),
        (".5", "500m"),
        ("1n", "1n"),
        ("0.1n", "1n"),
        ("1u", "1u"),
        ("2Ei", "2Ei"),
        ("3E", "3E"),
        ("5000E", "5"),
        ("", ""),
        ("1 Gi", "1 Gi"),
        ("many", "many"),
        (True, True),
        (None, None),
    ],
)
def test_quantities_are_printed_in_canonical_form(given_: JsonValue, printed: JsonValue) -> None:
    assert canonical_quantity(given_) == printed


@given(st.from_regex(r"[+-]?[0-9]{1,12}(\.[0-9]{1,12})?([numkMGTPE]|[KMGTPE]i|e[+-]?[0-9]{1,2})?", fullmatch=True))
def test_the_canonical_form_of_a_quantity_is_stable(text: str) -> None:
    once = canonical_quantity(text)
    assert canonical_quantity(once) == once
