"""The life of namespaces: what every one has, and how one that is deleted is emptied.

A new namespace gets its ``default`` ServiceAccount and the ``kube-root-ca.crt`` ConfigMap. One that is being deleted is
emptied; while objects remain (finalizers), its conditions say which, and when none is left the ``kubernetes`` finalizer is
taken out of ``spec.finalizers`` through the ``finalize`` subresource, which lets the server drop it.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from wharfinger.cluster.control_plane.controllers.conditions import Condition, conditions
from wharfinger.cluster.control_plane.controllers.writes import (
    NOTHING,
    Create,
    Delete,
    Patch,
    Plan,
    Write,
    status_write,
)
from wharfinger.cluster.resource import ObjectKey, name_of
from wharfinger.formats.json_value import JsonObject, JsonValue, find, find_list, find_object, find_str

FINALIZER: Final = "kubernetes"
ROOT_CA: Final = "kube-root-ca.crt"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)
LOOK_AGAIN_S: Final = 10.0
"""How often a namespace that does not become empty is looked at, changes or not."""


def is_terminating(namespace: JsonObject) -> bool:
    """Whether it is being deleted."""
    return find(namespace, "metadata", "deletionTimestamp") is not None


def reconcile_active(namespace: JsonObject, *, has_account: bool, has_root_ca: bool, root_ca: str) -> Plan:
    """What a namespace lacks; ``root_ca`` is the certificate its ConfigMap is made with (PEM)."""
    name = name_of(namespace)
    writes: list[Write] = []
    if not has_account:
        metadata: JsonObject = {"name": "default", "namespace": name}
        writes.append(Create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}))
    if not has_root_ca:
        annotations: JsonObject = {"kubernetes.io/description": DESCRIPTION}
        metadata = {"name": ROOT_CA, "namespace": name, "annotations": annotations}
        data: JsonObject = {"ca.crt": root_ca}
        writes.append(Create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}))
    return Plan(tuple(writes))


def reconcile_terminating(
    key: ObjectKey, namespace: JsonObject, content: Sequence[tuple[ObjectKey, JsonObject]], now: datetime
) -> Plan:
    """Empty a namespace; ``content`` is all that is in it, read after it was marked."""
    finalizers = find_list(namespace, "spec", "finalizers")
    if FINALIZER not in finalizers:
        return NOTHING
    writes: list[Write] = [
        Delete(one, find_str(obj, "metadata", "uid"))
        for one, obj in content
        if find(obj, "metadata", "deletionTimestamp") is None
    ]
    said = [*_SUCCESSES, _content_remaining(content), _finalizers_remaining(content)]
    status = find_object(namespace, "status") | {"conditions": conditions(namespace, said, now)}
    if content:
        held = all(find(obj, "metadata", "deletionTimestamp") is not None for _, obj in content)
        told = status_write(key, namespace, status) if held else []
        return Plan((*writes, *told), LOOK_AGAIN_S)
    kept: list[JsonValue] = [item for item in finalizers if item != FINALIZER]
    finalized = Patch(key, {"spec": {"finalizers": kept}}, "finalize")
    return Plan((*status_write(key, namespace, status), finalized))


_SUCCESSES: Final = (
    Condition(
        "NamespaceDeletionDiscoveryFailure", "False", "ResourcesDiscovered", "All resources successfully discovered"
    ),
    Condition(
        "NamespaceDeletionGroupVersionParsingFailure",
        "False",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    Condition(
        "NamespaceDeletionContentFailure",
        "False",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
)


def _content_remaining(content: Sequence[tuple[ObjectKey, JsonObject]]) -> Condition:
    if not content:
        return Condition("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed")
    counts = Counter(_resource(key) for key, _ in content)
    listed = ", ".join(f"{resource} has {count} resource instances" for resource, count in sorted(counts.items()))
    message = f"Some resources are remaining: {listed}"
    return Condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", message)


def _finalizers_remaining(content: Sequence[tuple[ObjectKey, JsonObject]]) -> Condition:
    counts = Counter(str(item) for _, obj in content for item in find_list(obj, "metadata", "finalizers"))
    if not counts:
        message = "All content-preserving finalizers finished"
        return Condition("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", message)
    listed = ", ".join(f"{finalizer} in {count} resource instances" for finalizer, count in sorted(counts.items()))
    message = f"Some content in the namespace has finalizers remaining: {listed}"
    return Condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message)


def _resource(key: ObjectKey) -> str:
    """``configmaps.`` or ``deployments.apps``, as upstream writes it."""
    return f"{key.resource.plural}.{key.resource.group}"
