"""The verb delete.

An object without finalizers is removed immediately. An object with finalizers gets a deletion timestamp, and is removed when its
last finalizer is removed. A propagation policy only sets a finalizer here (``orphan``, ``foregroundDeletion``); the garbage
collector handles the dependents.

Two kinds are not removed immediately even without finalizers. A running Pod gets a grace period; when the period is over, the
kubelet deletes the Pod with a grace period of 0. A CustomResourceDefinition gets a finalizer, which is removed when all objects
of its kind are deleted.
"""

from dataclasses import replace
from datetime import timedelta
from typing import Final

from wharfinger.control_plane.api.apiextensions.status import terminating_status
from wharfinger.control_plane.api.common.admission import Admission, Mutation, Operation, Policies
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.custom_kinds import CLEANUP_FINALIZER
from wharfinger.control_plane.kinds.kind import DEFINITION, Deletion
from wharfinger.control_plane.objects.object_metadata import with_metadata
from wharfinger.control_plane.verbs.options import DeleteOptions
from wharfinger.control_plane.wire import status
from wharfinger.formats.json.value import JsonObject, find, find_list, find_object, find_str
from wharfinger.kube.times import format_time, parse_time

ORPHAN: Final = "orphan"
FOREGROUND: Final = "foregroundDeletion"
IMMORTAL: Final = frozenset({"default", "kube-system", "kube-public"})
_ORPHANING: Final = {
    "ReplicationController": "",
    "Job.batch": "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove "
    "them or set propagationPolicy=Orphan to suppress this warning",
}
"""The kinds that orphan their dependents by default, each with the warning that the client gets; "" means no warning."""
_UNGRACEFUL: Final = frozenset({"Namespace", DEFINITION})
"""Kinds whose deletion sets no grace period and no new generation, and whose preconditions have messages of their own."""


def delete(backend: Backend, served: Served, namespace: str, name: str, options: DeleteOptions) -> JsonObject:
    """Handle a DELETE: return the object in its new state if it still exists; otherwise return a Status, or the last state of
    the object.

    Raises StatusError.
    """
    kind = served.kind
    obj = backend.get(served, namespace, name)
    if kind.group_kind == "Namespace" and name in IMMORTAL:
        raise status.forbidden(kind, name, "this namespace may not be deleted")
    if not options.propagation and (warning := _ORPHANING.get(kind.group_kind)):
        options.warnings.append(warning)
    if obj is None:
        raise status.not_found(kind, name)
    _check_preconditions(served, obj, options)
    options = _with_default_policy(kind.group_kind, obj, options)
    if backend.policies is not None:
        _check_admission(backend.policies, backend, served, obj, options)
    if held_by(kind.group_kind, _with_propagation(obj, options)):
        return _mark(backend, served, obj, options)
    key = backend.key(served, namespace, name)
    if kind.group_kind == "Pod":
        marked = _marked(backend, served, obj, options)
        if find(marked, "metadata", "deletionGracePeriodSeconds") not in (None, 0):
            return marked if options.dry_run or marked == obj else backend.put(key, marked)
        obj = marked
    last = obj if options.dry_run else backend.delete(key)
    if kind.deletion is Deletion.OBJECT:
        return {
            **last,
            "metadata": {**find_object(obj, "metadata"), "resourceVersion": find(last, "metadata", "resourceVersion")},
        }
    return status.success(name, kind.group, kind.plural, find_str(obj, "metadata", "uid"))


def _check_admission(
    policies: Policies, backend: Backend, served: Served, obj: JsonObject, options: DeleteOptions
) -> None:
    """Refuse a deletion that admission denies, unless the object is already being deleted. Raises StatusError."""
    if options.user is None or find(obj, "metadata", "deletionTimestamp") is not None:
        return
    namespace, name = find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name")
    asked = Admission(
        backend, options.user, served.kind, Operation.DELETE, "", namespace, "" if options.each else name, None, obj,
        dry_run=options.dry_run, warnings=options.warnings, version=served.version.name, asked=options.asked,
    )  # fmt: skip
    policies.mutate(asked, Mutation(lambda _, patched: patched))
    policies.enforce(asked)


def _with_default_policy(group_kind: str, obj: JsonObject, options: DeleteOptions) -> DeleteOptions:
    """Return the requested options. If neither they nor a finalizer state a propagation policy, Jobs and
    ReplicationControllers orphan their Pods.
    """
    if options.propagation or group_kind not in _ORPHANING:
        return options
    held = {ORPHAN, FOREGROUND}.intersection(str(item) for item in find_list(obj, "metadata", "finalizers"))
    return options if held else replace(options, propagation="Orphan")


