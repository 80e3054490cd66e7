"""The validation of the environment of containers: ``env`` and ``envFrom``."""

from typing import Final

from wharfinger.control_plane.api.core.pod_specs.downward_api import (
    ENVIRONMENT_FIELDS,
    field_reference_errors,
    file_reference_errors,
    key_reference_errors,
    resource_reference_errors,
)
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.lenient_fields import part, parts
from wharfinger.control_plane.objects.name_rules import without_dash
from wharfinger.control_plane.objects.names import environment_name_problems, subdomain_problems
from wharfinger.control_plane.wire.field_errors import each, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_ONE_OF: Final = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
)
_TOO_MANY: Final = "may not have more than one field specified at a time"


def environment_errors(container: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of ``env`` and ``envFrom`` of the container at ``path``."""
    errors: list[FieldError] = []
    for index, variable in enumerate(parts(container, "env")):
        at = f"{path}.env[{index}]"
        name = text(variable, "name")
        errors += each(f"{at}.name", name, environment_name_problems(name)) if name else [required(f"{at}.name")]
        errors += _value_errors(variable, f"{at}.valueFrom")
    for index, source in enumerate(parts(container, "envFrom")):
        errors += _source_errors(source, f"{path}.envFrom", index)
    return errors


def _value_errors(variable: JsonObject, path: str) -> list[FieldError]:
    source = part(variable, "valueFrom")
    if source is None:
        return []
    errors: list[FieldError] = []
    count = 0
    if (reference := part(source, "fieldRef")) is not None:
        count += 1
        errors += field_reference_errors(reference, ENVIRONMENT_FIELDS, f"{path}.fieldRef")
    if (reference := part(source, "resourceFieldRef")) is not None:
        count += 1
        errors += resource_reference_errors(reference, f"{path}.resourceFieldRef", volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if (reference := part(source, name)) is not None:
            count += 1
            errors += key_reference_errors(reference, f"{path}.{name}")
    if (reference := part(source, "fileKeyRef")) is not None:
        count += 1
        errors += file_reference_errors(reference, f"{path}.fileKeyRef")
    if count == 0:
        errors.append(invalid(path, "", _ONE_OF))
    elif text(variable, "value"):
        errors.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif count > 1:
        errors.append(invalid(path, "", _TOO_MANY))
    return errors


def _source_errors(source: JsonObject, path: str, index: int) -> list[FieldError]:
    errors: list[FieldError] = []
    at, prefix = f"{path}[{index}]", text(source, "prefix")
    if prefix:
        errors += each(f"{at}.prefix", prefix, environment_name_problems(prefix))
    references = [(name, part(source, name)) for name in ("configMapRef", "secretRef")]
    found = [(name, reference) for name, reference in references if reference is not None]
    for kind, reference in found:
        name = text(reference, "name")
        where = f"{at}.{kind}.name"
        errors += each(where, name, subdomain_problems(without_dash(name))) if name else [required(where)]
    if not found:
        errors.append(invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
    elif len(found) > 1:
        errors.append(invalid(path, "", _TOO_MANY))
    return errors
