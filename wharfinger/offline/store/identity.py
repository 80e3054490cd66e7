"""The identity of an object in a tree of manifests: its kind with its API group, its namespace and its name.

It is also the id in the fixpoint engine, so the same value names a node, a dependency and an object. The API version is not
part of it: an object has the same identity in all versions of its kind.
"""

from functools import lru_cache
from typing import Final

from wharfinger.formats.json.value import JsonObject, checksum, find_str
from wharfinger.kube.cluster_scoped import CLUSTER_SCOPED
from wharfinger.kube.names import is_label
from wharfinger.runtime.fixpoint.model import Id

_NO_SEGMENT: Final = frozenset("/%\0")
_DIGEST: Final = 10
DEFAULT_NAMESPACE: Final = "default"
CUSTOM_CLUSTER_SCOPED: Final = frozenset({("wharfinger.dev", "Module"), ("wharfinger.dev", "PackageRepository")})
"""Cluster-scoped kinds of Wharfinger itself."""


def kind_id(group: str, kind: str) -> str:
    """Return a kind in the form that ids use: ``HelmRelease.helm.toolkit.fluxcd.io``, or ``ConfigMap`` in the core group."""
    return f"{kind}.{group}" if group else kind


def group_of(api_version: str) -> str:
    """Return the group of an ``apiVersion``; "" is the core group."""
    return api_version.rpartition("/")[0]


def is_cluster_scoped(group: str, kind: str, custom: frozenset[tuple[str, str]] = frozenset()) -> bool:
    """Return whether objects of a kind have no namespace; ``custom`` are the cluster-scoped kinds that the tree defines."""
    return (group, kind) in CLUSTER_SCOPED or (group, kind) in CUSTOM_CLUSTER_SCOPED or (group, kind) in custom


def object_id(obj: JsonObject, namespace: str = "", custom: frozenset[tuple[str, str]] = frozenset()) -> Id:
    """Return the id of an object; ``namespace`` is the default for objects of namespaced kinds."""
    kind, is_scoped = _kind(find_str(obj, "apiVersion"), find_str(obj, "kind"), custom)
    own = find_str(obj, "metadata", "namespace") or namespace
    return Id(kind, "" if is_scoped else own, find_str(obj, "metadata", "name") or _generated_name(obj))


@lru_cache(maxsize=1024)
def _kind(api_version: str, kind: str, custom: frozenset[tuple[str, str]]) -> tuple[str, bool]:
    """Return the kind in the form that ids use, and whether objects of the kind have no namespace."""
    group = group_of(api_version)
    return kind_id(group, kind), is_cluster_scoped(group, kind, custom)


def naming_problem(who: Id) -> str:
    """Return why an API server would refuse the name or the namespace of an object; "" if it would accept both.

    A name becomes a segment of a URL path and, in a build without a cluster, of a file path (``IsValidPathSegmentName`` of
    apimachinery).
    """
    if who.namespace and not is_label(who.namespace):
        return f"metadata.namespace: {who.namespace!r} cannot be a namespace; correct it"
    if who.name in {".", ".."} or _NO_SEGMENT & set(who.name):
        return f"metadata.name: {who.name!r} cannot be a name; correct it"
    return ""


def _generated_name(obj: JsonObject) -> str:
    """Return a stand-in for the name that a server generates: the prefix and a digest of the object."""
    prefix = find_str(obj, "metadata", "generateName")
    return f"{prefix}{checksum(obj).removeprefix('sha256:')[:_DIGEST]}" if prefix else ""


def shown(who: Id) -> str:
    """Return an id as a text for people, such as ``HelmRelease apps/web``."""
    kind = who.kind.partition(".")[0]
    return f"{kind} {who.namespace}/{who.name}" if who.namespace else f"{kind} {who.name}"