def _check_preconditions(served: Served, obj: JsonObject, options: DeleteOptions) -> None:
    name = find_str(obj, "metadata", "name")
    uid, version = find_str(obj, "metadata", "uid"), find_str(obj, "metadata", "resourceVersion")
    if served.kind.group_kind in _UNGRACEFUL:
        for what, given, known in (("UID", options.uid, uid), ("ResourceVersion", options.resource_version, version)):
            if given is not None and given != known:
                why = f"Precondition failed: {what} in precondition: {given}, {what} in object meta: {known}"
                raise status.conflict(served.kind, name, why)
    if options.uid is not None and options.uid != uid:
        why = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise status.precondition_conflict(served.kind, name, why)
    if options.resource_version is not None and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion in "
            f"record ({version}). The object might have been modified"
        )
        raise status.precondition_conflict(served.kind, name, why)


def _with_propagation(obj: JsonObject, options: DeleteOptions) -> JsonObject:
    """Return the object with the finalizer of the requested propagation policy, and without those of other policies. An Event
    gets no such finalizer, because it has no dependents.
    """
    is_event = obj.get("kind") == "Event" and obj.get("apiVersion") in ("v1", "events.k8s.io/v1")
    if not options.propagation and not is_event:
        return obj
    wanted = None if is_event else {"Orphan": ORPHAN, "Foreground": FOREGROUND}.get(options.propagation)
    finalizers = [item for item in find_list(obj, "metadata", "finalizers") if item not in {ORPHAN, FOREGROUND}]
    if wanted is not None:
        finalizers.append(wanted)
    return with_metadata(obj, {"finalizers": finalizers or None})


def held_by(group_kind: str, obj: JsonObject) -> bool:
    """Return whether the object cannot be removed immediately: it has finalizers (for a Namespace, also in ``spec``), or it is
    a CRD, whose custom objects are deleted first.
    """
    if find_list(obj, "metadata", "finalizers"):
        return True
    if group_kind == "Namespace":
        return bool(find_list(obj, "spec", "finalizers"))
    return group_kind == DEFINITION


def _mark(backend: Backend, served: Served, obj: JsonObject, options: DeleteOptions) -> JsonObject:
    marked = _marked(backend, served, _with_propagation(obj, options), options)
    if marked == obj or options.dry_run:
        return marked
    return backend.put(
        backend.key(served, find_str(obj, "metadata", "namespace"), find_str(obj, "metadata", "name")), marked
    )


def _grace(pod: JsonObject, options: DeleteOptions) -> int:
    """Return the seconds that a Pod gets to terminate: 0 if it has no node, or if it has already succeeded or failed."""
    over = find(pod, "status", "phase") in ("Failed", "Succeeded")
    if over or not find_str(pod, "spec", "nodeName"):
        return 0
    own = find(pod, "spec", "terminationGracePeriodSeconds")
    grace = options.grace if options.grace is not None else own if isinstance(own, int) else 0
    return 1 if grace < 0 else grace


def _shortened(group_kind: str, obj: JsonObject, options: DeleteOptions) -> JsonObject:
    """Return an object that is being deleted, with the requested grace period if that is shorter than the stored one.

    If no grace period is stored, it becomes 0 (except in Namespaces and CustomResourceDefinitions, which have none).
    """
    given, known = options.grace, find(obj, "metadata", "deletionGracePeriodSeconds")
    if known is None and group_kind not in _UNGRACEFUL:
        return with_metadata(obj, {"deletionGracePeriodSeconds": 0})
    if given is None or not isinstance(known, int):
        return obj
    grace = 1 if given < 0 else given
    if grace >= known:
        return obj
    until = parse_time(find_str(obj, "metadata", "deletionTimestamp"))
    ends = None if until is None else format_time(until - timedelta(seconds=known - grace))
    return with_metadata(obj, {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace})


def _marked(backend: Backend, served: Served, obj: JsonObject, options: DeleteOptions) -> JsonObject:
    """Return the object with a deletion timestamp. If the object already has one, it is changed only if the options request a
    shorter grace period.
    """
    group_kind = served.kind.group_kind
    if find(obj, "metadata", "deletionTimestamp") is not None:
        return _shortened(group_kind, obj, options)
    grace = _grace(obj, options) if group_kind == "Pod" else 0
    changes: JsonObject = {"deletionTimestamp": format_time(backend.now() + timedelta(seconds=grace))}
    generation = find(obj, "metadata", "generation")
    if group_kind not in _UNGRACEFUL:
        changes["deletionGracePeriodSeconds"] = grace
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
