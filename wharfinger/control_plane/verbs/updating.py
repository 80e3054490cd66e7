"""The verb update: the common path from a stored object and its desired state to storage, for PUT, every patch, and apply.

The endpoint decides which fields a write can change: if a kind has the subresource ``status``, a write to the main resource does
not change ``status``, and a write to ``status`` changes only ``status`` and, depending on the kind, some metadata. A client
cannot change the metadata that the server sets. A write without changes is not stored. If the last finalizer is removed from
an object that is being deleted, the object is removed.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from wharfinger.control_plane.admission.chain import charge, check, mutated
from wharfinger.control_plane.api.by_kind.strategies import strategy_of
from wharfinger.control_plane.api.by_kind.validation import validate_update, warnings_of
from wharfinger.control_plane.api.common.admission import Admission, Operation
from wharfinger.control_plane.backend import Backend
from wharfinger.control_plane.catalog.catalog import Served
from wharfinger.control_plane.catalog.conversions import at_version, is_converted, settled, shown, with_known_entries
from wharfinger.control_plane.catalog.custom_kinds import custom_of, updated_status
from wharfinger.control_plane.catalog.custom_versions import shown_custom, undeclared
from wharfinger.control_plane.kinds.kind import DEFINITION, Generation, Kind
from wharfinger.control_plane.kinds.type_shapes import ListTypes
from wharfinger.control_plane.merging.managed_fields import Elsewhere, record_update
from wharfinger.control_plane.objects.object_metadata import metadata_of, with_metadata
from wharfinger.control_plane.verbs.creation import (
    UNOWNED,
    check_converted,
    completed,
    create_object,
    schema_errors,
    store,
    stored_form,
    with_defaults,
    with_stored_defaults,
)
from wharfinger.control_plane.verbs.duplicate_owners import without_repeated_owners
from wharfinger.control_plane.verbs.empty_values_in_errors import as_sent
from wharfinger.control_plane.verbs.intake import Written, accepted, check_name, check_namespace
from wharfinger.control_plane.verbs.options import WriteOptions, resource_version_of
from wharfinger.control_plane.verbs.replicas import rescaled
from wharfinger.control_plane.wire import status
from wharfinger.control_plane.wire.bodies import Body
from wharfinger.control_plane.wire.refusals import WrongKindError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str
from wharfinger.kube.field_sets import same_value

_SERVER_METADATA = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "resourceVersion",
)
_COUNTED_METADATA = {"Deployment.apps": "annotations", "EndpointSlice.discovery.k8s.io": "labels"}
"""For some kinds, the field of ``metadata`` whose change increments the generation, too."""
_COUNTED_AS_ASKED: Final = frozenset({"EndpointSlice.discovery.k8s.io"})
"""Kinds whose generation is incremented by a requested change even if the stored object stays the same."""
_GROUPS_IN_PATHS: Final = frozenset({"apiextensions.k8s.io", "apiregistration.k8s.io"})
_STORED_BELOW: Final = {
    "Endpoints": "services/endpoints",
    "Ingress.networking.k8s.io": "ingress",
    "Node": "minions",
    "ReplicationController": "controllers",
    "Service": "services/specs",
}
_PLAIN = frozenset({"apiVersion", "kind", "metadata"})


def replace(
    backend: Backend,
    served: Served,
    namespace: str,
    name: str,
    subresource: str,
    body: "JsonValue | Body",
    options: WriteOptions,
) -> Written:
    """Handle a PUT: return the object as stored. Raises StatusError."""
    try:
        asked = accepted(served, body, options.validation)
    except WrongKindError as error:
        _check_target(backend, served, namespace, name, error.obj)
        raise
    options.warnings.extend(asked.warnings)
    obj = check_name(check_namespace(served, asked.obj, namespace), name)
    old = backend.get(served, namespace, name)
    if old is None:
        if subresource or not served.kind.create_on_update:
            raise status.not_found(served.kind, name)
        check_uid(served, with_metadata(obj, {"uid": None}), obj, dry_run=options.dry_run)
        resource_version_of(obj)
        obj = without_repeated_owners(obj, options.warnings, admitted=False)
        return Written(create_object(backend, served, obj, options, applied=False), created=True)
    check_uid(served, old, obj, dry_run=options.dry_run)
    check_revision(served, obj, name)
    obj = without_repeated_owners(obj, options.warnings, admitted=False)
    stored = update(backend, served, old, obj, subresource, options, applied=False)
    return Written(stored, warnings=asked.warnings)


def _check_target(backend: Backend, served: Served, namespace: str, name: str, obj: JsonObject) -> None:
    """Check the name, namespace, existence and revision of an object that has the wrong kind. This happens before the kind
    itself is refused.
    """
    obj = check_name(check_namespace(served, obj, namespace), name)
    old = backend.get(served, namespace, name)
    if old is None:
        raise status.not_found(served.kind, name)
    check_revision(served, obj, name)
    if resource_version_of(obj) != resource_version_of(old):
        raise status.conflict(served.kind, name)


def check_uid(served: Served, old: JsonObject, obj: JsonObject, *, dry_run: bool) -> None:
    """Refuse (409) an object whose uid differs from the stored one, or that has a uid while nothing is stored."""
    given, uid = find_str(obj, "metadata", "uid"), find_str(old, "metadata", "uid")
    if given and given != uid:
        namespace, name = find_str(old, "metadata", "namespace"), find_str(old, "metadata", "name")
        below = "" if dry_run else "/registry"
        path = "/".join((below, *(part for part in (*_stored_below(served.kind), namespace, name) if part)))
        why = (
            f"StorageError: invalid object, Code: 4, Key: {path}, ResourceVersion: 0, AdditionalErrorMsg: Precondition "
            f"failed: UID in precondition: {given}, UID in object meta: {uid}"
        )
        raise status.conflict(served.kind, name, why)


def _stored_below(kind: Kind) -> tuple[str, ...]:
    """Return the path below which kube-apiserver stores a kind in etcd, for messages that contain it."""
    if kind.custom or kind.group in _GROUPS_IN_PATHS:
        return kind.group, kind.plural
    return (_STORED_BELOW.get(kind.group_kind, kind.plural),)


def check_revision(served: Served, obj: JsonObject, name: str) -> None:
    """Refuse (422) an object without a resourceVersion, in kinds whose updates require it."""
    needed = served.kind.custom or not served.kind.unconditional_update
    if needed and resource_version_of(obj) is None:
        message = "Invalid value: 0: must be specified for an update"
        error = status.FieldError("metadata.resourceVersion", "FieldValueInvalid", message)
        raise status.invalid(served.kind.group, served.kind.plural, name, [error])


def update(
    backend: Backend,
    served: Served,
    old: JsonObject,
    new: JsonObject,
    subresource: str,
    options: WriteOptions,
    *,
    applied: bool,
) -> JsonObject:
    """Change a stored object to a new state. If ``applied`` is true, ``new`` contains its new managed fields already. Raises
    StatusError.
    """
    kind, name = served.kind, find_str(old, "metadata", "name")
    stored = old
    if custom_of(served.version) is not None:
        old = shown_custom(served, old)
    asked = resource_version_of(new)
    if asked is not None and asked != resource_version_of(old):
        raise status.conflict(kind, name)
    given = _given(kind, metadata_of(new), subresource)
    namespace = find_str(old, "metadata", "namespace")
    before = shown(served, old)
    new = restricted(served, before, _with_server_metadata(old, new), subresource)
    sent = new
    if not (applied and served.kind.custom and same(before, new)):
        new = with_defaults(served, new, backend.now(), before)
    whole = new
    if served.kind.custom and subresource == "status":
        new = restricted(served, before, new, subresource)
    if not applied:
        new = _recorded(backend, served, (old, before), new, whole, subresource, options)
    new = _in_stored_form(served, old, new, subresource)
    if kind.group_kind == DEFINITION and not subresource:
        new = {**new, "status": updated_status(new)}
    admission = Admission(
        backend, options.user, kind, Operation.UPDATE, subresource, namespace, name, new, old,
        dry_run=options.dry_run, warnings=options.warnings, version=served.version.name, policies=backend.policies,
        asked=options.asked, own=options.own,
    )  # fmt: skip
    completing = partial(rescaled, served, new) if subresource == "scale" else partial(completed, served, backend.now())
    new = without_repeated_owners(mutated(admission, new, completing), options.warnings, admitted=True)
    strategy = strategy_of(kind)
    view = backend.view(dry_run=options.dry_run)
    prepare = strategy.status if subresource == "status" else strategy.subresources.get(subresource, strategy.update)
    asked_for = new
    new = prepare(new, old, view)
    placed = strategy.status_errors(new, old, view) if subresource == "status" else []
    errors = placed + validate_update(kind, new, old, subresource, given)
    if errors := errors + schema_errors(
        served, new, old, subresource=subresource, found=errors, warnings=options.warnings
    ):
        if custom_of(served.version) is None:
            errors = as_sent(
                errors,
                new,
                sent,
                lambda whole: placed + validate_update(kind, whole, old, subresource, given),
                served.version.lists,
            )
        raise status.invalid_object(kind, name, errors)
    options.warnings.extend(warnings_of(kind, new, old, subresource))
    new = _with_generation(served, old, new, subresource, asked_for if kind.group_kind in _COUNTED_AS_ASKED else new)
    admission = admission.of(new)
    check(admission)
    new = stored_form(served, new)
    if same(stored, new):
        return stored
    if _is_removable(new):
        return _remove(backend, served, old, new, options)
    if options.dry_run:
        return new
    check_converted(served, new)
    charge(admission, backend)
    return store(backend, served, backend.key(served, namespace, name), new)


def _recorded(
    backend: Backend,
    served: Served,
    was: tuple[JsonObject, JsonObject],
    new: JsonObject,
    whole: JsonObject,
    subresource: str,
    options: WriteOptions,
) -> JsonObject:
    """Return the new object with its managed fields.

    ``was`` is the old object, in its stored form and in the served version. ``whole`` is the new object as sent, including fields
    that the write cannot change.
    """
    old, before = was
    after = settled(served, new)
    recorded = record_update(
        before, after, manager=options.manager, subresource=subresource, now=backend.now(), lists=served.version.lists,
        elsewhere=_elsewhere(served, old, new) if is_converted(served) else None,
    )  # fmt: skip
    recorded = with_known_entries(served, recorded)
    if served.kind.custom and undeclared(served, recorded, before, whole):
        # kube-apiserver cannot determine the owners in this case, and removes the managed fields.
        recorded = with_metadata(recorded, {"managedFields": None})
    entries = find(recorded, "metadata", "managedFields")
    return recorded if after is new else with_metadata(new, {"managedFields": entries})


def _in_stored_form(served: Served, old: JsonObject, new: JsonObject, subresource: str) -> JsonObject:
    """Return the new object in its stored form; the same object if that form does not differ.

    Fields that the write cannot change have the values of the old object.
    """
    stored = with_stored_defaults(served, new)
    if stored is new:
        return new
    kept = "spec" if subresource == "status" else "status"
    return {**stored, kept: old[kept]} if kept in old else stored


def _elsewhere(served: Served, old: JsonObject, new: JsonObject) -> Elsewhere:
    """Return a function that converts the old and the new state to another version, for managed fields in that version."""
    stored = stored_form(served, with_stored_defaults(served, new))

    def states(api_version: str) -> tuple[JsonObject, JsonObject, ListTypes] | None:
        before, after = at_version(served, old, api_version), at_version(served, stored, api_version)
        return None if before is None or after is None else (before[0], *after)

    return states


def _remove(backend: Backend, served: Served, old: JsonObject, new: JsonObject, options: WriteOptions) -> JsonObject:
    """Delete an object whose last finalizer was removed; return the changed object at its old revision."""
    if not options.dry_run:
        check_converted(served, new)
        metadata = metadata_of(old)
        key = backend.key(served, find_str(metadata, "namespace"), find_str(metadata, "name"))
        backend.delete(key)
    return new


def _is_removable(obj: JsonObject) -> bool:
    """Return whether an object that is being deleted can be removed now."""
    return (
        find(obj, "metadata", "deletionTimestamp") is not None
        and find(obj, "metadata", "deletionGracePeriodSeconds") in (None, 0)
        and not find_list(obj, "metadata", "finalizers")
        and not (obj.get("kind") == "Namespace" and find_list(obj, "spec", "finalizers"))
    )


def _with_server_metadata(old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the new object with the metadata that only the server may set as in the old object."""
    before, metadata = metadata_of(old), {**metadata_of(new)}
    for field in _SERVER_METADATA:
        metadata.pop(field, None)
        if before.get(field) is not None:
            metadata[field] = before[field]
    metadata.pop("selfLink", None)
    return {**new, "metadata": metadata}


