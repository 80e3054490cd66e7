"""The rules of ``metadata`` in every kind, and how often each kind's strategy checks them.

kube-apiserver validates metadata more than once: in the strategy of the kind, and in the generic store. ``details.causes``
lists an error as often as it was found; the message contains the error only once. A new object is checked by the strategy first,
and by the store only if the strategy finds no error. A changed object is checked by the store first (as a new object, and as a
change), and then by the strategy. :data:`METADATA` states, as letters, which checks each strategy makes, and in which order:

== ====================================================================================================
M  check the metadata as that of a new object (``ValidateObjectMeta``), with the kind's rule of names
U  check the metadata as that of a changed object (``ValidateObjectMetaUpdate``)
O  check the kind's own rules (:class:`~wharfinger.control_plane.objects.kind_rules.Rules`)
== ====================================================================================================

If the own rules of a kind include checks of metadata, they call :func:`core_meta_errors` and :func:`meta_update_errors`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.kinds.kind import DEFINITION, Kind
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.managed_field_rules import has_usual_form, managed_fields_errors
from wharfinger.control_plane.objects.name_rules import (
    NameRule,
    address_name,
    any_name,
    label_name,
    segment_name,
    subdomain_name,
    whole_subdomain_name,
)
from wharfinger.control_plane.objects.names import dns_label_problems
from wharfinger.control_plane.wire.field_errors import (
    NEGATIVE,
    each,
    forbidden,
    immutable,
    invalid,
    quoted,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import MAX_ERROR_CHARS, FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, strings_of
from wharfinger.kube.selectors import key_problems, value_problems

ANNOTATIONS_LIMIT: Final = 256 * 1024
_KEPT: Final = ("name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds")
_CHANGING: Final[JsonObject] = {"managedFields": None, "resourceVersion": None}
"""The fields of metadata that most updates change."""
_UNVALIDATED: Final = "Pod"
"""The kind whose stored metadata may be invalid: a Pod gets the labels and annotations of its Binding without validation."""
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})
_OWNER_FIELDS: Final = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")


@dataclass(frozen=True, slots=True)
class MetadataRules:
    """The rules of a kind's strategy for metadata.

    ``create``, ``update`` and ``status`` are the checks for these writes in their order, as letters of the table in the
    docstring of this module. ``name`` is the kind's rule of names. ``finalizers`` is true if finalizers must have standard or
    qualified names, which custom kinds and some built-in kinds do not require.
    """

    name: NameRule = subdomain_name
    create: str = "MO"
    update: str = "UO"
    status: str = "UO"
    finalizers: bool = True


_OWN: Final = MetadataRules(create="O", update="O", status="O")
_WHOLE: Final = MetadataRules(update="MO")
_WHOLE_CHANGE: Final = MetadataRules(update="MUO")
_RBAC: Final = MetadataRules(segment_name, update="MOU")
_PLAIN: Final = MetadataRules(update="MO", finalizers=False)
METADATA: Final[Mapping[str, MetadataRules]] = {
    "APIService.apiregistration.k8s.io": MetadataRules(any_name, create="O", finalizers=False),
    "CSINode.storage.k8s.io": _WHOLE,
    "CertificateSigningRequest.certificates.k8s.io": MetadataRules(any_name, update="MOU", status="MOU"),
    "ClusterRole.rbac.authorization.k8s.io": _RBAC,
    "ClusterRoleBinding.rbac.authorization.k8s.io": _RBAC,
    "CSIStorageCapacity.storage.k8s.io": _WHOLE,
    "CronJob.batch": MetadataRules(status=""),
    "DeviceClass.resource.k8s.io": MetadataRules(whole_subdomain_name, update="MUO"),
    "EndpointSlice.discovery.k8s.io": _WHOLE,
    "Endpoints": MetadataRules(update="UMO"),
    "Event": _OWN,
    "Event.events.k8s.io": _OWN,
    "FlowSchema.flowcontrol.apiserver.k8s.io": MetadataRules(update="MO", status="O"),
    "IPAddress.networking.k8s.io": MetadataRules(address_name, update="O"),
    "Ingress.networking.k8s.io": MetadataRules(update="UMO"),
    "Job.batch": MetadataRules(update="O"),
    "Lease.coordination.k8s.io": MetadataRules(finalizers=False),
    "LimitRange": _WHOLE,
    "MutatingWebhookConfiguration.admissionregistration.k8s.io": _PLAIN,
    "Namespace": MetadataRules(label_name, update="MOU"),
    "Node": MetadataRules(update="O", status="O"),
    "PersistentVolume": MetadataRules(update="O"),
    "Pod": MetadataRules(update="UMO"),
    "PodDisruptionBudget.policy": _OWN,
    "PriorityLevelConfiguration.flowcontrol.apiserver.k8s.io": MetadataRules(update="MO", status="O"),
    "ReplicationController": MetadataRules(whole_subdomain_name),
    "ResourceClaim.resource.k8s.io": _WHOLE_CHANGE,
    "ResourceClaimTemplate.resource.k8s.io": MetadataRules(update="O"),
    "Role.rbac.authorization.k8s.io": _RBAC,
    "RoleBinding.rbac.authorization.k8s.io": _RBAC,
    "RuntimeClass.node.k8s.io": MetadataRules(update="O", finalizers=False),
    "Service": MetadataRules(label_name),
    "ServiceAccount": MetadataRules(update="UMO"),
    "StatefulSet.apps": MetadataRules(label_name),
    "StorageClass.storage.k8s.io": _WHOLE,
    "ValidatingAdmissionPolicy.admissionregistration.k8s.io": MetadataRules(update="MO", status="O", finalizers=False),
    "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io": _PLAIN,
    "ValidatingWebhookConfiguration.admissionregistration.k8s.io": _PLAIN,
    "VolumeAttachment.storage.k8s.io": MetadataRules(update="MO", status="MO"),
    DEFINITION: MetadataRules(any_name, create="O", finalizers=False),
}
"""The rules of built-in kinds, by ``Kind.group_kind``. All other built-in kinds have the defaults of :class:`MetadataRules`."""
_DEFAULT: Final = MetadataRules()
_CUSTOM: Final = MetadataRules(finalizers=False)
_STORE: Final = MetadataRules(segment_name, finalizers=False)


def metadata_rules(kind: Kind) -> MetadataRules:
    """Return the rules for the metadata of a kind's objects."""
    return _CUSTOM if kind.custom else METADATA.get(kind.group_kind, _DEFAULT)


def created_errors(kind: Kind, obj: JsonObject, own: Callable[[], list[FieldError]]) -> list[FieldError]:
    """Return all errors of a new object; ``own`` returns the errors of the kind's own rules."""
    rules = metadata_rules(kind)
    shared = _shared_errors(_metadata(obj))
    errors: list[FieldError] = []
    for letter in rules.create:
        errors += own() if letter == "O" else _new_errors(kind, rules, obj, shared)
    return errors or _new_errors(kind, _STORE, obj, shared)


def updated_errors(
    kind: Kind, new: JsonObject, old: JsonObject, order: str, own: Callable[[], list[FieldError]]
) -> list[FieldError]:
    """Return all errors of a changed object; ``own`` returns the errors of the kind's own rules.

    ``order`` lists the kind's checks for this type of write, as in :class:`MetadataRules`.
    """
    rules = metadata_rules(kind)
    if kind.group_kind != _UNVALIDATED and is_as_stored(new, old):
        return [error for letter in order if letter == "O" for error in own()]
    shared = _shared_errors(_metadata(new))
    changed = _change_errors(new, old, finalizers=False, shared=shared)
    errors = _new_errors(kind, _STORE, new, shared) + changed
    for letter in order:
        if letter == "O":
            errors += own()
        elif letter == "M":
            errors += _new_errors(kind, rules, new, shared)
        else:
            names = strings_of(_metadata(new).get("finalizers")) if rules.finalizers else []
            errors += changed + standard_finalizer_errors(names, "metadata.finalizers")
    return errors


def is_as_stored(new: JsonObject, old: JsonObject) -> bool:
    """Return whether the metadata needs no check, because it equals the metadata of the stored object.

    The resourceVersion may differ, and so may managed fields in their usual form. Metadata with finalizers or a name
    prefix is always checked again, because some writes (``/status``) check it less strictly.
    """
    metadata, before = _metadata(new), _metadata(old)
    if (
        metadata.get("finalizers")
        or metadata.get("generateName")
        or {**metadata, **_CHANGING} != {**before, **_CHANGING}
    ):
        return False
    entries = metadata.get("managedFields")
    return not isinstance(entries, list) or all(isinstance(entry, dict) and has_usual_form(entry) for entry in entries)


def core_meta_errors(
    obj: JsonObject,
    old: JsonObject | None = None,
    *,
    namespaced: bool = True,
    name: NameRule = subdomain_name,
    finalizers: bool = True,
) -> list[FieldError]:
    """Return the errors of ``ValidateObjectMeta``, for the rules of built-in kinds.

    ``old`` is the stored object of an update; metadata that equals the stored metadata is not checked again.
    """
    if old is not None and is_as_stored(obj, old):
        return []
    return _new_metadata_errors(obj, namespaced=namespaced, name_rule=name, finalizers=finalizers)


def meta_update_errors(new: JsonObject, old: JsonObject, *, finalizers: bool = True) -> list[FieldError]:
    """Return the errors of ``ValidateObjectMetaUpdate``, for the rules of built-in kinds."""
    return _change_errors(new, old, finalizers=finalizers)


@dataclass(frozen=True, slots=True)
class _Shared:
    """The errors that every check of the same metadata finds; they are computed once, and each check reports them."""

    named: list[FieldError]
    """The errors in labels, annotations and owners."""
    managed: list[FieldError]


def _shared_errors(metadata: JsonObject) -> _Shared:
    named = _label_errors(metadata)
    named += annotation_errors(metadata.get("annotations"), "metadata.annotations")
    named += _owner_errors(metadata)
    return _Shared(named, managed_fields_errors(metadata))


def _new_errors(kind: Kind, rules: MetadataRules, obj: JsonObject, shared: _Shared | None = None) -> list[FieldError]:
    return _new_metadata_errors(
        obj, namespaced=kind.namespaced, name_rule=rules.name, finalizers=rules.finalizers, shared=shared
    )


def _new_metadata_errors(
    obj: JsonObject, *, namespaced: bool, name_rule: NameRule, finalizers: bool, shared: _Shared | None = None
) -> list[FieldError]:
    metadata = _metadata(obj)
    shared = shared or _shared_errors(metadata)
    errors = _name_errors(metadata, name_rule)
    namespace = metadata.get("namespace")
    if not namespaced and namespace:
        errors.append(forbidden("metadata.namespace", "not allowed on this type"))
    elif namespaced and not namespace:
        errors.append(required("metadata.namespace"))
    elif namespaced and isinstance(namespace, str):
        errors += each("metadata.namespace", namespace, dns_label_problems(namespace))
    generation = metadata.get("generation")
    if isinstance(generation, int) and generation < 0:
        errors.append(invalid("metadata.generation", generation, NEGATIVE))
    errors += shared.named
    names = strings_of(metadata.get("finalizers"))
    if names:
        errors += _finalizer_errors(names)
    errors += shared.managed
    return errors + (standard_finalizer_errors(names, "metadata.finalizers") if finalizers and names else [])


def _name_errors(metadata: JsonObject, rule: NameRule) -> list[FieldError]:
    errors: list[FieldError] = []
    prefix, name = metadata.get("generateName"), metadata.get("name")
    if isinstance(prefix, str) and prefix:
        errors += each("metadata.generateName", prefix, rule(prefix, True))  # noqa: FBT003
    if not isinstance(name, str) or not name:
        return [*errors, required("metadata.name", "name or generateName is required")]
    problems = rule(name, False)  # noqa: FBT003
    return errors + each("metadata.name", name, problems) if problems else errors


def _label_errors(metadata: JsonObject) -> list[FieldError]:
    labels = metadata.get("labels")
    return label_errors(labels, "metadata.labels") if labels else []


def label_errors(labels: JsonValue, field: str) -> list[FieldError]:
    """Return the errors of ``ValidateLabels`` for a map of labels, which may also be a selector."""
    errors: list[FieldError] = []
    for key, value in labels.items() if isinstance(labels, dict) else ():
        if problems := key_problems(key):
            errors += each(field, key, problems)
        label = value if isinstance(value, str) else ""
        if problems := value_problems(label):
            errors += each(field, label, problems)
    return errors


def annotation_errors(annotations: JsonValue, field: str) -> list[FieldError]:
    """Return the errors of ``ValidateAnnotations``: keys in upper case are valid, and the size in total is at most 256 KiB."""
    if not isinstance(annotations, dict):
        return []
    errors: list[FieldError] = []
    size = 0
    for key, value in annotations.items():
        errors += each(field, key, key_problems(key.lower()))
        size += len(key.encode()) + (len(value.encode()) if isinstance(value, str) else 0)
    return [*errors, too_long(field, ANNOTATIONS_LIMIT)] if size > ANNOTATIONS_LIMIT else errors


