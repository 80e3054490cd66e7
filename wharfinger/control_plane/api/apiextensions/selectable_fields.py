"""The validation of the selectable fields of a CustomResourceDefinition: at most eight paths to scalars in its schema."""

from typing import Final, TypeAlias

from wharfinger.control_plane.custom.schema_paths import FieldPathError, valid_field_path
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import duplicate, invalid, required, too_many
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

MAX_FIELDS: Final = 8
TooMany: TypeAlias = frozenset[str]
"""The versions that already had too many selectable fields before an update that does not change these fields."""


def selectable_errors(
    fields: list[JsonObject], schema: JsonObject | None, path: str, *, crowded: bool, shared: bool = False
) -> list[FieldError]:
    """Return the errors of the selectable fields of a version, or of those that all versions share."""
    place = f"{path}.selectableFields"
    if schema is None:
        needed = (
            "may only be set when validations.schema is included"
            if shared
            else "may only be set when `version.schema.openAPIV3Schema` is not included"
        )
        return [invalid(place, "", needed)]
    errors: list[FieldError] = []
    seen: set[str] = set()
    for index, item in enumerate(fields):
        text, where = schemas.text(item, "jsonPath"), f"{place}[{index}].jsonPath"
        if not text:
            errors.append(required(where))
            continue
        try:
            found, steps = valid_field_path(text, schema, arrays=False)
        except FieldPathError as error:
            errors.append(invalid(where, text, f"is an invalid path: {error}"))
            continue
        if steps.partition(".")[0] == "metadata":
            errors.append(invalid(where, text, "must not point to fields in metadata"))
        if schemas.text(found, "type") not in {"string", "boolean", "integer"}:
            why = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are "
            errors.append(invalid(where, text, why + "allowed."))
        if steps in seen:
            errors.append(duplicate(where, text))
        seen.add(steps)
    return errors + ([too_many(place, len(seen), MAX_FIELDS)] if len(seen) > MAX_FIELDS and not crowded else [])
