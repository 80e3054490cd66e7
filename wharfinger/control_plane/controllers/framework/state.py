"""The access of controllers to the cluster: they read the control plane's storage, and write with its verbs.

The controllers run in the process of the server, so they need no copy of the cluster and no watches. A verb that makes a change
notifies them before it returns. Nearly all writes of controllers use the same verbs as requests (defaults, admission, validation
and managed fields included), under the field managers of upstream's controllers. All decisions depend on stored
objects, so no work is lost when the controllers stop.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.controllers.framework.objects import (
    EVENTS,
    controller_of,
    is_controlled_by,
    key_of,
    name_of,
    owner_reference,
    owner_uids,
    uid_of,
    with_fields,
)
from wharfinger.control_plane.storage.interface import Change, ChangeType, Collection, Key, Record
from wharfinger.control_plane.verbs import creation, deletion, patching, updating
from wharfinger.control_plane.verbs.options import DeleteOptions, WriteOptions
from wharfinger.control_plane.wire.status import StatusError
from wharfinger.formats.json.value import JsonObject, JsonValue, canonical_json, find_list, find_object, find_str
from wharfinger.kube.times import format_time

MANAGER: Final = "kube-controller-manager"
EVENT_LIFE: Final = timedelta(hours=1)
_TERMINATING: Final = "is being terminated"
"""A part of the error message for the creation of an object in a namespace that is being deleted."""


@dataclass(slots=True)
class _RecordedEvent:
    """An Event that was written, the number of its occurrences, and the time of the last one."""

    key: Key
    count: int
    at: datetime


class ClusterState:
    """The reads and writes of controllers, and the index of dependents by owner."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self._dependents: dict[str, set[Key]] = {}
        self._listener: Callable[[Change], None] | None = None
        self._recorded: dict[tuple[str, str, str], _RecordedEvent] = {}
        self._recorded_order: deque[tuple[datetime, tuple[str, str, str]]] = deque()

    # -- notifications

    def open(self, listener: Callable[[Change], None]) -> None:
        """Notify ``listener`` of all changes from now on; first, report existing objects as if just added."""
        self._listener = listener
        self.backend.observe(self._observe)
        for kind in self.backend.catalog.kinds():
            for record in tuple(self.backend.storage.records(kind.collection)):
                self._observe(Change(ChangeType.ADDED, record, None))

    def close(self) -> None:
        """Stop notifying the listener."""
        self._listener = None

    def _observe(self, change: Change) -> None:
        if self._listener is None:
            return
        before, after = _owners(change.before), _owners(change.record)
        if change.type is ChangeType.DELETED:
            before, after = (*before, *after), ()
        if before != after:
            for uid in before:
                keys = self._dependents.get(uid)
                if keys is not None:
                    keys.discard(change.key)
                    if not keys:
                        del self._dependents[uid]
            for uid in after:
                self._dependents.setdefault(uid, set()).add(change.key)
        self._listener(change)

    # -- reading

    def now(self) -> datetime:
        """Return the time of the control plane's clock."""
        return self.backend.now()

    def time(self) -> str:
        """Return the current time as text, in the format of the times in objects."""
        return format_time(self.backend.now())

    def get(self, key: Key) -> JsonObject | None:
        """Return an object, or None if it does not exist. The caller must not alter the object."""
        return self.backend.storage.get(key)

    def objects(self, collection: Collection, namespace: str = "") -> Iterable[JsonObject]:
        """Return the objects of a kind in one namespace, or in all namespaces if ``namespace`` is ""."""
        return self.backend.storage.list(collection, namespace)

    def dependents(self, uid: str) -> list[tuple[Key, JsonObject]]:
        """Return the objects with an owner reference to this uid."""
        found = ((key, self.get(key)) for key in sorted(self._dependents.get(uid, ())))
        return [(key, obj) for key, obj in found if obj is not None]

    def owned(self, collection: Collection, owner: JsonObject) -> Iterator[JsonObject]:
        """Yield the objects of a kind whose controller is ``owner``, sorted by namespace and name."""
        for key, obj in self.dependents(uid_of(owner)):
            if key.collection == collection and is_controlled_by(obj, owner):
                yield obj

    def owner_key(self, namespace: str, reference: JsonObject) -> Key | None:
        """Return the key to which an owner reference points, or None if its kind is unknown.

        ``namespace`` is the namespace of the object that has the reference, "" for a cluster-scoped object.
        """
        group = find_str(reference, "apiVersion").rpartition("/")[0]
        kind = self.backend.catalog.find_kind(group, find_str(reference, "kind"))
        if kind is None:
            return None
        return Key(kind.collection, namespace if kind.namespaced else "", find_str(reference, "name"))

    def controller_key(self, obj: JsonObject) -> Key | None:
        """Return the key of an object's controller; None if the object has no controller or the controller's kind is unknown."""
        reference = controller_of(obj)
        return None if reference is None else self.owner_key(find_str(obj, "metadata", "namespace"), reference)

    # -- writing; each may raise StatusError or StorageError

    def create(self, obj: JsonObject, *, manager: str = MANAGER) -> JsonObject | None:
        """Create an object, and return it as stored; return None if it already exists or its namespace is being deleted."""
        served = self._served_kind(obj)
        try:
            return creation.create(
                self.backend, served, find_str(obj, "metadata", "namespace"), obj, WriteOptions(manager)
            ).obj
        except StatusError as error:
            if error.reason == "AlreadyExists" or (error.reason == "Forbidden" and _TERMINATING in error.message):
                return None
            raise

    def update(self, key: Key, new: JsonObject, subresource: str = "", *, manager: str = MANAGER) -> JsonObject:
        """Write the new state of an object, as a PUT does. Nothing is written if the object is unchanged or no longer exists."""
        old = self.get(key)
        if old is None:
            return new
        return updating.update(
            self.backend, self.served(key, old), old, new, subresource, WriteOptions(manager), applied=False
        )

    def adopt(self, key: Key, obj: JsonObject, owner: JsonObject) -> JsonObject:
        """Make ``owner`` the controller of an object, and return the object."""
        references = [*find_list(obj, "metadata", "ownerReferences"), owner_reference(owner)]
        return self.update(key, with_fields(obj, ownerReferences=references))

    def remove_finalizer(self, key: Key, obj: JsonObject, finalizer: str) -> None:
        """Remove a finalizer from an object, if the object has it."""
        finalizers = find_list(obj, "metadata", "finalizers")
        if finalizer in finalizers:
            kept: list[JsonValue] = [item for item in finalizers if item != finalizer]
            self.update(key, with_fields(obj, finalizers=kept or None))

    def set_status(self, key: Key, obj: JsonObject, status: JsonObject, *, manager: str = MANAGER) -> JsonObject:
        """Set the status of an object, unless it already has this status."""
        if find_object(obj, "status") == status and "status" in obj:
            return obj
        return self.update(key, {**obj, "status": status}, "status", manager=manager)

    def apply_status(self, key: Key, intent: JsonObject, *, manager: str) -> None:
        """Apply an intent to the status of an object, and take over fields of other managers."""
        served = self.served(key, intent)
        options = WriteOptions(manager, force=True)
        body = canonical_json(intent)
        patching.patch(self.backend, served, key.namespace, key.name, "status", patching.PatchType.APPLY, body, options)

    def delete(self, key: Key, obj: JsonObject, propagation: str = "Background") -> None:
        """Delete an object, like a DELETE, unless the object no longer exists or another object now has its name."""
        found = self.get(key)
        if found is not None and uid_of(found) == uid_of(obj):
            options = DeleteOptions(propagation=propagation, uid=uid_of(obj))
            deletion.delete(self.backend, self.served(key, found), key.namespace, key.name, options)

    def record_event(
        self, obj: JsonObject, component: str, reason: str, message: str, *, warning: bool = False
    ) -> None:
        """Write an Event about an object; a repetition increments the count of the earlier Event."""
        now = self.now()
        self._forget_events(now)
        what = uid_of(obj), reason, message
        known = self._recorded.get(what)
        if known is not None:
            event = self.get(known.key)
            if event is not None:
                known.count, known.at = known.count + 1, now
                self.update(known.key, {**event, "count": known.count, "lastTimestamp": format_time(now)})
                return
        namespace = find_str(obj, "metadata", "namespace") or "default"
        stamp = int(now.timestamp() * 1_000_000) * 1000 + self.backend.storage.revision % 1000
        involved: JsonObject = {
            "apiVersion": find_str(obj, "apiVersion"),
            "kind": find_str(obj, "kind"),
            "name": name_of(obj),
            "uid": uid_of(obj),
            "resourceVersion": find_str(obj, "metadata", "resourceVersion"),
        }
        if find_str(obj, "metadata", "namespace"):
            involved["namespace"] = namespace
        made = self.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": f"{name_of(obj)[:200]}.{stamp:x}", "namespace": namespace},
                "involvedObject": involved,
                "reason": reason,
                "message": message[:1024],
                "source": {"component": component},
                "firstTimestamp": format_time(now),
                "lastTimestamp": format_time(now),
                "count": 1,
                "type": "Warning" if warning else "Normal",
                "reportingComponent": component,
                "reportingInstance": "",
            },
            manager="kubelet" if component == "kubelet" else MANAGER,
        )
        if made is not None:
            self._recorded[what] = _RecordedEvent(key_of(EVENTS, made), 1, now)
            self._recorded_order.append((now, what))

    def _forget_events(self, now: datetime) -> None:
        """Delete Events that last occurred more than an hour ago."""
        while self._recorded_order and now - self._recorded_order[0][0] > EVENT_LIFE:
            _, what = self._recorded_order.popleft()
            known = self._recorded[what]
            if now - known.at <= EVENT_LIFE:
                self._recorded_order.append((known.at, what))
                continue
            del self._recorded[what]
            if self.get(known.key) is not None:
                self.backend.delete(known.key)

    def served(self, key: Key, obj: JsonObject) -> Served:
        """Return the kind of a stored object in the API version that the object names. If this version is not served, return
        the kind in the first version that is served.
        """
        version = find_str(obj, "apiVersion").rpartition("/")[2]
        found = self.backend.catalog.find(key.collection.group, version, key.collection.plural)
        if found is not None:
            return found
        for kind in self.backend.catalog.kinds():
            if kind.collection == key.collection and kind.versions:
                return Served(kind, kind.versions[0])
        raise StatusError(404, "NotFound", f"{key.collection.plural} are not served", {})

    def _served_kind(self, obj: JsonObject) -> Served:
        group, _, version = find_str(obj, "apiVersion").rpartition("/")
        kind = self.backend.catalog.find_kind(group, find_str(obj, "kind"))
        found = None if kind is None else self.backend.catalog.find(group, version, kind.plural)
        if found is None:
            raise StatusError(404, "NotFound", f"{find_str(obj, 'kind')} of {version} is not served", {})
        return found

    def end_pod(self, key: Key, pod: JsonObject) -> None:
        """Remove a Pod whose containers have ended, as a kubelet does with a grace period of 0."""
        found = self.get(key)
        if found is not None and uid_of(found) == uid_of(pod):
            self.backend.delete(key)


def _owners(record: Record | None) -> tuple[str, ...]:
    """Return the UIDs of an object's owners. Only an object whose text contains owner references is decoded."""
    return owner_uids(record.obj) if record is not None and b'"ownerReferences"' in record.body else ()
