"""OpenAPI, as thin as clients bear: enough for kubectl and helm to see which kinds take field validation.

Version 3 documents name each kind's operations with their parameters; custom kinds bring their schema along (so that
``kubectl explain`` works for them), built-in ones are objects. Patch bodies are left undescribed on purpose: clients then
make strategic merge patches from their own types.

Version 2 in protobuf is for one client: kubectl asks for it, and for nothing else, where a file holds a ``kind: List``. It
describes no kind, so kubectl checks nothing itself and leaves every item to the server's field validation, as it does with
files that hold no list.
"""

import hashlib
from typing import Final

from wharfinger.cluster.control_plane.catalog import Catalog, Served
from wharfinger.formats.json_value import JsonObject, JsonValue, encode_json

VERSION_2_PROTOBUF_ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
VERSION_2_PROTOBUF_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""As clients ask for it, which is no media type (RFC 9110 §8.3.1 has no ``@``), and as servers answer, which is one."""
_VERSION: Final = "v1.36.2"
_WRITE_PARAMETERS: Final = ("dryRun", "fieldManager", "fieldValidation")


def _document_name(group: str, version: str) -> str:
    return f"apis/{group}/{version}" if group else f"api/{version}"


def index(catalog: Catalog) -> JsonObject:
    """``/openapi/v3``: where each group version's document is, with a hash for caches."""
    paths: JsonObject = {}
    for group, versions in catalog.groups().items():
        for version in versions:
            name = _document_name(group, version)
            found = document(catalog, name)
            digest = hashlib.sha256(encode_json(found)).hexdigest().upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
    return {"paths": paths}


def document(catalog: Catalog, name: str) -> JsonObject | None:
    """One group version's document (``apis/apps/v1``), or None where it is not served."""
    parts = name.split("/")
    group, version = ("", parts[1]) if parts[0] == "api" and len(parts) == 2 else ("", "")
    if parts[0] == "apis" and len(parts) == 3:
        group, version = parts[1], parts[2]
    served = catalog.resources(group, version) if version else ()
    if not served:
        return None
    paths: JsonObject = {}
    schemas: JsonObject = {}
    for item in served:
        paths.update(_paths(name, item))
        schemas[schema_name(item)] = _schema(item)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": _VERSION},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def schema_name(served: Served) -> str:
    """``com.example.v1.Gadget``: the group backwards."""
    group = ".".join(reversed((served.kind.group or "core.api.k8s.io").split(".")))
    return f"{group}.{served.version.name}.{served.kind.kind}"


def _gvk(served: Served) -> JsonObject:
    return {"group": served.kind.group, "version": served.version.name, "kind": served.kind.kind}


def _schema(served: Served) -> JsonObject:
    schema: JsonObject = {"type": "object", **served.version.schema}
    return {**schema, "x-kubernetes-group-version-kind": [_gvk(served)]}


def _paths(name: str, served: Served) -> JsonObject:
    scope = "/namespaces/{namespace}" if served.kind.namespaced else ""
    collection = f"/{name}{scope}/{served.kind.plural}"
    return {
        collection: {"post": _operation(served, "post"), "get": _operation(served, "list")},
        f"{collection}/{{name}}": {
            "get": _operation(served, "get"),
            "put": _operation(served, "put"),
            "patch": _operation(served, "patch"),
            "delete": _operation(served, "delete"),
        },
    }


def _operation(served: Served, action: str) -> JsonObject:
    writes = action in {"post", "put", "patch"}
    parameters: list[JsonValue] = [
        {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
        for name in (_WRITE_PARAMETERS if writes else ())
    ]
    content: JsonObject = {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema_name(served)}"}}}
    return {
        "operationId": f"{action}{served.kind.kind}",
        "parameters": parameters,
        "responses": {"200": {"description": "OK", "content": content}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(served),
    }


def version_2_protobuf() -> bytes:
    """``/openapi/v2`` as gnostic's ``openapi.v2.Document``: its ``swagger`` (1) and ``info`` (2: title, version) only."""
    info = _field(1, b"Kubernetes") + _field(2, _VERSION.encode())
    return _field(1, b"2.0") + _field(2, info)


def _field(number: int, content: bytes) -> bytes:
    """A length-delimited field of protobuf; short content only."""
    return bytes((number << 3 | 2, len(content))) + content


def version_2(catalog: Catalog) -> JsonObject:
    """``/openapi/v2``: definitions only."""
    definitions: JsonObject = {}
    for group, versions in catalog.groups().items():
        for version in versions:
            definitions.update({schema_name(item): _schema(item) for item in catalog.resources(group, version)})
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": _VERSION},
        "paths": {},
        "definitions": definitions,
    }
