"""The merge rules of fields. Those of built-in kinds come from a data file, and those of custom kinds from their schemas."""

import pytest

from wharfinger.control_plane.kinds.type_shapes import (
    DATA,
    MAX_DATA_BYTES,
    SCALAR,
    UNKNOWN,
    Relation,
    Scalar,
    builtin_list_types,
    crd_list_types,
    is_builtin,
    metadata_list_types,
)
from wharfinger.formats.json.value import JsonObject

DEPLOYMENT = builtin_list_types("apps", "v1", "Deployment")
POD_SPEC = DEPLOYMENT.at("spec", "template", "spec")


@pytest.mark.parametrize(
    ("path", "relation", "keys"),
    [
        (("containers",), Relation.KEYED, ("name",)),
        (("containers", "ports"), Relation.KEYED, ("containerPort", "protocol")),
        (("containers", "args"), Relation.ATOMIC_LIST, ()),
        (("containers", "env", "valueFrom", "configMapKeyRef"), Relation.ATOMIC_MAP, ()),
        (("tolerations",), Relation.ATOMIC_LIST, ()),
        (("nodeSelector",), Relation.ATOMIC_MAP, ()),
        (("containers", "resources", "limits"), Relation.MAP, ()),
        (("containers", "image"), Relation.SCALAR, ()),
    ],
)
def test_pod_template_fields_have_relations_and_keys(
    path: tuple[str, ...], relation: Relation, keys: tuple[str, ...]
) -> None:
    found = POD_SPEC.at(*path)
    assert (found.relation, found.keys) == (relation, keys)


def test_all_kinds_have_the_same_metadata() -> None:
    metadata = builtin_list_types("", "v1", "ConfigMap").field("metadata")
    assert metadata is metadata_list_types()
    assert metadata.field("finalizers").relation is Relation.SET
    assert metadata.field("ownerReferences").keys == ("uid",)
    assert metadata.field("labels").relation is Relation.MAP
    assert metadata.field("labels").field("any").scalar is Scalar.STRING


def test_fields_have_their_strategic_merge_rules() -> None:
    ports = POD_SPEC.at("containers", "ports")
    assert ports.merge_key == "containerPort"
    assert "merge" in ports.strategies
    assert ports.key_defaults == {"containerPort": 0, "protocol": "TCP"}
    assert DEPLOYMENT.at("spec", "strategy").strategies == {"retainKeys"}
    assert POD_SPEC.field("volumes").strategies == {"merge", "retainKeys"}
    assert not POD_SPEC.field("tolerations").strategies


def test_an_empty_object_has_a_zero_form() -> None:
    template = {"metadata": {}, "spec": {"containers": None}}
    assert DEPLOYMENT.zero == {
        "metadata": {},
        "spec": {"selector": None, "strategy": {}, "template": template},
        "status": {},
    }
    assert builtin_list_types("", "v1", "ConfigMap").zero == {"metadata": {}}
    assert "replicas" in DEPLOYMENT.field("spec").pointers
    assert "minReadySeconds" not in DEPLOYMENT.field("spec").pointers


def test_quantities_and_arbitrary_values_have_their_own_relation() -> None:
    assert POD_SPEC.at("containers", "resources", "limits").field("cpu").relation is Relation.QUANTITY
    schema = builtin_list_types("apiextensions.k8s.io", "v1", "CustomResourceDefinition").at(
        "spec", "versions", "schema"
    )
    assert schema.field("openAPIV3Schema").field("default").relation is Relation.UNKNOWN
    nested = schema.field("openAPIV3Schema").field("properties").field("a").field("properties").field("b")
    assert nested.field("type").relation is Relation.SCALAR


def test_only_declared_fields_are_known() -> None:
    assert POD_SPEC.item.declares("anything")
    assert not POD_SPEC.declares("containerz")
    assert POD_SPEC.declares("containers")
    assert POD_SPEC.field("containerz") is UNKNOWN
    assert metadata_list_types().field("labels").declares("x")


def test_an_unknown_kind_has_only_metadata() -> None:
    assert not is_builtin("example.com", "v1", "Thing")
    assert is_builtin("", "v1", "Pod")
    thing = builtin_list_types("example.com", "v1", "Thing")
    assert thing.field("metadata") is metadata_list_types()
    assert thing.field("spec") is UNKNOWN
    assert thing.field("spec").of([1]).relation is Relation.ATOMIC_LIST
    assert thing.field("spec").of({}).relation is Relation.MAP
    assert thing.field("spec").of(1) is SCALAR
    assert thing.field("kind").of({}) is SCALAR


def test_every_name_in_the_data_is_defined() -> None:
    assert DATA.stat().st_size < MAX_DATA_BYTES / 2
    seen = 0
    for group, version, kind in [
        ("apps", "v1", "StatefulSet"),
        ("", "v1", "PersistentVolume"),
        ("batch", "v1", "CronJob"),
    ]:
        waiting = [builtin_list_types(group, version, kind)]
        while waiting:
            here = waiting.pop()
            seen += 1
            waiting += here.fields.values()
            if here.element is not None and here.element is not UNKNOWN:
                waiting.append(here.element)
    assert seen > 1000


SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "color": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "plain": {"type": "array", "items": {"type": "string"}},
                "ports": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["port", "protocol"],
                    "items": {
                        "type": "object",
                        "properties": {"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}},
                    },
                },
                "selector": {
                    "type": "object",
                    "x-kubernetes-map-type": "atomic",
                    "properties": {"a": {"type": "string"}},
                },
                "limits": {"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": True}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "half": {
                    "type": "object",
                    "x-kubernetes-preserve-unknown-fields": True,
                    "properties": {"known": {"type": "string"}},
                },
                "open": {"type": "object", "additionalProperties": True},
                "anything": {"x-kubernetes-preserve-unknown-fields": True},
                "pod": {
                    "type": "object",
                    "x-kubernetes-embedded-resource": True,
                    "properties": {"spec": {"type": "object"}},
                },
            },
        }
    },
}


def test_shapes_of_custom_kinds_come_from_their_schema() -> None:
    spec = crd_list_types(SCHEMA).field("spec")
    assert {name: inner.relation for name, inner in spec.fields.items()} == {
        "color": Relation.SCALAR,
        "tags": Relation.SET,
        "plain": Relation.ATOMIC_LIST,
        "ports": Relation.KEYED,
        "selector": Relation.ATOMIC_MAP,
        "limits": Relation.MAP,
        "free": Relation.MAP,
        "half": Relation.STRUCT,
        "open": Relation.MAP,
        "anything": Relation.UNKNOWN,
        "pod": Relation.STRUCT,
    }
    assert spec.field("ports").keys == ("port", "protocol")
    assert spec.field("ports").key_defaults == {"protocol": "TCP"}
    assert spec.field("limits").field("cpu") is SCALAR
    assert spec.field("half").field("other") is UNKNOWN
    assert spec.field("half").declares("other")
    assert not spec.declares("other")
    assert spec.field("pod").field("metadata") is metadata_list_types()


def test_a_custom_kind_without_a_schema_accepts_any_field() -> None:
    root = crd_list_types({})
    assert root.declares("spec")
    assert root.field("spec") is UNKNOWN
    assert not crd_list_types(SCHEMA).declares("other")
