"""Custom kinds in OpenAPI: their schemas and their paths, as a kube-apiserver publishes them.

Paths are copied from a sample: ``custom/v3`` and ``custom/v2`` in the data are the documents of a server with two sample kinds,
one namespaced and one cluster-scoped. The names of the sample kinds are replaced with the names of the actual kind. Schemas are
expanded (embedded objects and int-or-string values are written out). For version 2, schemas are reduced to what kubectl can
read (``ToStructuralOpenAPIV2`` in apiextensions-apiserver).
"""

from collections.abc import Callable, Iterable
from typing import Final

from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.discovery.openapi_data import MAX_BYTES, document
from wharfinger.formats.json.value import (
    JsonObject,
    as_object,
    decode_json,
    encode_json,
    find,
    find_object,
    strings_of,
)

_MORE: Final = "More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_METADATA: Final = f"Standard object's metadata. {_MORE}#metadata"
_EMBEDDED: Final[JsonObject] = {
    "apiVersion": {
        "description": f"apiVersion defines the versioned schema of this representation of an object. {_MORE}#resources",
        "type": "string",
    },
    "kind": {
        "description": f"kind is a string value representing the type of this object. In CamelCase. {_MORE}#types-kinds",
        "type": "string",
    },
}
_KEPT: Final = frozenset({"default", "example", "additionalProperties"})
"""The members of a schema that are published even if they are empty."""
_COMBINERS: Final = ("allOf", "oneOf", "anyOf", "not")
_OBJECT_META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_CLUSTER: Final = ("Clustertoken", "Clusterlisttoken")
_NAMESPACED: Final = ("Kindtoken", "Listtoken")


def schema_name(served: Served, kind: str = "") -> str:
    """Return the name of a schema, such as ``com.example.v1.Gadget``, which begins with the group in reverse."""
    group = ".".join(reversed(served.kind.group.split(".")))
    return f"{group}.{served.version.name}.{kind or served.kind.kind}"


def parts(served: Served, version: str) -> JsonObject:
    """Return ``paths`` and ``definitions`` of one kind, for version ``v3`` or ``v2``."""
    kind, list_kind = _NAMESPACED if served.kind.namespaced else _CLUSTER
    template = document(f"custom/{version}")
    held = template if version == "v2" else {**template, "definitions": find(template, "components", "schemas")}
    plural = f"{kind.lower()}s"
    chosen: JsonObject = {
        "paths": _only(find_object(held, "paths"), served, plural),
        "definitions": {
            name: value
            for name, value in find_object(held, "definitions").items()
            if name.endswith((f".{kind}", f".{list_kind}"))
        },
    }
    text = encode_json(chosen).decode()
    for old, new in _replacements(served, kind, list_kind, plural):
        text = text.replace(old, new)
    found = as_object(decode_json(text, max_bytes=MAX_BYTES, what="OpenAPI"), "OpenAPI")
    definitions = find_object(found, "definitions")
    lists = schema_name(served, served.kind.list_kind)
    selectable = _selectable(served)
    return {
        "paths": found["paths"],
        "definitions": {
            schema_name(served): {**_schema(served, version), **_gvk(served), **selectable},
            lists: {**find_object(definitions, lists), **selectable},
        },
    }


def _only(paths: JsonObject, served: Served, plural: str) -> JsonObject:
    """Return the paths of the sample kind ``plural``, without the paths of subresources that the actual kind does not have."""
    known = {item.name for item in served.version.subresources}
    found: JsonObject = {}
    for path, item in paths.items():
        tail = path.rpartition("/")[2]
        if f"/{plural}" in path and (tail not in {"status", "scale"} or tail in known):
            found[path] = item
    return found


def _replacements(served: Served, kind: str, list_kind: str, plural: str) -> Iterable[tuple[str, str]]:
    """Yield each name of the sample kind with its replacement; a name that contains another name precedes that name."""
    group, version, name = served.kind.group, served.version.name, served.kind.kind
    camel = _identifier(group.removesuffix(".k8s.io"))
    article = "an" if name[0].lower() in "aeiou" else "a"
    described = f" {name}" if name.endswith("s") and not name.endswith("ss") else f" {article} {name}"
    yield f" a {kind}", described
    yield plural, served.kind.plural
    yield list_kind, served.kind.list_kind
    yield kind, name
    yield "grouptoken.example", group
    yield "example.grouptoken", ".".join(reversed(group.split(".")))
    yield "GrouptokenExample", camel[:1].upper() + camel[1:]
    yield "grouptokenExample", camel
    yield "V7beta3", version[:1].upper() + version[1:]
    yield "v7beta3", version


