"""The validation of ControllerRevisions: their data is an object and may not change."""

from wharfinger.control_plane.wire.field_errors import NEGATIVE, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, encode_json


def revision_errors(obj: JsonObject) -> list[FieldError]:
    """Return the errors of a new ControllerRevision."""
    errors, data = _number_errors(obj), obj.get("data")
    if data is None:
        return [*errors, required("data", "data is mandatory")]
    return errors if isinstance(data, dict) else [*errors, required("data", "data must be a valid JSON object")]


def revision_update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Return the errors of a changed revision; its data must not change, and counts as changed even if only the order of
    members differs.
    """
    errors = _number_errors(new)
    return (
        errors
        if encode_json(new.get("data")) == encode_json(old.get("data"))
        else [*errors, invalid("data", new.get("data"), "field is immutable")]
    )


def _number_errors(obj: JsonObject) -> list[FieldError]:
    revision = obj.get("revision")
    if isinstance(revision, int) and revision < 0:
        return [invalid("revision", revision, NEGATIVE)]
    return []
