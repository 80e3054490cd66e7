"""The rules of StorageClasses (storage.k8s.io/v1)."""

from typing import Final

from wharfinger.cluster.control_plane.selectors import key_problems
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.amounts import text
from wharfinger.cluster.control_plane.validation.field_errors import (
    each,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)
from wharfinger.cluster.control_plane.validation.parts import text_map
from wharfinger.cluster.control_plane.validation.rules import Rules
from wharfinger.formats.json_value import JsonObject, find

PARAMETERS_LIMIT: Final = 512
PARAMETERS_BYTES: Final = 256 * 1024
_RECLAIM: Final = ("Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_IMMUTABLE: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def storage_class_errors(one: JsonObject) -> list[FieldError]:
    """What is wrong with a StorageClass."""
    provisioner = text(one, "provisioner")
    errors = each("provisioner", provisioner.lower(), key_problems(provisioner.lower())) if provisioner else []
    errors = errors if provisioner else [required("provisioner")]
    errors += _parameter_errors(text_map(one, "parameters"))
    policy, mode = find(one, "reclaimPolicy"), find(one, "volumeBindingMode")
    if policy and policy not in _RECLAIM:
        errors.append(not_supported("reclaimPolicy", policy, _RECLAIM))
    if mode is None:
        errors.append(required("volumeBindingMode"))
    elif mode not in _BINDING:
        errors.append(not_supported("volumeBindingMode", mode, _BINDING))
    return errors


def _parameter_errors(parameters: dict[str, str]) -> list[FieldError]:
    if len(parameters) > PARAMETERS_LIMIT:
        return [too_long("parameters", PARAMETERS_LIMIT)]
    errors = [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    return [*errors, too_long("parameters", PARAMETERS_BYTES)] if size > PARAMETERS_BYTES else errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    return [error for field in _IMMUTABLE for error in immutable(field, new.get(field), old.get(field))]


STORAGE_CLASS_RULES: Final[dict[str, Rules]] = {
    "StorageClass.storage.k8s.io": Rules(create=storage_class_errors, update=_update_errors),
}
