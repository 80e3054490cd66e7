"""The validation of paths and file modes in pod specs, shared by volumes, mounts and profiles."""

from typing import Final

from wharfinger.control_plane.objects.amounts import optional_number, text
from wharfinger.control_plane.wire.field_errors import invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

MODE_RULE: Final = "must be a number between 0 and 0777 (octal), both inclusive"
_HIGHEST_MODE: Final = 0o777


def mode_errors(obj: JsonObject, name: str, path: str) -> list[FieldError]:
    """Return the errors of a file mode, which may be absent."""
    mode = optional_number(obj, name)
    return [] if mode is None or 0 <= mode <= _HIGHEST_MODE else [invalid(f"{path}.{name}", mode, MODE_RULE)]


def no_backstep_errors(target: str, path: str) -> list[FieldError]:
    """Return an error if a component of a path is ``..``."""
    return [invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def descending_errors(target: str, path: str) -> list[FieldError]:
    """Return the errors of a path: it must be relative, and must not contain ``..``."""
    errors = [invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + no_backstep_errors(target, path)


def local_errors(target: str, path: str) -> list[FieldError]:
    """Return the errors of a path: it must be relative, must not contain ``..``, and must not begin with two dots."""
    errors = descending_errors(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(invalid(path, target, "must not start with '..'"))
    return errors


def key_to_path_errors(item: JsonObject, path: str) -> list[FieldError]:
    """Return the errors of one item of a ConfigMap or Secret volume."""
    target = text(item, "path")
    errors = [] if text(item, "key") else [required(f"{path}.key")]
    errors += [] if target else [required(f"{path}.path")]
    return errors + local_errors(target, f"{path}.path") + mode_errors(item, "mode", path)


def missing(obj: JsonValue, path: str, *names: str) -> list[FieldError]:
    """Return a ``required`` error for each member in ``names`` that is missing, empty, or not a string."""
    return [required(f"{path}.{name}") for name in names if not text(obj, name)]