def _owner_errors(metadata: JsonObject) -> list[FieldError]:
    owners = metadata.get("ownerReferences")
    references = [item for item in owners if isinstance(item, dict)] if isinstance(owners, list) else []
    errors: list[FieldError] = []
    shown: list[JsonValue] = []
    controller, size = "", 0
    for reference in references:
        errors += _reference_errors(reference)
        if reference.get("controller") is not True or size > MAX_ERROR_CHARS:
            continue
        current = f"{reference.get('kind') or ''}/{reference.get('name') or ''}"
        if controller:
            why = "Only one reference can have Controller set to true. "
            why += f'Found "true" in references for {controller} and {current}'
            shown = shown or [_owner_form(item) for item in references]
            errors.append(invalid("metadata.ownerReferences", shown, why))
            size += len(errors[-1].message)
        else:
            controller = current
    return errors


def _reference_errors(reference: JsonObject) -> list[FieldError]:
    field = "metadata.ownerReferences"
    version, kind = text(reference, "apiVersion"), text(reference, "kind")
    errors = []
    if not version.rpartition("/")[2] or version.count("/") > 1:
        errors.append(invalid(f"{field}.apiVersion", version, "version must not be empty"))
    missing = (name for name in ("kind", "name", "uid") if not text(reference, name))
    errors += [invalid(f"{field}.{name}", "", "must not be empty") for name in missing]
    if version == "v1" and kind == "Event":
        errors.append(invalid(field, _owner_form(reference), "/v1, Kind=Event is disallowed from being an owner"))
    return errors


def _owner_form(reference: JsonObject) -> JsonObject:
    """Return the reference as its Go type prints it."""
    plain: JsonObject = {name: text(reference, name) for name in _OWNER_FIELDS[:4]}
    return {**plain, **{name: reference[name] for name in _OWNER_FIELDS[4:] if reference.get(name) is not None}}


def _finalizer_errors(finalizers: list[str]) -> list[FieldError]:
    field = "metadata.finalizers"
    errors: list[FieldError] = []
    for finalizer in finalizers:
        errors += each(field, finalizer, key_problems(finalizer))
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        why = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(invalid(field, list(finalizers), why))
    return errors


def standard_finalizer_errors(finalizers: list[str], field: str, *, indexed: bool = True) -> list[FieldError]:
    """Return the errors of ``validateKubeFinalizerName`` for each finalizer: a name without a domain must be a standard one."""
    why = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(f"{field}[{index}]" if indexed else field, finalizer, why)
        for index, finalizer in enumerate(finalizers)
        if "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS
    ]


def finalizer_warnings(new: JsonObject, old: JsonObject | None) -> list[str]:
    """Return the warnings about new finalizers of a custom object: a name should consist of a domain and a path."""
    known = strings_of(find(old, "metadata", "finalizers")) if old is not None else []
    warnings = []
    for name in sorted({item for item in strings_of(find(new, "metadata", "finalizers")) if item not in known}):
        warnings += [f"metadata.finalizers: {quoted(name)}: {problem}" for problem in key_problems(name)]
        if "/" not in name and name not in _STANDARD_FINALIZERS:
            path = "including a path (/) " if "." in name else ""
            what = f"prefer a domain-qualified finalizer name {path}to avoid accidental conflicts with other finalizer writers"
            warnings.append(f"metadata.finalizers: {quoted(name)}: {what}")
    return warnings


def _change_errors(
    new: JsonObject, old: JsonObject, *, finalizers: bool, shared: _Shared | None = None
) -> list[FieldError]:
    metadata, before = _metadata(new), _metadata(old)
    shared = shared or _shared_errors(metadata)
    errors: list[FieldError] = []
    names = strings_of(metadata.get("finalizers"))
    if before.get("deletionTimestamp") is not None:
        known = strings_of(before.get("finalizers"))
        if added := sorted({name for name in names if name not in known}):
            shown = ", ".join(map(quoted, added))
            why = "no new finalizers can be added if the object is being deleted, found new finalizers "
            errors.append(forbidden("metadata.finalizers", f"{why}[]string{{{shown}}}"))
    for field in _KEPT:
        if metadata.get(field) != before.get(field):
            errors += immutable(f"metadata.{field}", metadata.get(field), before.get(field))
    errors += shared.named
    errors += shared.managed
    return errors + (standard_finalizer_errors(names, "metadata.finalizers") if finalizers and names else [])


def _metadata(obj: JsonObject) -> JsonObject:
    found = obj.get("metadata")
    return found if isinstance(found, dict) else {}
