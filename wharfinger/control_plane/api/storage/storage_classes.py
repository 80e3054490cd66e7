"""The validation of StorageClasses (storage.k8s.io/v1)."""

from collections import Counter
from typing import Final

from wharfinger.control_plane.api.core.volumes.node_affinity import deprecated_label
from wharfinger.control_plane.objects.amounts import text
from wharfinger.control_plane.objects.kind_rules import Rules
from wharfinger.control_plane.objects.lenient_fields import parts, repeated, text_map, texts
from wharfinger.control_plane.objects.metadata import meta_update_errors
from wharfinger.control_plane.wire.field_errors import (
    MAX_LIST_ERRORS,
    duplicate,
    each,
    immutable,
    invalid,
    not_supported,
    required,
    too_long,
)
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.selectors import key_problems

PARAMETERS_LIMIT: Final = 512
PARAMETERS_BYTES: Final = 256 * 1024
_RECLAIM: Final = ("Delete", "Retain")
_BINDING: Final = ("Immediate", "WaitForFirstConsumer")
_IMMUTABLE: Final = ("parameters", "provisioner", "reclaimPolicy", "volumeBindingMode")


def storage_class_errors(one: JsonObject) -> list[FieldError]:
    """Return the errors of a StorageClass."""
    errors = provisioner_errors(text(one, "provisioner"), "provisioner")
    errors += parameter_errors(text_map(one, "parameters"))
    policy, mode = find(one, "reclaimPolicy"), find(one, "volumeBindingMode")
    if policy and policy not in _RECLAIM:
        errors.append(not_supported("reclaimPolicy", policy, _RECLAIM))
    if mode is None:
        errors.append(required("volumeBindingMode"))
    elif mode not in _BINDING:
        errors.append(not_supported("volumeBindingMode", mode, _BINDING))
    return errors + _topology_errors(parts(one, "allowedTopologies"))


def provisioner_errors(name: str, field: str) -> list[FieldError]:
    """Return the errors of the name of a provisioner or driver."""
    return each(field, name.lower(), key_problems(name.lower())) if name else [required(field)]


def _topology_errors(terms: list[JsonObject]) -> list[FieldError]:
    """Return the errors of the terms that restrict the topology of volumes.

    As in kube-apiserver, terms are compared with a list that begins with one empty entry for each term. Therefore an empty term
    is reported as a duplicate of each of these entries.
    """
    errors: list[FieldError] = []
    known = Counter({frozenset[tuple[str, frozenset[str]]](): len(terms)})
    for index, term in enumerate(terms):
        path = f"allowedTopologies[{index}].matchLabelExpressions"
        values: dict[str, set[str]] = {}
        for number, expression in enumerate(parts(term, "matchLabelExpressions")):
            key, listed = text(expression, "key"), texts(expression, "values")
            errors += _expression_errors(key, listed, f"{path}[{number}]")
            errors += [duplicate(f"{path}[{number}].key", key)] if key in values else []
            values[key] = set(listed)
        term_key = frozenset((key, frozenset(listed)) for key, listed in values.items())
        errors += [duplicate(path, "")] * min(known[term_key], MAX_LIST_ERRORS - len(errors))
        known[term_key] += 1
    return errors


def _expression_errors(key: str, values: list[str], path: str) -> list[FieldError]:
    errors = [] if values else [required(f"{path}.values")]
    errors += [duplicate(f"{path}.values[{index}]", values[index]) for index in sorted(repeated(values))]
    return errors + each(f"{path}.key", key, key_problems(key))


def parameter_errors(parameters: dict[str, str]) -> list[FieldError]:
    """Return the errors of a driver's parameters; their number and size are limited."""
    if len(parameters) > PARAMETERS_LIMIT:
        return [too_long("parameters", PARAMETERS_LIMIT)]
    errors = [invalid("parameters", key, "field can not be empty.") for key in parameters if not key]
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    return [*errors, too_long("parameters", PARAMETERS_BYTES)] if size > PARAMETERS_BYTES else errors


def _update_errors(new: JsonObject, old: JsonObject) -> list[FieldError]:
    changed = [error for field in _IMMUTABLE for error in immutable(field, new.get(field), old.get(field))]
    return storage_class_errors(new) + meta_update_errors(new, old) + changed


def _warnings(new: JsonObject, _old: JsonObject | None) -> list[str]:
    return [
        f"allowedTopologies[{index}].matchLabelExpressions[{number}].key: {deprecated}"
        for index, term in enumerate(parts(new, "allowedTopologies"))
        for number, expression in enumerate(parts(term, "matchLabelExpressions"))
        if (deprecated := deprecated_label(text(expression, "key")))
    ]


STORAGE_CLASS_RULES: Final[dict[str, Rules]] = {
    "StorageClass.storage.k8s.io": Rules(create=storage_class_errors, update=_update_errors, warnings=_warnings),
}
