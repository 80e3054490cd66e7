"""The sync of a FluxInstance: the source and the Kustomization that the Flux Operator makes from it.

The Kustomization has the name and the namespace of the source, and builds ``spec.sync.path``. If the tree has that folder, the
source is assumed to be the tree itself, whatever its kind, and a build of that folder starts with both objects. Otherwise a
FluxInstance is a manifest like any other.
"""

from collections.abc import Iterator
from typing import Final

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find_object, find_str
from wharfinger.offline.store.identity import group_of

GROUP: Final = "fluxcd.controlplane.io"
SOURCE_VERSION: Final = "source.toolkit.fluxcd.io/v1"
_GIT: Final = "GitRepository"
_KINDS: Final = frozenset({_GIT, "OCIRepository", "Bucket"})


def synced_objects(obj: JsonObject) -> Iterator[JsonObject]:
    """Yield the source and the Kustomization that the Flux Operator makes from an object, if it is a FluxInstance with a sync."""
    if obj.get("kind") != "FluxInstance":
        return
    try:
        sync = find_object(obj, "spec", "sync")
        kind, path = find_str(sync, "kind"), find_str(sync, "path", default=".")
        namespace = find_str(obj, "metadata", "namespace", default="flux-system")
        name = find_str(sync, "name", default=namespace)
        url, ref = find_str(sync, "url"), find_str(sync, "ref")
        group = group_of(find_str(obj, "apiVersion"))
    except FormatError:
        return  # a server would refuse the object, which `wharfinger check` reports
    if group != GROUP or not url or kind not in _KINDS:
        return
    metadata: JsonObject = {"name": name, "namespace": namespace}
    source: JsonObject = {"url": url, "ref": {"name" if kind == _GIT else "tag": ref} if ref else {}}
    yield {"apiVersion": SOURCE_VERSION, "kind": kind, "metadata": metadata, "spec": source}
    yield {
        "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
        "kind": "Kustomization",
        "metadata": metadata,
        "spec": {"path": path, "prune": True, "sourceRef": {"kind": kind, "name": name}},
    }
