"""Delete: at once where nothing holds the object, else marked and left to those who hold it.

Propagation only sets finalizers here (``orphan``, ``foregroundDeletion``); the garbage collector does the rest. Pods are
deleted at once whatever grace period is asked for: there is no kubelet to wait for.
"""

from typing import Final

from wharfinger.cluster.control_plane import status
from wharfinger.cluster.control_plane.backend import Backend
from wharfinger.cluster.control_plane.catalog import Served
from wharfinger.cluster.control_plane.crds import CLEANUP_FINALIZER, terminating_status
from wharfinger.cluster.control_plane.kinds import DEFINITION, Deletion
from wharfinger.cluster.control_plane.options import DeleteOptions
from wharfinger.cluster.control_plane.preparation import with_metadata
from wharfinger.cluster.control_plane.timestamps import format_time
from wharfinger.formats.json_value import JsonObject, find, find_list, find_object, find_str

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_UNGRACEFUL: Final = frozenset({"Namespace", DEFINITION})
"""Kinds that are marked without a grace period and without a new generation."""


def delete(backend: Backend, served: Served, namespace: str, name: str, options: DeleteOptions) -> JsonObject:
    """DELETE: a Status where the object is gone, or the object as it now is. Raises StatusError."""
    kind = served.kind
    obj = backend.get(served, namespace, name)
    if kind.group_kind == "Namespace" and name in IMMORTAL:
        raise status.forbidden(kind, name, "this namespace may not be deleted")
    if obj is None:
        raise status.not_found(kind, name)
    _check_preconditions(served, obj, options)
    if held_by(kind.group_kind, _with_propagation(obj, options)):
        return _mark(backend, served, obj, options)
    key = backend.key(served, namespace, name)
    if kind.group_kind == "Pod":
        obj = _marked(backend, served, obj)
    last = obj if options.dry_run else backend.delete(key)
    if kind.deletion is Deletion.OBJECT:
        return {
            **last,
            "metadata": {**find_object(obj, "metadata"), "resourceVersion": find(last, "metadata", "resourceVersion")},
        }
    return status.success(name, kind.group, kind.plural, find_str(obj, "metadata", "uid"))


def _check_preconditions(served: Served, obj: JsonObject, options: DeleteOptions) -> None:
    name = find_str(obj, "metadata", "name")
    uid, version = find_str(obj, "metadata", "uid"), find_str(obj, "metadata", "resourceVersion")
    if options.uid and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.precondition_conflict(served.kind, name, why)
    if options.resource_version and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in "
            f"record ({version}). The object might have been modified"
        )
        raise status.precondition_conflict(served.kind, name, why)


def _with_propagation(obj: JsonObject, options: DeleteOptions) -> JsonObject:
    """The object with the finalizer of its propagation policy, and without that of another."""
    if not options.propagation:
        return obj
    wanted = {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
    finalizers = [item for item in find_list(obj, "metadata", "finalizers") if item not in {ORPHAN, FOREGROUND}]
    if wanted is not None:
        finalizers.append(wanted)
    return with_metadata(obj, {"finalizers": finalizers or None})


def held_by(group_kind: str, obj: JsonObject) -> bool:
    """Whether anything must happen before the object may go: finalizers, a namespace's content, instances of a kind."""
    if find_list(obj, "metadata", "finalizers"):
        return True
    if group_kind == "Namespace":
        return bool(find_list(obj, "spec", "finalizers"))
    return group_kind == DEFINITION


def _mark(backend: Backend, served: Served, obj: JsonObject, options: DeleteOptions) -> JsonObject:
    marked = _marked(backend, served, _with_propagation(obj, options))
    if marked == obj or options.dry_run:
        return marked
    return backend.put(
        backend.key(served, find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name")), marked
    )


def _marked(backend: Backend, served: Served, obj: JsonObject) -> JsonObject:
    """The object with its deletion timestamp; one that has it already stays as it is."""
    if find(obj, "metadata", "deletionTimestamp") is not None:
        return obj
    group_kind = served.kind.group_kind
    changes: JsonObject = {"deletionTimestamp": format_time(backend.now())}
    generation = find(obj, "metadata", "generation")
    if group_kind not in _UNGRACEFUL:
        changes["deletionGracePeriodSeconds"] = 0
        changes["generation"] = generation + 1 if isinstance(generation, int) and generation > 0 else None
    if group_kind == "Namespace":
        obj = {**obj, "status": {**find_object(obj, "status"), "phase": "Terminating"}}
    if group_kind == DEFINITION:
        changes["finalizers"] = [
            *(item for item in find_list(obj, "metadata", "finalizers") if item != CLEANUP_FINALIZER),
            CLEANUP_FINALIZER,
        ]
        message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        obj = {**obj, "status": terminating_status(obj, "InstanceDeletionPending", message, backend.now())}
    return with_metadata(obj, changes)
