"""The rules of CustomResourceDefinitions."""

from typing import Final

from wharfinger.cluster.control_plane.crds import check_definition
from wharfinger.cluster.control_plane.kinds import DEFINITION
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.field_errors import invalid_value, required
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, find


def _definition_errors(obj: JsonObject) -> list[FieldError]:
    try:
        check_definition(obj)
    except ShapeError as error:
        return [FieldError("spec", "FieldValueInvalid", f"Invalid value: {error}")]
    needed = (("group",), ("scope",), ("names", "plural"), ("names", "kind"))
    errors = [required(f"spec.{'.'.join(path)}") for path in needed if not find(obj, "spec", *path)]
    versions = find(obj, "spec", "versions")
    listed = versions if isinstance(versions, list) else []
    if sum(1 for item in listed if find(item, "storage") is True) != 1:
        errors.append(
            FieldError(
                "spec.versions",
                "FieldValueInvalid",
                "Invalid value: must have exactly one version marked as storage version",
            )
        )
    for index, item in enumerate(listed):
        if not isinstance(find(item, "schema", "openAPIV3Schema"), dict):
            errors.append(required(f"spec.versions[{index}].schema.openAPIV3Schema", "schemas are required"))
    name, expected = (
        find(obj, "metadata", "name"),
        f"{find(obj, 'spec', 'names', 'plural')}.{find(obj, 'spec', 'group')}",
    )
    if name != expected:
        errors.append(invalid_value("metadata.name", str(name), 'must be spec.names.plural+"."+spec.group'))
    return errors


def _definition_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors = [
        invalid_value(f"spec.{'.'.join(path)}", str(find(new, "spec", *path)), "field is immutable")
        for path in (("scope",), ("names", "plural"), ("names", "kind"), ("group",))
        if find(new, "spec", *path) != find(old, "spec", *path)
    ]
    versions = find(new, "spec", "versions")
    names = {find(item, "name") for item in versions} if isinstance(versions, list) else set()
    for index, stored in enumerate(_strings(find(old, "status", "storedVersions"))):
        if stored not in names:
            why = (
                f"missing from spec.versions; {stored} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {stored} and removes {stored} from "
                "status.storedVersions"
            )
            errors.append(invalid_value(f"status.storedVersions[{index}]", stored, why))
    return errors


def _strings(value: JsonValue) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


DEFINITION_RULES: Final[dict[str, Rules]] = {
    DEFINITION: Rules(
        create=_definition_errors,
        update=lambda new, old: _definition_errors(new) + _definition_update_errors(new, old),
    ),
}
