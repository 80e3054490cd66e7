"""The OpenAPI documents: an index and one document per group version (version 3), or a single document (version 2).

The descriptions of built-in kinds are stored data (:mod:`~wharfinger.control_plane.discovery.openapi_data`); the descriptions of
custom kinds are generated from their definitions (:mod:`~wharfinger.control_plane.discovery.openapi_custom`). Documents are kept
as bytes with their hash until the catalog changes. The hash is in the index, and it is the ETag, so clients request only the
documents that have changed.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.discovery.openapi_custom import parts
from wharfinger.control_plane.discovery.openapi_data import document, raw_document, version_3_names
from wharfinger.control_plane.discovery.openapi_protobuf import version_2_protobuf
from wharfinger.formats.json.value import JsonObject, encode_json, find, find_object

VERSION_2_PROTOBUF_ASKED: Final = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
VERSION_2_PROTOBUF_TYPE: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
"""The media type that clients request, and the media type of the response.

RFC 9110 §8.3.1 does not allow the ``@`` in the requested type.
"""
_CUSTOM_INFO: Final[JsonObject] = {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"}


@dataclass(frozen=True, slots=True)
class Document:
    """An OpenAPI document in the form in which it is sent to clients, with its hash."""

    body: bytes
    hash: str
    """The SHA-512 of the JSON form in capital hex digits; it is the ETag, and part of the URL in the index."""


class OpenApi:
    """The OpenAPI documents of a catalog; each is made when it is requested, and kept while the catalog does not change."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._generation = -1
        self._kept: dict[str, Document] = {}
        self._fixed: dict[str, Document] = {}

    def index(self) -> Document:
        """Return the document of ``/openapi/v3``: the URLs of all version 3 documents."""
        return self._cached("index", self._index)

    def version_3(self, name: str) -> Document | None:
        """Return the version 3 document with a name such as ``apis/apps/v1``, or None if it does not exist."""
        if name not in self._fixed and (body := raw_document(f"v3/{name}")) is not None:
            self._fixed[name] = _made(body)
        if name in self._fixed:
            return self._fixed[name]
        served = self._custom_versions().get(name, [])
        return self._cached(name, lambda: encode_json(_custom_document(served))) if served else None

    def version_2(self) -> Document:
        """Return the document of ``/openapi/v2``."""
        return self._cached("v2", self._version_2)

    def version_2_protobuf(self) -> Document:
        """Return the document of ``/openapi/v2`` in protobuf, with the hash of its JSON form."""
        made = self._cached("v2 protobuf", lambda: version_2_protobuf(self._whole()))
        return Document(made.body, self.version_2().hash)

    def _index(self) -> bytes:
        names = sorted({*version_3_names(), *self._custom_versions()})
        paths: JsonObject = {}
        for name in names:
            if (found := self.version_3(name)) is not None:
                paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={found.hash}"}
        return encode_json({"paths": paths})

    def _version_2(self) -> bytes:
        if not self._custom_versions():
            return raw_document("v2") or b""
        return encode_json(self._whole())

    def _whole(self) -> JsonObject:
        """Return the OpenAPI v2 document of all kinds."""
        whole = document("v2")
        paths, definitions = dict(find_object(whole, "paths")), dict(find_object(whole, "definitions"))
        for served in (item for listed in self._custom_versions().values() for item in listed):
            found = parts(served, "v2")
            paths |= find_object(found, "paths")
            definitions |= find_object(found, "definitions")
        return {**whole, "paths": _sorted(paths), "definitions": _sorted(definitions)}

    def _custom_versions(self) -> dict[str, list[Served]]:
        found: dict[str, list[Served]] = {}
        for kind in self._catalog.kinds():
            if kind.custom:
                for version in kind.versions:
                    found.setdefault(f"apis/{kind.group}/{version.name}", []).append(Served(kind, version))
        return found

    def _cached(self, name: str, make: Callable[[], bytes]) -> Document:
        if self._generation != self._catalog.generation:
            self._generation = self._catalog.generation
            self._kept.clear()
        if name not in self._kept:
            self._kept[name] = _made(make())
        return self._kept[name]


def _made(body: bytes) -> Document:
    return Document(body, hashlib.sha512(body).hexdigest().upper())


def _sorted(value: JsonObject) -> JsonObject:
    return {name: value[name] for name in sorted(value)}


def _custom_document(served: list[Served]) -> JsonObject:
    """Return the version 3 document of a custom group version."""
    template = document("custom/v3")
    shared = {
        name: item for name, item in find_object(template, "components", "schemas").items() if "token" not in name
    }
    if not any(item.version.scale for item in served):
        shared = {name: item for name, item in shared.items() if ".autoscaling." not in name}
    paths: JsonObject = {}
    schemas: JsonObject = shared
    for item in served:
        found = parts(item, "v3")
        paths |= find_object(found, "paths")
        schemas |= find_object(found, "definitions")
    components: JsonObject = {"schemas": _sorted(schemas)}
    return {
        "openapi": find(template, "openapi"),
        "info": _CUSTOM_INFO,
        "paths": _sorted(paths),
        "components": components,
    }
