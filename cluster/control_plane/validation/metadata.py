"""The rules of ``metadata`` in every kind: names, labels, annotations, finalizers; what an update may not change in it."""

import re
from typing import Final

from wharfinger.cluster.control_plane.kinds import Kind
from wharfinger.cluster.control_plane.selectors import key_problems, value_problems
from wharfinger.cluster.control_plane.status import FieldError
from wharfinger.cluster.control_plane.validation.field_errors import invalid_value, required, too_long
from wharfinger.formats.json_value import JsonObject, JsonValue, find

SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
ANNOTATIONS_LIMIT: Final = 256 * 1024
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end "
    "with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_RULE: Final = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an "
    "alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
)
_STANDARD_FINALIZERS: Final = frozenset({"kubernetes", "orphan", "foregroundDeletion"})


def metadata_errors(kind: Kind, obj: JsonObject) -> list[FieldError]:
    """What is wrong with the name and the rest of ``metadata``."""
    return [*_name_errors(kind, obj), *_metadata_errors(obj)]


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
            errors.append(too_long("metadata.annotations", ANNOTATIONS_LIMIT))
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


def metadata_update_errors(kind: Kind, new: JsonObject, old: JsonObject) -> list[FieldError]:
    """What an update may not change: the uid, finalizers of an object that is being deleted."""
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
    return errors


def _said(kind: Kind) -> int:
    """Built-in kinds check metadata in the store and in their strategy, so each cause stands twice."""
    return 1 if kind.custom else 2


def _strings(value: JsonValue) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []
