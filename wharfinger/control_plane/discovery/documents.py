"""Discovery of the served resources, in the old form (one document per group version) and the aggregated form (KEP-3352)."""

import base64
import hashlib
from typing import Final

from wharfinger.control_plane.catalog.catalog import Catalog, Served
from wharfinger.control_plane.discovery import health
from wharfinger.control_plane.kinds.kind import Kind, Subresource
from wharfinger.control_plane.kubernetes_version import chosen
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.version_option import RELEASES

_MINOR: Final = int(chosen().partition(".")[2])
VERSION: Final[JsonObject] = {
    "major": "1",
    "minor": str(_MINOR),
    "emulationMajor": "1",
    "emulationMinor": str(_MINOR),
    "minCompatibilityMajor": "1",
    "minCompatibilityMinor": str(_MINOR - 1),
    "gitVersion": RELEASES[chosen()],
    "gitCommit": "0",
    "gitTreeState": "clean",
    "buildDate": "2026-07-01T00:00:00Z",
    "goVersion": "go1.26.6",
    "compiler": "gc",
    "platform": "linux/amd64",
}
"""The document of ``/version``: the Kubernetes version that this server follows."""


_PATHS: Final = (
    "/.well-known/openid-configuration",
    "/api",
    "/api/v1",
    "/apis",
    "/apis/",
    "/flagz",
    "/metrics",
    "/metrics/slis",
    "/openapi/v2",
    "/openapi/v3",
    "/openapi/v3/",
    "/openid/v1/jwks",
    "/statusz",
    "/version",
)


def core_versions(address: str) -> JsonObject:
    """Return the document of ``/api``."""
    return {
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    }


def _group_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


def _group(group: str, versions: tuple[str, ...]) -> JsonObject:
    listed: list[JsonValue] = [{"groupVersion": _group_version(group, name), "version": name} for name in versions]
    return {"name": group, "versions": listed, "preferredVersion": listed[0]}


def groups(catalog: Catalog) -> JsonObject:
    """Return the document of ``/apis``."""
    listed: list[JsonValue] = [_group(name, versions) for name, versions in catalog.groups().items() if name]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(catalog: Catalog, name: str) -> JsonObject | None:
    """Return the document of ``/apis/<group>``, or None if there is no such group."""
    versions = catalog.groups().get(name)
    return None if not versions else {"kind": "APIGroup", "apiVersion": "v1", **_group(name, versions)}


def resources(catalog: Catalog, group_name: str, version: str) -> JsonObject | None:
    """Return the document of ``/apis/<group>/<version>``, or None if this version is not served; the core group's document has
    no apiVersion.
    """
    served = catalog.resources(group_name, version)
    if not served:
        return None
    listed: list[JsonValue] = [entry for item in served for entry in _entries(item)]
    head: JsonObject = {"kind": "APIResourceList", **({"apiVersion": "v1"} if group_name else {})}
    return {**head, "groupVersion": _group_version(group_name, version), "resources": listed}


def _entries(served: Served) -> list[JsonObject]:
    kind = served.kind
    entry: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    if not kind.virtual:
        entry["storageVersionHash"] = kind.storage_hash or storage_version_hash(kind)
    entries = [entry]
    for item in served.version.subresources:
        sub: JsonObject = {
            "name": f"{kind.plural}/{item.name}",
            "singularName": "",
            "namespaced": kind.namespaced,
            **({"group": item.group, "version": item.version} if item.group else {}),
            "kind": item.kind,
            "verbs": list(item.verbs),
        }
        entries.append(sub)
    return entries


def storage_version_hash(kind: Kind) -> str:
    """Return the hash by which clients detect a changed storage version (``discovery.StorageVersionHash``)."""
    text = f"{kind.group}/{kind.storage_version}/{kind.kind}"
    return base64.b64encode(hashlib.sha256(text.encode()).digest()[:8]).decode()


def aggregated(catalog: Catalog, *, core: bool) -> JsonObject:
    """Return the core group, or all groups except the core group, with all their resources in one document."""
    items: list[JsonValue] = []
    for name, versions in catalog.groups().items():
        if (name == "") == core:
            listed: list[JsonValue] = [
                {
                    "version": version,
                    "resources": [_aggregated(item) for item in catalog.resources(name, version)],
                    "freshness": "Current",
                }
                for version in versions
            ]
            items.append({"metadata": {"name": name} if name else {}, "versions": listed})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated(served: Served) -> JsonObject:
    kind = served.kind
    entry: JsonObject = {
        "resource": kind.plural,
        "responseKind": _response_kind(served, Subresource("", kind.kind, ())),
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list(kind.verbs),
    }
    if kind.short_names:
        entry["shortNames"] = list(kind.short_names)
    if kind.categories:
        entry["categories"] = list(kind.categories)
    listed: list[JsonValue] = [
        {"subresource": item.name, "responseKind": _response_kind(served, item), "verbs": list(item.verbs)}
        for item in served.version.subresources
    ]
    if listed:
        entry["subresources"] = listed
    return entry


def _response_kind(served: Served, item: Subresource) -> JsonObject:
    """Return the kind of a subresource; for built-in kinds, an empty group and version mean the group and version of the
    resource.
    """
    if served.kind.custom and not item.group:
        return {"group": served.kind.group, "version": served.version.name, "kind": item.kind}
    return {"group": item.group, "version": item.version, "kind": item.kind}


def paths(catalog: Catalog) -> JsonObject:
    """Return the document of ``/``: the list of paths."""
    listed = [*_PATHS, *health.paths()]
    for name, versions in catalog.groups().items():
        if name:
            listed += [f"/apis/{name}", *(f"/apis/{name}/{version}" for version in versions)]
    return {"paths": [*sorted(listed)]}
