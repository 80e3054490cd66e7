"""The validation of Namespaces."""

from typing import Final

from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.metadata import standard_finalizer_errors
from wharfinger.control_plane.wire.field_errors import each, invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find, strings_of
from wharfinger.kube.selectors import key_problems


def _finalizers(obj: JsonObject) -> list[str]:
    found = find(obj, "spec", "finalizers")
    return strings_of(found)


def _namespace_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    for finalizer in _finalizers(obj):
        errors += each("spec.finalizers", finalizer, key_problems(finalizer))
        errors += standard_finalizer_errors([finalizer], "spec.finalizers", indexed=False)
    return errors


def finalize_errors(new: JsonObject) -> list[FieldError]:
    """Return the errors of the finalizers that a write of the subresource ``finalize`` sets."""
    errors: list[FieldError] = []
    for index, finalizer in enumerate(_finalizers(new)):
        field = f"spec.finalizers[{index}]"
        errors += each(field, finalizer, key_problems(finalizer))
        errors += standard_finalizer_errors([finalizer], field, indexed=False)
    return errors


def _status_errors(new: JsonObject, _old: JsonObject) -> list[FieldError]:
    phase = find(new, "status", "phase") or ""
    if find(new, "metadata", "deletionTimestamp") is None:
        wanted, why = "Active", "may only be 'Active' if `deletionTimestamp` is empty"
    else:
        wanted, why = "Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"
    return [] if phase == wanted else [invalid("status.Phase", phase, why)]


NAMESPACE_RULES: Final = Rules(
    create=_namespace_errors, update=lambda new, _old: _namespace_errors(new), status=_status_errors
)
