"""The validation of a claim's spec: in PersistentVolumeClaims, claim templates of StatefulSets, and ephemeral volumes."""

from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.label_selectors import selector_errors
from wharfinger.control_plane.objects.lenient_fields import part, texts
from wharfinger.control_plane.objects.names import namespace_name_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, forbidden, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.formats.quantity import parse_quantity
from wharfinger.kube.quantities import is_whole

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")


def claim_spec_errors(
    spec: JsonObject, path: str, *, any_value: bool = False, any_group: bool = False
) -> list[FieldError]:
    """Return all errors of a claim's spec at ``path``.

    ``any_value`` and ``any_group`` tolerate invalid values in the selector and invalid API groups of the source, which old
    claims may contain.
    """
    errors = (
        [] if texts(spec, "accessModes") else [required(f"{path}.accessModes", "at least 1 access mode is required")]
    )
    errors += selector_errors(spec.get("selector"), f"{path}.selector", any_value=any_value)
    errors += access_mode_errors(texts(spec, "accessModes"), f"{path}.accessModes")
    errors += _storage_errors(spec, f"{path}.resources[storage]")
    errors += _class_errors(text(spec, "storageClassName"), f"{path}.storageClassName")
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        errors.append(not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    errors += _source_errors(spec, path, any_group=any_group)
    return errors + _class_errors(text(spec, "volumeAttributesClassName"), f"{path}.volumeAttributesClassName")


def access_mode_errors(modes: list[str], path: str) -> list[FieldError]:
    """Return the errors of a list of access modes."""
    errors = [not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    if "ReadWriteOncePod" in modes and any(mode in ACCESS_MODES[:3] for mode in modes):
        errors.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _storage_errors(spec: JsonObject, path: str) -> list[FieldError]:
    value = find(spec, "resources", "requests", "storage")
    amount = parse_quantity(value)
    if value is None or amount is None:
        return [required(path)]
    return [] if amount > 0 else [invalid(path, value, "must be greater than zero")]


def _class_errors(name: str, path: str) -> list[FieldError]:
    return each(path, name, subdomain_problems(name)) if name else []


def _source_errors(spec: JsonObject, path: str, *, any_group: bool) -> list[FieldError]:
    source, reference = part(spec, "dataSource"), part(spec, "dataSourceRef")
    errors: list[FieldError] = []
    for name, value in (("dataSource", source), ("dataSourceRef", reference)):
        if value is not None:
            errors += _reference_errors(value, f"{path}.{name}", any_group=any_group)
    namespace = text(reference, "namespace")
    if namespace:
        field = f"{path}.dataSourceRef.namespace"
        errors += each(field, namespace, namespace_name_problems(namespace))
    if source is None or reference is None:
        return errors
    if namespace:
        why = "may not be specified when dataSourceRef.namespace is specified"
        errors.append(invalid(path, {}, why))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        errors.append(invalid(path, {}, "must match dataSourceRef"))
    return errors


def _reference_errors(reference: JsonObject, path: str, *, any_group: bool) -> list[FieldError]:
    errors = [required(f"{path}.{name}") for name in ("name", "kind") if not text(reference, name)]
    group, kind = text(reference, "apiGroup"), text(reference, "kind")
    if not group and kind != "PersistentVolumeClaim":
        errors.append(invalid(path, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup"))
    if group and not any_group:
        errors += each(f"{path}.apiGroup", group, subdomain_problems(group))
    return errors


def claim_spec_warnings(spec: JsonObject, path: str) -> list[str]:
    """Return warnings about a claim's spec: sizes in bytes that are not whole numbers."""
    return [
        f'{path}.resources.{part_name}[storage]: fractional byte value "{value}" is invalid, must be an integer'
        for part_name in ("requests", "limits")
        if (value := find(spec, "resources", part_name, "storage")) is not None and not is_whole(value)
    ]
