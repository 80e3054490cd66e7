"""Garbage collection by owner references: which objects are deleted with their owners, and which owners wait for
dependents.

What happens depends on the propagation policy with which the owner was deleted:

* background: the owner is removed immediately; a dependent is deleted if none of its owners exists any more, otherwise it
  loses the references to the owners that no longer exist;
* orphan (finalizer ``orphan``): the references to the owner are removed from its dependents, then the owner is removed;
* foreground (finalizer ``foregroundDeletion``): the dependents are deleted, and the owner is removed when no dependent
  with ``blockOwnerDeletion`` is left.

An owner is looked up by the kind and the name in its reference, in the dependent's own namespace; if the object with this kind
and name has another uid, the owner no longer exists. Sources: "Garbage Collection" in the Kubernetes documentation, and
recordings of real servers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.controllers.framework.controller import Controller
from wharfinger.control_plane.controllers.framework.objects import is_deleted, uid_of, with_fields
from wharfinger.control_plane.controllers.framework.state import ClusterState
from wharfinger.control_plane.storage.interface import Change, ChangeType, Key
from wharfinger.control_plane.verbs.deletion import FOREGROUND, ORPHAN
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_str

_RECHECK_S: Final = 30.0
"""The time in seconds between two checks of a dependent object, if the kind of its owner is not served."""

_MAX_SEARCHED: Final = 1000
"""If a kind has more objects than this, an owner of this kind is not searched for in other namespaces."""


@dataclass(frozen=True, slots=True)
class Owners:
    """The uids of an object's owners: those that exist, those that exist but wait for dependents, and those that are gone.

    ``unknown`` is true if the kind of any owner is not served.
    """

    solid: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    unknown: bool = False


class GarbageController:
    """The garbage collector."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    def controller(self) -> Controller:
        """Return this controller for the runner: its name, :meth:`reconcile`, and the changes that trigger a reconciliation."""
        return Controller("garbage collector", self.reconcile, always=self.affected)

    def affected(self, change: Change) -> Iterable[Key]:
        """Yield the keys that a change affects.

        These are the changed object (if it has owners or is being deleted), its dependents (if it was deleted, or is being
        deleted in the foreground), and its owners that wait for it.
        """
        there = change.type is not ChangeType.DELETED
        body = change.record.body
        owned, ends = b'"ownerReferences"' in body, b'"deletionTimestamp"' in body
        if there and (owned or ends):
            yield change.key
        if not there or (ends and waits_for_dependents(change.obj)):
            yield from (key for key, _ in self._state.dependents(uid_of(change.obj)))
        if owned or (change.before is not None and b'"ownerReferences"' in change.before.body):
            yield from self._ending_owners(change)

    def _ending_owners(self, change: Change) -> Iterable[Key]:
        """Yield the owners of the changed object that are being deleted, because they may have waited for it."""
        for obj in (change.obj, change.previous):
            for reference in find_list(obj, "metadata", "ownerReferences"):
                if isinstance(reference, dict):
                    key = self._state.owner_key(change.key.namespace, reference)
                    if key is not None and is_deleted(self._state.get(key)):
                        yield key

    def reconcile(self, key: Key) -> float | None:
        """Reconcile one object, as an owner and as a dependent. Return the seconds until it must be checked again, None if only
        a change requires a check.
        """
        obj = self._state.get(key)
        if obj is None:
            return None
        if is_deleted(obj):
            self._release(key, obj)
            return None
        owners = self._owners(key, obj)
        lost = owners.waiting | owners.gone
        if lost and owners.solid:
            self._state.update(key, without_owners(obj, lost))
        elif lost and not owners.unknown:
            if owners.waiting and any(waits_for_dependents(one) for _, one in self._state.dependents(uid_of(obj))):
                obj = self._state.update(key, without_blocking(obj))  # in a cycle, one object must be removed first
            self._state.delete(key, obj, self._propagation(obj, owners))
        return _RECHECK_S if owners.unknown else None

    def _propagation(self, obj: JsonObject, owners: Owners) -> str:
        if (owners.waiting and self._state.dependents(uid_of(obj))) or has_finalizer(obj, FOREGROUND):
            return "Foreground"
        return "Orphan" if has_finalizer(obj, ORPHAN) else "Background"

    def _release(self, key: Key, obj: JsonObject) -> None:
        """Remove the garbage collector's finalizer from an object that is being deleted, once no dependent prevents it.

        Dependents of an object with the finalizer ``orphan`` first lose their references to it.
        """
        uid = uid_of(obj)
        if has_finalizer(obj, ORPHAN):
            for one, dependent in self._state.dependents(uid):
                self._state.update(one, without_owners(dependent, frozenset({uid})))
            self._without_finalizer(key, ORPHAN)
        elif not any(_blocks(dependent, uid) for _, dependent in self._state.dependents(uid)):
            self._without_finalizer(key, FOREGROUND)

    def _without_finalizer(self, key: Key, finalizer: str) -> None:
        obj = self._state.get(key)
        if obj is not None:
            self._state.remove_finalizer(key, obj, finalizer)

    def _owners(self, key: Key, obj: JsonObject) -> Owners:
        solid, waiting, gone, unknown = set[str](), set[str](), set[str](), False
        for reference in find_list(obj, "metadata", "ownerReferences"):
            if not isinstance(reference, dict):
                continue
            uid = find_str(reference, "uid")
            where = self._state.owner_key(key.namespace or "\0", reference)
            if where is None:
                unknown = True
            elif where.namespace == "\0":
                solid.add(uid)  # the namespace of a cluster-scoped object's namespaced owner is unknown
            else:
                owner = self._state.get(where)
                if owner is None or uid_of(owner) != uid:
                    gone.add(uid)
                    self._record_foreign_owner(obj, where, reference, uid)
                else:
                    (waiting if waits_for_dependents(owner) else solid).add(uid)
        return Owners(frozenset(solid), frozenset(waiting), frozenset(gone), unknown)

    def _record_foreign_owner(self, obj: JsonObject, where: Key, reference: JsonObject, uid: str) -> None:
        """Write an event if the owner, which was not found in the object's namespace, exists in another namespace. An owner in
        another namespace counts as gone.
        """
        if not where.namespace or self._state.backend.storage.count(where.collection) > _MAX_SEARCHED:
            return
        if any(uid_of(one) == uid for one in self._state.objects(where.collection)):
            kind = f"{find_str(reference, 'apiVersion')}/{find_str(reference, 'kind')}"
            which = f"[{kind}, namespace: {where.namespace}, name: {where.name}, uid: {uid}]"
            message = f'ownerRef {which} does not exist in namespace "{where.namespace}"'
            self._state.record_event(
                obj, "garbage-collector-controller", "OwnerRefInvalidNamespace", message, warning=True
            )


