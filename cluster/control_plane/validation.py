"""What the server refuses in an object, whatever wrote it: names, labels, annotations, finalizers, a kind's own rules.

Pure: an object in, its :class:`FieldError`\\ s out, worded as ``apimachinery/validation`` words them. Kinds are checked as
far as clients of packages run into it; what a schema would find (unknown fields, types) is not looked for here.
"""

import re
from collections.abc import Callable
from typing import Final

from wharfinger.cluster.control_plane.crds import check_definition
from wharfinger.cluster.control_plane.kinds import Kind
from wharfinger.cluster.control_plane.selectors import key_problems, value_problems
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.formats.json_value import JsonObject, JsonValue, ShapeError, find

SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
ANNOTATIONS_LIMIT: Final = 256 * 1024
CONFIG_LIMIT: Final = 1024 * 1024
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or "
    "'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
DEFINITION: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def invalid_value(field: str, value: str, why: str) -> FieldError:
    """``field: Invalid value: "value": why``."""
    return FieldError(field, "FieldValueInvalid", f'Invalid value: "{value}": {why}')


def required(field: str, why: str = "") -> FieldError:
    """``field: Required value: why``."""
    return FieldError(field, "FieldValueRequired", f"Required value: {why}" if why else "Required value")


def validate(kind: Kind, obj: JsonObject) -> list[FieldError]:
    """Everything wrong with an object that is about to be stored."""
    errors = [*_name_errors(kind, obj), *_metadata_errors(obj)]
    check = _CHECKS.get(kind.group_kind)
    return errors + check(obj) if check is not None else errors


def _name_errors(kind: Kind, obj: JsonObject) -> list[FieldError]:
    name = find(obj, "metadata", "name")
    if not isinstance(name, str) or not name:
        return [required("metadata.name", "name or generateName is required")]
    if kind.free_name:
        problems = [f"may not contain '{char}'" for char in "/%" if char in name]
        problems += [f"may not be '{name}'"] if name in {".", ".."} else []
    elif kind.dotless_name:
        problems = _label_problems(name)
    else:
        problems = [] if len(name) <= 253 else ["must be no more than 253 characters"]
        problems += [] if SUBDOMAIN.fullmatch(name) else [_SUBDOMAIN_RULE]
    return [invalid_value("metadata.name", name, problem) for problem in problems]


def _label_problems(name: str) -> list[str]:
    if "." in name and SUBDOMAIN.fullmatch(name):
        return ["must not contain dots"]
    problems = [] if len(name) <= 63 else ["must be no more than 63 characters"]
    return problems + ([] if LABEL.fullmatch(name) else [_LABEL_RULE])


def _metadata_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    labels = find(obj, "metadata", "labels")
    for key, value in labels.items() if isinstance(labels, dict) else ():
        errors += [invalid_value("metadata.labels", key, problem) for problem in key_problems(key)]
        errors += [
            invalid_value("metadata.labels", str(value), problem) for problem in value_problems(str(value or ""))
        ]
    annotations = find(obj, "metadata", "annotations")
    if isinstance(annotations, dict):
        for key in annotations:
            errors += [invalid_value("metadata.annotations", key, problem) for problem in key_problems(key.lower())]
        if sum(len(key.encode()) + len(str(value).encode()) for key, value in annotations.items()) > ANNOTATIONS_LIMIT:
            errors.append(_too_long("metadata.annotations", ANNOTATIONS_LIMIT))
    finalizers = find(obj, "metadata", "finalizers")
    for index, finalizer in enumerate(finalizers if isinstance(finalizers, list) else []):
        errors += _finalizer_errors(f"metadata.finalizers[{index}]", str(finalizer))
    return errors


def _finalizer_errors(field: str, finalizer: str) -> list[FieldError]:
    if problems := key_problems(finalizer):
        return [invalid_value(field, finalizer, problem) for problem in problems]
    if "/" not in finalizer and "." not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        return [invalid_value(field, finalizer, "name is neither a standard finalizer name nor is it fully qualified")]
    return []


def _too_long(field: str, limit: int) -> FieldError:
    return FieldError(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")


def _config_map_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    for part in ("data", "binaryData"):
        entries = obj.get(part)
        for key, value in entries.items() if isinstance(entries, dict) else ():
            errors += [invalid_value(f"{part}[{key}]", key, problem) for problem in _config_key_problems(key)]
            size += len(str(value).encode())
    return errors + ([_too_long("[]", CONFIG_LIMIT)] if size > CONFIG_LIMIT else [])


def _config_key_problems(key: str) -> list[str]:
    if len(key) > 253:
        return ["must be no more than 253 characters"]
    if not CONFIG_KEY.fullmatch(key):
        return [_CONFIG_KEY_RULE]
    if key in {".", ".."} or key.startswith(".."):
        return [f"must not be '{key}'" if key in {".", ".."} else "must not start with '..'"]
    return []


def _secret_errors(obj: JsonObject) -> list[FieldError]:
    errors: list[FieldError] = []
    size = 0
    entries = obj.get("data")
    for key, value in entries.items() if isinstance(entries, dict) else ():
        errors += [invalid_value(f"data[{key}]", key, problem) for problem in _config_key_problems(key)]
        size += len(str(value)) * 3 // 4
    return errors + ([_too_long("data", CONFIG_LIMIT)] if size > CONFIG_LIMIT else [])


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


_CHECKS: Final[dict[str, Callable[[JsonObject], list[FieldError]]]] = {
    "ConfigMap": _config_map_errors,
    "Secret": _secret_errors,
    DEFINITION: _definition_errors,
}


def validate_update(kind: Kind, old: JsonObject, new: JsonObject) -> list[FieldError]:
    """What an update may not change: the uid, finalizers of an object that is being deleted, immutable data."""
    errors: list[FieldError] = []
    uid = find(new, "metadata", "uid")
    if uid is not None and uid not in ("", find(old, "metadata", "uid")):
        errors += [invalid_value("metadata.uid", str(uid), "field is immutable")] * _said(kind)
    if find(old, "metadata", "deletionTimestamp") is not None:
        known = _strings(find(old, "metadata", "finalizers"))
        added = [item for item in _strings(find(new, "metadata", "finalizers")) if item not in known]
        if added:
            shown = ", ".join(f'"{item}"' for item in added)
            why = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers "
            why += f"[]string{{{shown}}}"
            errors += [FieldError("metadata.finalizers", "FieldValueForbidden", why)] * _said(kind)
    if kind.group_kind == DEFINITION:
        errors += _definition_update_errors(old, new)
    if kind.group_kind in {"ConfigMap", "Secret"} and old.get("immutable") is True:
        for part in ("immutable", "data", "binaryData"):
            if new.get(part) != old.get(part):
                errors.append(
                    FieldError(part, "FieldValueForbidden", "Forbidden: field is immutable when `immutable` is set")
                )
    return errors


def _definition_update_errors(old: JsonObject, new: JsonObject) -> list[FieldError]:
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


def _said(kind: Kind) -> int:
    """Built-in kinds check metadata in the store and in their strategy, so each cause stands twice."""
    return 1 if kind.custom else 2


def _strings(value: JsonValue) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
