"""The rules of VolumeAttributesClasses (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.amounts import text
from wharfinger.cluster.control_plane.validation.field_errors import forbidden, required
from wharfinger.cluster.control_plane.validation.metadata import core_meta_errors
from wharfinger.cluster.control_plane.validation.parts import text_map
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.cluster.control_plane.validation.storage_classes import parameter_errors, provisioner_errors
from wharfinger.formats.json_value import JsonObject


def attributes_class_errors(one: JsonObject) -> list[FieldError]:
    """What is wrong with a VolumeAttributesClass."""
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