def has_finalizer(obj: JsonValue, finalizer: str) -> bool:
    """Return whether an object has a finalizer."""
    return finalizer in find_list(obj, "metadata", "finalizers")


def waits_for_dependents(obj: JsonValue) -> bool:
    """Return whether an object is an owner that is being deleted in the foreground."""
    return is_deleted(obj) and has_finalizer(obj, FOREGROUND)


def without_owners(obj: JsonObject, uids: frozenset[str]) -> JsonObject:
    """Return the object without the references to these owners."""
    owners = find_list(obj, "metadata", "ownerReferences")
    kept: list[JsonValue] = [owner for owner in owners if find_str(owner, "uid") not in uids]
    return with_fields(obj, ownerReferences=kept or None)


def without_blocking(obj: JsonObject) -> JsonObject:
    """Return the object with ``blockOwnerDeletion`` set to false in all owner references."""
    owners = find_list(obj, "metadata", "ownerReferences")
    freed: list[JsonValue] = [
        {**owner, "blockOwnerDeletion": False} if find(owner, "blockOwnerDeletion") is True else owner
        for owner in owners
        if isinstance(owner, dict)
    ]
    return with_fields(obj, ownerReferences=freed)


def _blocks(dependent: JsonObject, owner: str) -> bool:
    owners = find_list(dependent, "metadata", "ownerReferences")
    return any(find(entry, "uid") == owner and find(entry, "blockOwnerDeletion") is True for entry in owners)