def restricted(served: Served, old: JsonObject, new: JsonObject, subresource: str) -> JsonObject:
    """Return the new object, with the old object's values in all fields that this kind of write cannot change."""
    if subresource == "status":
        kept = {name: value for name, value in old.items() if name != "status"}
        metadata = _status_metadata(served, metadata_of(old), metadata_of(new))
        changed: JsonObject = {"status": new["status"]} if "status" in new else {}
        return {**kept, "apiVersion": new["apiVersion"], "metadata": metadata, **changed}
    if served.kind.group_kind in UNOWNED:
        state = {**find_object(old, "status")}
        if subresource == "approval":
            state["conditions"] = find(new, "status", "conditions")
        return {**new, "spec": find_object(old, "spec"), "status": state}
    if subresource == "finalize":
        spec = {**find_object(old, "spec"), "finalizers": find(new, "spec", "finalizers") or []}
        return {**old, "metadata": metadata_of(new), "spec": spec if spec["finalizers"] else {}}
    if served.version.status:
        new = {name: value for name, value in new.items() if name != "status"}
        if "status" in old:
            new["status"] = old["status"]
    return new


_METADATA_OF_CLIENTS: Final = ("annotations", "finalizers", "labels", "ownerReferences")
_STATUS_KEEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "APIService.apiregistration.k8s.io": _METADATA_OF_CLIENTS,
    "Deployment.apps": ("labels",),
    "DeviceTaintRule.resource.k8s.io": _METADATA_OF_CLIENTS,
    "FlowSchema.flowcontrol.apiserver.k8s.io": _METADATA_OF_CLIENTS,
    "Pod": ("ownerReferences",),
    "PodCertificateRequest.certificates.k8s.io": _METADATA_OF_CLIENTS,
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": _METADATA_OF_CLIENTS,
    "ResourceClaim.resource.k8s.io": _METADATA_OF_CLIENTS,
    "ServiceCIDR.networking.k8s.io": _METADATA_OF_CLIENTS,
    "StorageVersionMigration.storagemigration.k8s.io": _METADATA_OF_CLIENTS,
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": _METADATA_OF_CLIENTS,
    "VolumeAttachment.storage.k8s.io": _METADATA_OF_CLIENTS,
}
"""The members of metadata that a write of status leaves unchanged, by built-in kind. For other built-in kinds,
such a write can change all members of metadata that clients can write."""
_FLOW: Final = frozenset({"FlowSchema", "PriorityLevelConfiguration"})


