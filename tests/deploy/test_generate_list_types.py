"""The generator of list_types.json: from published definitions to the file's letters."""

from deploy.generate_list_types import Object, build, short

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
PRINTED: dict[str, Object] = {
    "apps.v1.Thing": {"zero": {"metadata": {}, "name": ""}, "pointers": ["replicas", "ports"]}
}


def test_the_file_holds_what_stable_kinds_reach() -> None:
    table = build(DEFINITIONS, PRINTED)
    assert table["kinds"] == {"apps/v1/Thing": "apps.v1.Thing"}
    ports: Object = {
        "l": "map",
        "e": "core.v1.ContainerPort",
        "k": "containerPort protocol",
        "d": {"protocol": "TCP"},
        "x": "containerPort",
        "s": "merge",
    }
    assert table["types"] == {
        "apps.v1.Thing": {
            "n": "name",
            "p": "replicas",
            "q": "size",
            "s": "paused",
            "f": {
                "metadata": "meta.v1.ObjectMeta",
                "anything": "",
                "selector": {"m": "scalar", "a": 1},
                "args": {"l": "atomic", "e": "scalar"},
                "ports": ports,
            },
            "z": {"metadata": {}, "name": ""},
        },
        "core.v1.ContainerPort": {"s": "containerPort"},
        "meta.v1.ObjectMeta": {"f": {"labels": {"m": "scalar"}}},
    }


def test_short_names() -> None:
    assert short("io.k8s.api.apps.v1.Deployment") == "apps.v1.Deployment"
    assert short("com.example.v1.Thing") == "com.example.v1.Thing"
