"""The server's own work when a CustomResourceDefinition or an instance of one changes.

This work runs inside the write that caused it, as an observer of the backend. So a definition is already served when its
creation is answered; the answer itself still shows the definition as it was created, as upstream does.
"""

from typing import Final

from wharfinger.control_plane.api.apiextensions.status import is_established, settled_status, terminating_status
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import (
    CLEANUP_FINALIZER,
    METADATA,
    collection_of_definition,
    kind_of_definition,
)
from wharfinger.control_plane.kinds.kind import KindVersion
from wharfinger.control_plane.merging.managed_fields import record_update
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, Key
from wharfinger.control_plane.verbs.deletion import delete
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.control_plane.verbs.updating import same
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str

DEFINITIONS: Final = Collection("apiextensions.k8s.io", "customresourcedefinitions")
MANAGER: Final = "kube-apiserver"


class DefinitionController:
    """The controller that updates the catalog of served kinds and the status of CustomResourceDefinitions. It is called with
    every change of an object.
    """

    def __init__(self, backend: Backend, served: Served) -> None:
        self._backend = backend
        self._served = served
        self._served_as: dict[Collection, tuple[JsonObject, JsonValue]] = {}
        """The spec and the accepted names of each served CustomResourceDefinition, by the collection of its resources."""

    def load(self) -> None:
        """Serve the stored definitions, and complete deletions that an earlier process began."""
        definitions = self._backend.storage.list(DEFINITIONS)
        for definition in definitions:
            self._serve(definition)
        for definition in definitions:
            if _terminating(definition):
                self._terminate(None, definition)
            else:
                self._settle(definition)

    def __call__(self, change: Change) -> None:
        if change.key.collection == DEFINITIONS:
            self._definition_changed(change)
        elif change.type is ChangeType.DELETED:
            name = f"{change.key.collection.plural}.{change.key.collection.group}"
            definition = self._backend.storage.get(Key(DEFINITIONS, "", name))
            if definition is not None and _terminating(definition):
                self._finish(definition)

    def _definition_changed(self, change: Change) -> None:
        definition = change.obj
        if change.type is ChangeType.DELETED:
            spec = find_object(definition, "spec")
            group, plural = find_str(spec, "group"), find_str(spec, "names", "plural")
            self._backend.catalog.remove_custom(group, plural)
            self._served_as.pop(Collection(group, plural), None)
            self._settle_others(definition)
        elif _terminating(definition):
            self._serve(definition)
            self._terminate(change.previous, definition)
        else:
            self._serve(definition)
            self._settle(definition, touched=_changed_by_client(change.previous, definition))
            if change.previous is not None and _accepted(change.previous) != _accepted(definition):
                self._settle_others(definition)  # a name may have become available

    def _settle(self, definition: JsonObject, *, touched: bool = False) -> None:
        status = settled_status(definition, self._others(definition), self._backend.now(), touched=touched)
        self._serve(self._write_status(definition, status))

    def _settle_others(self, definition: JsonObject) -> None:
        for other in self._others(definition):
            if not _terminating(other):
                self._settle(other)

    def _others(self, definition: JsonObject) -> list[JsonObject]:
        """Return the other definitions of the same group."""
        group, key = find(definition, "spec", "group"), _key(definition)
        return [
            other
            for other in self._backend.storage.list(DEFINITIONS)
            if find(other, "spec", "group") == group and _key(other) != key
        ]

    def _serve(self, definition: JsonObject) -> None:
        if not is_established(definition):
            return
        form = find_object(definition, "spec"), _accepted(definition)
        if self._served_as.get(collection_of_definition(definition)) != form:
            kind = kind_of_definition(definition)
            self._served_as[kind.collection] = form
            self._backend.catalog.set_custom(kind)

    def _terminate(self, previous: JsonObject | None, definition: JsonObject) -> None:
        if previous is None or not _terminating(previous):
            message = "CustomResource deletion is in progress"
            reason = "InstanceDeletionInProgress"
            definition = self._write_status(
                definition, terminating_status(definition, reason, message, self._backend.now())
            )
            kind = kind_of_definition(definition)
            instances = Served(kind, KindVersion(kind.storage_version, (), METADATA))  # deleted even if not served
            for obj in self._backend.storage.list(kind.collection):
                metadata = find_object(obj, "metadata")
                namespace, name = find_str(metadata, "namespace"), find_str(metadata, "name")
                delete(self._backend, instances, namespace, name, DeleteOptions())
        current = self._backend.storage.get(_key(definition))
        if current is not None:
            self._finish(current)

    def _finish(self, definition: JsonObject) -> None:
        """Remove the cleanup finalizer of a definition that is being deleted, once the definition has no instances.

        If the definition has no other finalizers, remove the definition itself.
        """
        finalizers = find_list(definition, "metadata", "finalizers")
        if CLEANUP_FINALIZER not in finalizers or self._backend.storage.count(
            kind_of_definition(definition).collection
        ):
            return
        others = [item for item in finalizers if item != CLEANUP_FINALIZER]
        if others:
            self._backend.put(_key(definition), with_metadata(definition, {"finalizers": others}))
        else:
            self._backend.delete(_key(definition))

    def _write_status(self, definition: JsonObject, status: JsonObject) -> JsonObject:
        new = record_update(
            definition,
            {**definition, "status": status},
            manager=MANAGER,
            subresource="status",
            now=self._backend.now(),
            lists=self._served.version.lists,
        )
        return definition if same(definition, new) else self._backend.put(_key(definition), new)


def _accepted(definition: JsonObject) -> JsonValue:
    return find(definition, "status", "acceptedNames")


def _changed_by_client(previous: JsonObject | None, definition: JsonObject) -> bool:
    """Return whether a client changed an existing definition."""
    if previous is None:
        return False
    return any(
        find(previous, *path) != find(definition, *path)
        for path in (("spec",), ("metadata", "annotations"), ("metadata", "labels"))
    )


def _terminating(definition: JsonObject) -> bool:
    return find(definition, "metadata", "deletionTimestamp") is not None


def _key(definition: JsonObject) -> Key:
    return Key(DEFINITIONS, "", find_str(definition, "metadata", "name"))
