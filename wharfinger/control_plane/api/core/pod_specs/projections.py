"""The validation of ``projected`` volumes (several sources) and ``downwardAPI`` volumes (files with fields of the pod)."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.downward_api import (
    VOLUME_FIELDS,
    field_reference_errors,
    resource_reference_errors,
)
from wharfinger.control_plane.api.core.pod_specs.files import key_to_path_errors, local_errors, missing, mode_errors
from wharfinger.control_plane.objects.amounts import number, text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_TWICE: Final = "conflicting duplicate paths"
_SHORTEST_TOKEN: Final = 600
_LONGEST_TOKEN: Final = 1 << 32


def downward_errors(source: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a ``downwardAPI`` volume."""
    errors = mode_errors(source, "defaultMode", path)
    for item in parts(source, "items"):
        errors += _file_errors(item, path)
    return errors


def _file_errors(item: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of one file. As in kube-apiserver, ``path`` is the path of the list, not of the file."""
    errors = missing(item, path, "path") + local_errors(text(item, "path"), f"{path}.path")
    field, resource = part(item, "fieldRef"), part(item, "resourceFieldRef")
    if field is not None:
        errors += field_reference_errors(field, VOLUME_FIELDS, f"{path}.fieldRef")
        if resource is not None:
            errors.append(
                invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
            )
    elif resource is not None:
        errors += resource_reference_errors(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + mode_errors(item, "mode", path)


def projected_errors(source: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of a ``projected`` volume; no two of its sources may write the same path."""
    errors = mode_errors(source, "defaultMode", path)
    taken: set[str] = set()
    for index, projection in enumerate(parts(source, "sources")):
        errors += _projection_errors(projection, path, f"{path}.sources[{index}]", taken)
    return errors


def _projection_errors(projection: JsonObject, path: str, at: str, taken: set[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    count = 0
    for kind in ("secret", "configMap"):
        if (held := part(projection, kind)) is not None:
            count += 1
            errors += missing(held, f"{at}.{kind}", "name")
            for index, item in enumerate(parts(held, "items")):
                errors += key_to_path_errors(item, f"{at}.{kind}.items[{index}]")
                errors += _taken_errors(text(item, "path"), text(held, "name"), path, taken)
    if (held := part(projection, "downwardAPI")) is not None:
        count += 1
        for item in parts(held, "items"):
            errors += _file_errors(item, f"{at}.downwardAPI")
            errors += _taken_errors(text(item, "path"), text(item, "path"), path, taken)
    if (held := part(projection, "serviceAccountToken")) is not None:
        count += 1
        errors += _token_errors(held, path, f"{at}.serviceAccountToken")
    if count > 1:
        errors.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _taken_errors(target: str, shown: str, path: str, taken: set[str]) -> list[FieldError]:
    if not target or target not in taken:
        taken.add(target)
        return []
    return [invalid(path, shown, _TWICE)]


def _token_errors(token: JsonObject, path: str, at: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds, where = number(token, "expirationSeconds"), f"{at}.expirationSeconds"
    if seconds < _SHORTEST_TOKEN:
        errors.append(invalid(where, seconds, "may not specify a duration less than 10 minutes"))
    if seconds > _LONGEST_TOKEN:
        errors.append(invalid(where, seconds, "may not specify a duration larger than 2^32 seconds"))
    target = text(token, "path")
    return errors + (local_errors(target, f"{path}.path") if target else [required(f"{path}.path")])
