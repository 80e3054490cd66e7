"""Garbage collection by owner references: what goes with its owners, what is set free, who waits for whom.

Three ways, by what the delete of an owner asked for:

* background: the owner goes at once; a dependent none of whose owners exist any more is deleted, one that has others left
  loses the references to those that are gone;
* orphan (finalizer ``orphan``): the references to the owner are taken out of its dependents, then the owner goes;
* foreground (finalizer ``foregroundDeletion``): the dependents are deleted, and the owner goes when none is left that
  says ``blockOwnerDeletion``.

Source: "Garbage Collection" of the Kubernetes documentation, and the recorded behaviour.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.client import Propagation
from wharfinger.cluster.control_plane.controllers.writes import NOTHING, Delete, Patch, Plan, Write, compare_and_set
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject, JsonValue, find, find_list, find_str

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"


@dataclass(frozen=True, slots=True)
class Owners:
    """The uids of an object's owners: those there, those that wait for their dependents, those that are gone."""

    solid: frozenset[str] = frozenset()
    waiting: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


Dependents = Sequence[tuple[ObjectKey, JsonObject]]


def is_deleted(obj: JsonObject) -> bool:
    """Whether it is being deleted."""
    return find(obj, "metadata", "deletionTimestamp") is not None


def has_finalizer(obj: JsonObject, finalizer: str) -> bool:
    """Whether it carries the finalizer."""
    return finalizer in find_list(obj, "metadata", "finalizers")


def owner_uids(obj: JsonObject) -> tuple[str, ...]:
    """The uids of its owner references, in order."""
    return tuple(find_str(owner, "uid") for owner in find_list(obj, "metadata", "ownerReferences"))


def waits_for_dependents(obj: JsonObject) -> bool:
    """Whether it is an owner that is being deleted in the foreground."""
    return is_deleted(obj) and has_finalizer(obj, FOREGROUND)


def reconcile_dependent(key: ObjectKey, obj: JsonObject, owners: Owners, *, has_dependents: bool) -> Plan:
    """What becomes of an object whose owners are these."""
    lost = owners.waiting | owners.gone
    if is_deleted(obj) or not lost:
        return NOTHING
    if owners.solid:
        return Plan((without_owners(key, obj, lost),))
    if (owners.waiting and has_dependents) or has_finalizer(obj, FOREGROUND):
        propagation = Propagation.FOREGROUND
    else:
        propagation = Propagation.ORPHAN if has_finalizer(obj, ORPHAN) else Propagation.BACKGROUND
    return Plan((Delete(key, find_str(obj, "metadata", "uid"), propagation),))


def reconcile_owner(key: ObjectKey, obj: JsonObject, dependents: Dependents) -> Plan:
    """What becomes of an object that is being deleted and has these dependents, all there are."""
    uid = find_str(obj, "metadata", "uid")
    if not is_deleted(obj):
        return NOTHING
    if has_finalizer(obj, ORPHAN):
        freed = [without_owners(one, dependent, frozenset({uid})) for one, dependent in dependents]
        return Plan((*freed, _without_finalizer(key, obj, ORPHAN)))
    if not has_finalizer(obj, FOREGROUND):
        return NOTHING
    blocking = [dependent for _, dependent in dependents if _blocks(dependent, uid)]
    return NOTHING if blocking else Plan((_without_finalizer(key, obj, FOREGROUND),))


def without_owners(key: ObjectKey, obj: JsonObject, uids: frozenset[str]) -> Write:
    """Take the references to these owners out of an object."""
    owners = find_list(obj, "metadata", "ownerReferences")
    kept: list[JsonValue] = [owner for owner in owners if find_str(owner, "uid") not in uids]
    return Patch(key, compare_and_set(obj, {"ownerReferences": kept or None}))


def _without_finalizer(key: ObjectKey, obj: JsonObject, finalizer: str) -> Write:
    kept: list[JsonValue] = [item for item in find_list(obj, "metadata", "finalizers") if item != finalizer]
    return Patch(key, compare_and_set(obj, {"finalizers": kept or None}))


def _blocks(dependent: JsonObject, owner: str) -> bool:
    owners = find_list(dependent, "metadata", "ownerReferences")
    return any(find(entry, "uid") == owner and find(entry, "blockOwnerDeletion") is True for entry in owners)
