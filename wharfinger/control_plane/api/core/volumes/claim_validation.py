"""The validation of PersistentVolumeClaims, except the spec, which other kinds also contain (``pod_specs.claim_specs``)."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.claim_specs import claim_spec_errors, claim_spec_warnings
from wharfinger.control_plane.api.core.pod_specs.resources import is_native, quantity_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.internal_types import internal_difference
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.label_selectors import selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, texts
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.wire.field_errors import (
    IMMUTABLE,
    each,
    forbidden,
    immutable,
    invalid,
    not_supported,
    required,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue, find
from wharfinger.kube.quantities import amount, whole
from wharfinger.kube.selectors import key_problems

CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
_RESIZING: Final = (
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
)
_KEPT: Final = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n"
)
_NIL: Final = "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil"
_EMPTY: Final = "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil"


def _spec(claim: JsonObject) -> JsonObject:
    return part(claim, "spec") or {}


def _claim_errors(claim: JsonObject) -> list[FieldError]:
    return claim_spec_errors(_spec(claim), "spec")


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    any_value = bool(selector_errors(_spec(old).get("selector"), "spec.selector"))
    any_group = any(find(old, "spec", name, "apiGroup") is not None for name in ("dataSource", "dataSourceRef"))
    errors = core_meta_errors(new)
    errors += claim_spec_errors(_spec(new), "spec", any_value=any_value, any_group=any_group)
    errors += _kept_errors(new, old)
    size, before, real = _size(new), _size(old), amount(find(new, "status", "capacity", "storage"))
    if amount(size) < amount(before) and amount(size) <= real:
        errors.append(forbidden("spec.resources.requests.storage", "field can not be less than status.capacity"))
    errors += immutable("volumeMode", _spec(new).get("volumeMode"), _spec(old).get("volumeMode"))
    name, known = _spec(new).get("volumeAttributesClassName"), _spec(old).get("volumeAttributesClassName")
    if name != known and find(old, "status", "currentVolumeAttributesClassName") is not None and not name:
        errors.append(forbidden("spec.volumeAttributesClassName", _NIL if name is None else _EMPTY))
    return errors


def _size(claim: JsonObject) -> JsonValue:
    return find(claim, "spec", "resources", "requests", "storage")


def _kept_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed claim: its spec is immutable, except for an unset ``volumeName`` and, once the claim is
    bound, the requested size and the attributes class.
    """
    errors: list[FieldError] = []
    spec, before = dict(_spec(new)), dict(_spec(old))
    if not before.get("volumeName"):
        _set(before, "volumeName", spec.get("volumeName"))
    annotation, known = (_annotation(claim) for claim in (new, old))
    name = spec.get("storageClassName")
    if known is not None and "storageClassName" not in before and name == known and annotation in (None, known):
        spec.pop("storageClassName")
    else:
        if (annotation or "") != (known or ""):
            errors.append(invalid(f"metadata.annotations.{CLASS_ANNOTATION}", annotation or "", IMMUTABLE))
        if name is not None and "storageClassName" not in before and known in (None, name):
            spec.pop("storageClassName")
    if text(new, "status", "phase") == "Bound":
        if find(spec, "resources", "requests") is not None:
            resources = dict(part(spec, "resources") or {})
            spec["resources"] = {
                **resources,
                "requests": {**(part(resources, "requests") or {}), "storage": _size(old)},
            }
        _set(spec, "volumeAttributesClassName", before.get("volumeAttributesClassName"))
    if spec != before:
        errors.append(forbidden("spec", _KEPT + internal_difference("core.PersistentVolumeClaimSpec", before, spec)))
    return errors


def _annotation(claim: JsonObject) -> JsonValue:
    return find(claim, "metadata", "annotations", CLASS_ANNOTATION)


def _set(spec: JsonObject, name: str, value: JsonValue) -> None:
    spec.pop(name, None)
    if value is not None:
        spec[name] = value


def _status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    errors = [] if texts(new, "spec", "accessModes") else [required("Spec.accessModes")]
    for name, value in (part(new, "status", "capacity") or {}).items():
        errors += _size_errors(value, f"status.capacity[{name}]")
    field = "status.allocatedResourceStatuses"
    for name, value in (part(new, "status", "allocatedResourceStatuses") or {}).items():
        errors += _resource_errors(name, field)
        if value not in _RESIZING:
            errors.append(not_supported(field, name, sorted(_RESIZING)))
    field = "status.allocatedResources"
    for name, value in (part(new, "status", "allocatedResources") or {}).items():
        errors += (
            _resource_errors(name, field)
            or _size_errors(value, f"{field}[{name}]")
            or quantity_errors("storage", value, f"{field}[{name}]")
        )
    return errors


def _size_errors(value: JsonValue, field: str) -> list[FieldError]:
    return [invalid(field, whole(value), "must be a valid resource quantity")] if whole(value) < 0 else []


def _resource_errors(name: str, field: str) -> list[FieldError]:
    if errors := each(field, name, key_problems(name)):
        return errors
    return [not_supported(field, name, ["storage"])] if is_native(name) and name != "storage" else []


def _warnings(claim: JsonObject, _old: JsonObject | None) -> list[str]:
    said = []
    if _annotation(claim) is not None:
        what = 'deprecated since v1.8; use "storageClassName" attribute instead'
        said.append(f"metadata.annotations[{CLASS_ANNOTATION}]: {what}")
    return said + claim_spec_warnings(_spec(claim), "spec")


CLAIM_RULES: Final = Rules(create=_claim_errors, update=_update_errors, status=_status_errors, warnings=_warnings)
