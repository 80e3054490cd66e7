"""The lifecycle of namespaces: the objects that each namespace has, and the removal of all objects from a deleted namespace.

The write that creates a namespace also creates its ``default`` ServiceAccount and its ``kube-root-ca.crt`` ConfigMap. One second
after the deletion of a namespace began, all of its objects are deleted. While objects with finalizers are left, the conditions
of the namespace count them. When no object is left, the ``kubernetes`` finalizer is removed from ``spec.finalizers`` through the
``finalize`` subresource, and then the server removes the namespace.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from wharfinger.control_plane.controllers.framework.conditions import Condition, conditions
from wharfinger.control_plane.controllers.framework.controller import Ages, Controller
from wharfinger.control_plane.controllers.framework.objects import (
    ACCOUNTS,
    CONFIG_MAPS,
    NAMESPACES,
    PODS,
    is_deleted,
    key_of,
    name_of,
    uid_of,
)
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Change, ChangeType, Key
from wharfinger.formats.json.value import JsonObject, JsonValue, find_list, find_object

FINALIZER: Final = "kubernetes"
ROOT_CA: Final = "kube-root-ca.crt"
DESCRIPTION: Final = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal "
    "service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."
)
GRACE_S: Final = 1.0
"""Seconds between the deletion of a namespace and the deletion of the objects in it."""
RECHECK_S: Final = 10.0
"""Seconds between checks of a namespace that is not empty yet, in addition to checks after changes."""


class NamespaceController:
    """The controller of Namespaces; ``root_ca`` is the certificate (PEM) in each namespace's ConfigMap."""

    def __init__(self, state: ClusterState, root_ca: str) -> None:
        self._state = state
        self._root_ca = root_ca
        self._ages = Ages()

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("Namespace", self.reconcile, {NAMESPACES: self._of_namespace}, always=self._of_content)

    def _of_namespace(self, change: Change) -> Iterable[Key]:
        if change.type is ChangeType.ADDED:
            self._create_standard_objects(change.key.name, change.obj)
        return (change.key,)

    def _of_content(self, change: Change) -> Iterable[Key]:
        """Yield the namespace of a deleted object if every namespace must have this object, or if the namespace is being
        deleted.
        """
        if change.type is not ChangeType.DELETED or not change.key.namespace:
            return
        key = Key(NAMESPACES, "", change.key.namespace)
        standard = change.key.collection in (ACCOUNTS, CONFIG_MAPS) and change.key.name in ("default", ROOT_CA)
        if standard or is_deleted(self._state.get(key)):
            yield key

    def reconcile(self, key: Key) -> float | None:
        """Create the standard objects of one namespace or, if it is being deleted, delete its content. Return the seconds after
        which the namespace must be reconciled again; None if only a change requires it.
        """
        namespace = self._state.get(key)
        if namespace is None:
            self._ages.forget(key)
            return None
        if not is_deleted(namespace):
            self._create_standard_objects(key.name, namespace)
            return None
        left = GRACE_S - self._ages.age(key, f"{uid_of(namespace)} deleted")
        if left > 0:
            return left
        return self._empty(key, namespace)

    def _create_standard_objects(self, name: str, namespace: JsonObject) -> None:
        if is_deleted(namespace):
            return
        if self._state.get(Key(ACCOUNTS, name, "default")) is None:
            metadata: JsonObject = {"name": "default", "namespace": name}
            self._state.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
        if self._state.get(Key(CONFIG_MAPS, name, ROOT_CA)) is None:
            annotations: JsonObject = {"kubernetes.io/description": DESCRIPTION}
            metadata = {"name": ROOT_CA, "namespace": name, "annotations": annotations}
            data: JsonObject = {"ca.crt": self._root_ca}
            self._state.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})

    def _empty(self, key: Key, namespace: JsonObject) -> float | None:
        finalizers = find_list(namespace, "spec", "finalizers")
        if FINALIZER not in finalizers:
            return None
        for one, obj in self._content(key.name):
            if not is_deleted(obj):
                self._state.delete(one, obj)
                if one.collection == PODS and (left := self._state.get(one)) is not None:
                    self._end(one, left)
        content = self._content(key.name)
        wanted = [*_SUCCESSES, _content_remaining(content), _finalizers_remaining(content)]
        made = conditions(namespace, wanted, self._state.now())
        status = find_object(namespace, "status") | {"conditions": made}
        namespace = self._state.set_status(key, namespace, status)
        if content:
            return RECHECK_S
        kept: list[JsonValue] = [item for item in finalizers if item != FINALIZER]
        self._state.update(key, {**namespace, "spec": {"finalizers": kept}}, "finalize")
        return None

    def _end(self, key: Key, pod: JsonObject) -> None:
        if not find_list(pod, "metadata", "finalizers"):
            self._state.end_pod(key, pod)

    def _content(self, namespace: str) -> list[tuple[Key, JsonObject]]:
        """Return all objects in a namespace, of every kind."""
        found: list[tuple[Key, JsonObject]] = []
        for kind in self._state.backend.catalog.kinds():
            if kind.namespaced:
                listed = self._state.objects(kind.collection, namespace)
                found += ((key_of(kind.collection, obj), obj) for obj in listed if name_of(obj))
        return found


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


def _content_remaining(content: Sequence[tuple[Key, JsonObject]]) -> Condition:
    if not content:
        return Condition("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed")
    counts = Counter(_resource(key) for key, _ in content)
    listed = ", ".join(f"{resource} has {count} resource instances" for resource, count in sorted(counts.items()))
    message = f"Some resources are remaining: {listed}"
    return Condition("NamespaceContentRemaining", "True", "SomeResourcesRemain", message)


def _finalizers_remaining(content: Sequence[tuple[Key, JsonObject]]) -> Condition:
    counts = Counter(str(item) for _, obj in content for item in find_list(obj, "metadata", "finalizers"))
    if not counts:
        message = "All content-preserving finalizers finished"
        return Condition("NamespaceFinalizersRemaining", "False", "ContentHasNoFinalizers", message)
    listed = ", ".join(f"{finalizer} in {count} resource instances" for finalizer, count in sorted(counts.items()))
    message = f"Some content in the namespace has finalizers remaining: {listed}"
    return Condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message)


def _resource(key: Key) -> str:
    """Return ``configmaps.`` or ``deployments.apps``, in upstream's format."""
    return f"{key.collection.plural}.{key.collection.group}"
