"""The validation of VolumeAttributesClasses (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.control_plane.api.storage.storage_classes import parameter_errors, provisioner_errors
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import text_map
from wharfinger.control_plane.objects.metadata import core_meta_errors
from wharfinger.control_plane.wire.field_errors import forbidden, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject


def attributes_class_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of a VolumeAttributesClass."""
    parameters = text_map(one, "parameters")
    errors = provisioner_errors(text(one, "driverName"), "driverName") + parameter_errors(parameters)
    return errors if parameters else [*errors, required("parameters", "must contain at least one key/value pair")]


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    if text(new, "driverName") != text(old, "driverName"):
        errors.append(forbidden("driverName", "updates to driverName are forbidden."))
    if text_map(new, "parameters") != text_map(old, "parameters"):
        errors.append(forbidden("parameters", "updates to parameters are forbidden."))
    return errors + core_meta_errors(new, old, namespaced=False) + attributes_class_errors(new)


ATTRIBUTES_CLASS_RULES: Final[dict[str, Rules]] = {
    "VolumeAttributesClass.storage.k8s.io": Rules(create=attributes_class_errors, update=_update_errors),
}