def status_keeps_metadata(kind: Kind) -> bool:
    """Return whether a write of status leaves all metadata except the managed fields unchanged."""
    return kind.custom or (kind.kind in _FLOW and kind.group == "flowcontrol.apiserver.k8s.io")


def status_keeps(kind: Kind) -> tuple[str, ...]:
    """Return the members of metadata that a write of the status of a kind leaves unchanged."""
    return _METADATA_OF_CLIENTS if kind.custom else _STATUS_KEEPS.get(kind.group_kind, ())


def _given(kind: Kind, metadata: JsonObject, subresource: str) -> JsonObject:
    """Return the metadata that a client sent, without the parts that are dropped before any validation."""
    if subresource != "status":
        return metadata
    if status_keeps_metadata(kind):
        return {}
    lost = kind.group_kind == "Pod" or (
        status_keeps(kind) == _METADATA_OF_CLIENTS and kind.group != "apiregistration.k8s.io"
    )
    return {name: value for name, value in metadata.items() if name != "deletionTimestamp"} if lost else metadata


def _status_metadata(served: Served, old: JsonObject, new: JsonObject) -> JsonObject:
    """Return the metadata after a write of status.

    Such a write can always change managed fields, and in most built-in kinds also ``generateName``.
    """
    kept = status_keeps(served.kind)
    always = ("managedFields",) if status_keeps_metadata(served.kind) else ("managedFields", "generateName")
    reached = (*always, *(name for name in _METADATA_OF_CLIENTS if name not in kept))
    metadata = {name: value for name, value in old.items() if name not in reached}
    return {**metadata, **{name: new[name] for name in reached if name in new}}