def _identifier(text: str) -> str:
    """Return the letters and digits of a text in camel case: with a capital after each omitted character."""
    found, capital = "", False
    for index, char in enumerate(text):
        if char.isalpha() or char == "_" or (index and char.isdigit()):
            found += char.upper() if capital else char
            capital = False
        else:
            capital = True
    return found


def _gvk(served: Served) -> JsonObject:
    gvk: JsonObject = {"group": served.kind.group, "kind": served.kind.kind, "version": served.version.name}
    return {"x-kubernetes-group-version-kind": [gvk]}


def _selectable(served: Served) -> JsonObject:
    if not served.version.selectable:
        return {}
    return {"x-kubernetes-selectable-fields": [{"fieldPath": path} for path in served.version.selectable]}


def _schema(served: Served, version: str) -> JsonObject:
    """Return the schema of a kind, without ``x-kubernetes-group-version-kind``."""
    schema = served.version.schema
    old = version == "v2"
    if not schema or (old and find(schema, "x-kubernetes-preserve-unknown-fields") is True):
        return {"type": "object"}
    found = _reduced(schema) if old else _expanded(schema)
    sample = find_object(document(f"custom/{version}"), *_sample(version))
    own: JsonObject = {name: find(sample, "properties", name) for name in ("apiVersion", "kind")}
    return {**found, "properties": {**find_object(found, "properties"), **own, "metadata": _reference(version)}}


def _sample(version: str) -> tuple[str, ...]:
    name = "example.grouptoken.v7beta3.Kindtoken"
    return ("definitions", name) if version == "v2" else ("components", "schemas", name)


def _reference(version: str) -> JsonObject:
    """Return a reference to the schema of ``metadata``."""
    if version == "v2":
        return {"description": _METADATA, "$ref": f"#/definitions/{_OBJECT_META}"}
    return {"description": _METADATA, "allOf": [{"$ref": f"#/components/schemas/{_OBJECT_META}"}]}


def _expanded(schema: JsonObject) -> JsonObject:
    """Return a schema in the form of OpenAPI version 3. The Kubernetes extensions for int-or-string values and embedded objects
    are replaced by standard keywords.
    """
    found = _mapped(schema, _expanded)
    if find(schema, "x-kubernetes-int-or-string") is True and not any(name in schema for name in ("anyOf", "allOf")):
        found["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if find(schema, "x-kubernetes-embedded-resource") is True:
        required = [name for name in strings_of(schema.get("required")) if name not in _EMBEDDED]
        found["properties"] = {**find_object(found, "properties"), **_EMBEDDED, "metadata": _reference("v3")}
        found["required"] = [*required, "kind", "apiVersion"]
    return found


def _reduced(schema: JsonObject) -> JsonObject:
    """Return a schema in the form of OpenAPI version 2, reduced to what kubectl can read."""
    found = {name: value for name, value in _mapped(schema, _reduced).items() if name not in {*_COMBINERS, "default"}}
    nullable = found.pop("nullable", None) is True
    open_end = find(schema, "x-kubernetes-preserve-unknown-fields") is True
    if nullable or open_end:
        found = {name: value for name, value in found.items() if name not in {"items", "properties"}}
    kind = found.get("type")
    if nullable or (kind == "array" and "items" not in found) or (open_end and kind == "object"):
        found.pop("type", None)
    properties = find_object(schema, "properties") if "properties" in found else {}
    nullables = {name for name, value in properties.items() if find(value, "nullable") is True}
    required = [name for name in strings_of(found.get("required")) if name not in nullables]
    if find(schema, "additionalProperties", "nullable") is True:
        required = []
    found.pop("required", None)
    return {**found, "required": [*required]} if required else found


def _mapped(schema: JsonObject, change: Callable[[JsonObject], JsonObject]) -> JsonObject:
    """Return a copy of a schema in which ``change`` has replaced each schema directly inside it. Empty members are left out, as
    in Go.
    """
    found: JsonObject = {}
    for name, value in schema.items():
        if name in {"items", "additionalProperties"} and isinstance(value, dict):
            found[name] = change(value)
        elif name == "properties" and isinstance(value, dict):
            found[name] = {key: change(item) if isinstance(item, dict) else item for key, item in value.items()}
        elif (value is not False and value not in (None, "", [])) or name in _KEPT:
            found[name] = value
    return found
