"""The generator of list_types.json. It turns published definitions into the codes of that file."""

from tools.kubernetes.generate_list_types import Json, Object, build, short

DEFINITIONS: dict[str, Object] = {
    "io.k8s.api.apps.v1.Thing": {
        "x-kubernetes-group-version-kind": [
            {"group": "apps", "version": "v1", "kind": "Thing"},
            {"group": "apps", "version": "v1alpha1", "kind": "Thing"},
        ],
        "properties": {
            "metadata": {"$ref": "#/$defs/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
            "size": {"$ref": "#/$defs/io.k8s.apimachinery.pkg.api.resource.Quantity"},
            "replicas": {"type": ["integer", "null"]},
            "name": {"type": "string"},
            "paused": {"type": ["boolean", "null"]},
            "anything": {"type": "object"},
            "selector": {"additionalProperties": {"type": "string"}, "x-kubernetes-map-type": "atomic"},
            "args": {"type": ["array", "null"], "items": {"type": "string"}},
            "ports": {
                "type": "array",
                "items": {"$ref": "#/$defs/io.k8s.api.core.v1.ContainerPort"},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["containerPort", "protocol"],
                "x-kubernetes-patch-merge-key": "containerPort",
                "x-kubernetes-patch-strategy": "merge",
            },
        },
    },
    "io.k8s.api.core.v1.ContainerPort": {"properties": {"containerPort": {"type": "integer"}}},
    "io.k8s.api.core.v1.Unreached": {"properties": {"x": {"type": "string"}}},
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "properties": {"labels": {"additionalProperties": {"type": "string"}}}
    },
    "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
}
STRING: Object = {"type": "string", "kind": "string", "pointer": False, "of": None}
MEMBERS: list[Json] = [
    {"name": "metadata", "type": "v1.ObjectMeta", "kind": "struct", "pointer": False, "embedded": ""},
    {"name": "name", **STRING, "type": "v1.ThingName", "embedded": ""},
    {"name": "replicas", "type": "int32", "kind": "int32", "pointer": True, "embedded": ""},
    {"name": "ports", "type": "v1.Ports", "kind": "slice", "pointer": False, "embedded": "Wiring", "of": None},
    {"name": "args", "type": "[]string", "kind": "slice", "pointer": False, "embedded": "", "of": STRING},
    {"name": "unpublished", **STRING, "embedded": ""},
]
PRINTED: dict[str, Object] = {"apps.v1.Thing": {"zero": {"metadata": {}, "name": ""}, "members": MEMBERS}}


def test_the_file_contains_the_types_that_stable_kinds_reach() -> None:
    table = build(DEFINITIONS, PRINTED)
    assert table["kinds"] == {"apps/v1/Thing": "apps.v1.Thing"}
    ports: Object = {
        "l": "map",
        "e": "core.v1.ContainerPort",
        "k": "containerPort protocol",
        "d": {"protocol": "TCP"},
        "x": "containerPort",
        "s": "merge",
        "g": "v1.Ports",
    }
    assert table["types"] == {
        "apps.v1.Thing": {
            "o": "metadata name=s:v1.ThingName replicas=*i ports args size=q paused=b anything selector",
            "f": {
                "metadata": "meta.v1.ObjectMeta",
                "anything": "",
                "selector": {"m": "=s", "a": 1},
                "args": {"l": "atomic", "e": "=s"},
                "ports": ports,
            },
            "e": {"Wiring": "ports"},
            "z": {"metadata": {}, "name": ""},
        },
        "core.v1.ContainerPort": {"o": "containerPort=l"},
        "meta.v1.ObjectMeta": {"o": "labels", "f": {"labels": {"m": "=s"}}},
    }


def test_type_names_of_kubernetes_are_shortened() -> None:
    assert short("io.k8s.api.apps.v1.Deployment") == "apps.v1.Deployment"
    assert short("com.example.v1.Thing") == "com.example.v1.Thing"