def _with_generation(
    served: Served, old: JsonObject, new: JsonObject, subresource: str, counted: JsonObject
) -> JsonObject:
    """Return the new state with its generation. A change of the fields that the kind counts increments the generation.

    ``counted`` is the state that is compared with the old state for this purpose: the new state or, for some kinds, the new state
    before the strategy of the kind has changed it.
    """
    later = served.kind.generation is Generation.LATER
    if served.kind.generation is not Generation.SPEC and not later:
        given = find(old, "metadata", "generation")
        return (
            new if given is find(new, "metadata", "generation") is None else with_metadata(new, {"generation": given})
        )
    ignored = _PLAIN | {"status"} if served.version.status or not served.kind.custom else _PLAIN
    before = {name: value for name, value in old.items() if name not in ignored}
    after = {name: value for name, value in counted.items() if name not in ignored}
    field = "" if subresource else _COUNTED_METADATA.get(served.kind.group_kind)
    if field:
        before[field], after[field] = find(old, "metadata", field), find(counted, "metadata", field)
    generation = find(old, "metadata", "generation")
    count = generation if isinstance(generation, int) else 0 if later else 1
    return with_metadata(new, {"generation": count + (not same_value(before, after)) or None})


def same(old: JsonObject, new: JsonObject) -> bool:
    """Return whether two states are equal, except perhaps for the times of their managed fields."""
    if old.keys() != new.keys():
        return False
    if not all(same_value(new[name], value) for name, value in old.items() if name != "metadata"):
        return False
    return _comparable(old) == _comparable(new)


def _comparable(obj: JsonObject) -> JsonObject:
    """Return an object's metadata for a comparison, without the times in ``managedFields``."""
    metadata = metadata_of(obj)
    entries: list[JsonValue] = [
        {name: value for name, value in entry.items() if name != "time"} if isinstance(entry, dict) else entry
        for entry in find_list(metadata, "managedFields")
    ]
    return {**metadata, "managedFields": entries}
