"""The rules of ``metadata.managedFields``, and of the names of field managers."""

from typing import Final

from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.wire.field_errors import invalid, too_long
from wharfinger.control_plane.wire.status import MAX_ERROR_CHARS, FieldError
from wharfinger.formats.json.value import JsonObject

MANAGER_LIMIT: Final = 128
SUBRESOURCE_LIMIT: Final = 256


def managed_fields_errors(metadata: JsonObject) -> list[FieldError]:
    """Return the errors of the entries in ``metadata.managedFields`` (``ValidateManagedFields``)."""
    errors: list[FieldError] = []
    entries = metadata.get("managedFields")
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        field = f"metadata.managedFields[{index}]"
        if isinstance(entry, dict) and has_usual_form(entry):
            continue
        operation, manager = text(entry, "operation"), text(entry, "manager")
        if operation not in {"Apply", "Update"}:
            errors.append(invalid(f"{field}.operation", operation, "must be `Apply` or `Update`"))
        if (form := text(entry, "fieldsType")) and form != "FieldsV1":
            errors.append(invalid(f"{field}.fieldsType", form, "must be `FieldsV1`"))
        errors += manager_errors(manager, f"{field}.manager")
        if len(text(entry, "subresource").encode()) > SUBRESOURCE_LIMIT:
            errors.append(too_long(f"{field}.subresource", SUBRESOURCE_LIMIT))
    return errors


def has_usual_form(entry: JsonObject) -> bool:
    """Return whether an entry of ``managedFields`` has the usual valid form, so that its details need no check."""
    manager, subresource = entry.get("manager"), entry.get("subresource")
    return (
        entry.get("operation") in ("Update", "Apply")
        and entry.get("fieldsType") == "FieldsV1"
        and isinstance(manager, str)
        and manager.isprintable()
        and len(manager) <= MANAGER_LIMIT // 4
        and (subresource is None or (isinstance(subresource, str) and len(subresource) <= SUBRESOURCE_LIMIT // 4))
    )


def manager_errors(manager: str, field: str) -> list[FieldError]:
    """Return the errors of ``ValidateFieldManager``: at most 128 bytes, all printable.

    There is one error for each unprintable character, up to a limit; each error shows the whole name.
    """
    if manager.isprintable() and len(manager) <= MANAGER_LIMIT // 4:
        return []
    errors = [too_long(field, MANAGER_LIMIT)] if len(manager.encode()) > MANAGER_LIMIT else []
    position = size = 0
    for char in manager:
        if not char.isprintable() and size <= MAX_ERROR_CHARS:
            why = f"invalid character U+{ord(char):04X} (at position {position})"
            errors.append(invalid(field, manager, why))
            size += len(errors[-1].message)
        position += len(char.encode())
    return errors
