"""The check whether a schema is structural (KEP-1693): every field's type is known without evaluating anyOf, oneOf, allOf
and not.

Problems are sorted by their text, as in kube-apiserver.
"""

from typing import Final

from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import indexed
from wharfinger.control_plane.wire.field_errors import forbidden, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.patterns import pattern_problem

_INT_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
_LEVELS: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
_UNSUPPORTED: Final = ("id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions")
_NESTED: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    (schemas.PRESERVE, "must be false to be structural"),
    (schemas.EMBEDDED, "must be false to be structural"),
    (schemas.INT_OR_STRING, "must be false to be structural"),
    (schemas.LIST_KEYS, "must be empty to be structural"),
    (schemas.LIST_TYPE, "must be undefined to be structural"),
    (schemas.MAP_TYPE, "must be undefined to be structural"),
    (schemas.VALIDATIONS, "must be empty to be structural"),
)
_METADATA_MAY_HAVE: Final = frozenset({"type", "default", "properties"})


def conversion_problem(schema: JsonObject) -> str:
    """Return the reason why a schema has no structural form at all, or ""."""
    for node in schemas.walked(schema):
        for name in _UNSUPPORTED:
            if node.get(name) not in (None, "", {}):
                return f"OpenAPIV3Schema '{name.removeprefix('$') if name == '$schema' else name}' is not supported"
        if node.get(schemas.PRESERVE) is False:
            return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
        if schemas.values(node, "items"):
            return "OpenAPIV3Schema 'items' must be a schema, but is an array"
    return ""


def structure_errors(schema: JsonObject, path: str) -> list[FieldError]:
    """Return the reasons why a schema is not structural."""
    found = _invariants(schema, "root", path) + _missing(schema, schema, path, path)
    return sorted(found, key=str)


def _invariants(schema: JsonObject, level: str, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kind = schemas.text(schema, "type")
    items, additional = schemas.items(schema), schemas.additional(schema)
    declared = schemas.properties(schema)
    if kind == "array" and items is None:
        errors.append(required(f"{path}.items", "must be specified"))
    if items is not None:
        errors += _invariants(items, "item", f"{path}.items")
    for name, node in declared.items():
        errors += _invariants(node, "field", f"{path}.properties[{name}]")
    if schemas.has_additional(schema) and level == "root":
        errors.append(forbidden(f"{path}.additionalProperties", "must not be used at the root"))
    if additional is not None:
        errors += _invariants(additional, "field", f"{path}.additionalProperties")
    errors += _extensions(schema, path)
    errors += _validation(schema, path, skip_any=_is_int_or_string(schema), skip_first=_is_first_int_or_string(schema))
    errors += _type_errors(schema, level, path)
    if schemas.flag(schema, schemas.EMBEDDED) and schemas.has_additional(schema):
        why = "must not be used if x-kubernetes-embedded-resource is set"
        errors.append(forbidden(f"{path}.additionalProperties", why))
    errors += _own_type_errors(schema, level, path)
    preserves = schemas.flag(schema, schemas.PRESERVE)
    if schemas.flag(schema, schemas.EMBEDDED) and not preserves and not declared:
        why = "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        errors.append(required(f"{path}.properties", why))
    return errors


def _extensions(schema: JsonObject, path: str) -> list[FieldError]:
    if not schemas.flag(schema, schemas.INT_OR_STRING):
        return []
    why = "must be false if x-kubernetes-int-or-string is true"
    return [
        invalid(f"{path}.{name}", True, why)  # noqa: FBT003 - the value that is wrong
        for name in (schemas.PRESERVE, schemas.EMBEDDED)
        if schemas.flag(schema, name)
    ]


def _type_errors(schema: JsonObject, level: str, path: str) -> list[FieldError]:
    kind, field = schemas.text(schema, "type"), f"{path}.type"
    untyped = schemas.flag(schema, schemas.INT_OR_STRING) or schemas.flag(schema, schemas.PRESERVE)
    errors: list[FieldError] = []
    if schemas.flag(schema, schemas.EMBEDDED) and kind != "object":
        why = "must be object if x-kubernetes-embedded-resource is true"
        errors.append(invalid(field, kind, why) if kind else required(field, why))
    elif not kind and not untyped:
        errors.append(required(field, _LEVELS[level]))
    if level == "root" and kind not in {"", "object"}:
        errors.append(invalid(field, kind, "must be object at the root"))
    return errors


def _own_type_errors(schema: JsonObject, level: str, path: str) -> list[FieldError]:
    """Return the errors of the fields that every object has: kind, apiVersion and metadata."""
    errors: list[FieldError] = []
    is_object = level == "root" or schemas.flag(schema, schemas.EMBEDDED)
    declared = schemas.properties(schema)
    for name in ("kind", "apiVersion") if is_object else ():
        if name in declared and schemas.text(declared[name], "type") != "string":
            kind = schemas.text(declared[name], "type")
            errors.append(invalid(f"{path}.properties[{name}].type", kind, "must be string"))
    if "metadata" in declared:
        metadata, field = declared["metadata"], f"{path}.properties[metadata]"
        if is_object and schemas.text(metadata, "type") != "object":
            errors.append(invalid(f"{field}.type", schemas.text(metadata, "type"), "must be object"))
        if level == "root" and not _is_plain_metadata(metadata):
            why = "must not specify anything other than name and generateName, but metadata is implicitly specified"
            errors.append(forbidden(field, why))
    return errors


def _is_plain_metadata(schema: JsonObject) -> bool:
    names = set(schemas.properties(schema))
    said = {name for name, value in schema.items() if value is not False and value not in (None, "", [], {})}
    return names <= {"name", "generateName"} and said <= _METADATA_MAY_HAVE


def _is_int_or_string(schema: JsonObject) -> bool:
    return schemas.branches(schema, "anyOf") == _INT_OR_STRING


def _is_first_int_or_string(schema: JsonObject) -> bool:
    branches = schemas.branches(schema, "allOf")
    return bool(branches) and _is_int_or_string(branches[0])


def _validation(schema: JsonObject, path: str, *, skip_any: bool, skip_first: bool) -> list[FieldError]:
    """Return the errors of a node's pattern, and the errors inside the node's branches (``anyOf``, ``allOf``, ``oneOf``,
    ``not``).
    """
    errors: list[FieldError] = []
    if not skip_any:
        for index, node in enumerate(schemas.branches(schema, "anyOf")):
            errors += _nested(node, indexed(f"{path}.anyOf", index))
    for index, node in enumerate(schemas.branches(schema, "allOf")):
        errors += _nested(node, indexed(f"{path}.allOf", index), skip_any=skip_first and index == 0)
    for index, node in enumerate(schemas.branches(schema, "oneOf")):
        errors += _nested(node, indexed(f"{path}.oneOf", index))
    refused = schemas.child(schema, "not")
    if refused is not None:
        errors += _nested(refused, f"{path}.not")
    pattern = schemas.text(schema, "pattern")
    problem = pattern_problem(pattern) if pattern else ""
    if problem:
        why = f"must be a valid regular expression, but isn't: {problem}"
        errors.append(invalid(f"{path}.pattern", pattern, why))
    return errors


def _nested(schema: JsonObject, path: str, *, skip_any: bool = False) -> list[FieldError]:
    """Return the errors inside a branch of ``allOf``, ``anyOf``, ``oneOf`` or ``not``. A branch may only restrict values; it
    may not declare types, defaults or list types.
    """
    errors = _validation(schema, path, skip_any=skip_any, skip_first=False)
    items = schemas.items(schema)
    if items is not None:
        errors += _nested(items, f"{path}.items")
    declared = schemas.properties(schema)
    for name, node in declared.items():
        errors += _nested(node, f"{path}.properties[{name}]")
    for name, why in _NESTED:
        value = schema.get(name)
        if name == "additionalProperties":
            value = value is True or isinstance(value, dict)
        if (
            value not in (None, "", False, [])
            or (name == schemas.LIST_TYPE and value == "")
            or (name == "default" and value is not None)
        ):
            errors.append(forbidden(f"{path}.{name}", why))
    if "metadata" in declared:
        errors.append(forbidden(f"{path}.properties[metadata]", "must not be specified in a nested context"))
    return errors


def _missing(schema: JsonObject | None, branch: JsonObject, spine: str, path: str) -> list[FieldError]:
    """Return an error for each field that branches mention but that is not declared outside them."""
    errors: list[FieldError] = []
    refused = schemas.child(branch, "not")
    if refused is not None:
        errors += _nested_missing(schema, refused, spine, f"{path}.not")
    for name in ("allOf", "anyOf", "oneOf"):
        for index, node in enumerate(schemas.branches(branch, name)):
            errors += _nested_missing(schema, node, spine, indexed(f"{path}.{name}", index))
    return errors


def _nested_missing(schema: JsonObject | None, branch: JsonObject, spine: str, path: str) -> list[FieldError]:
    if schema is None:
        return [required(spine, f"because it is defined in {path}")]
    errors = _missing(schema, branch, spine, path)
    items = schemas.items(branch)
    if items is not None:
        errors += _nested_missing(schemas.items(schema), items, f"{spine}.items", f"{path}.items")
    declared = schemas.properties(schema)
    for name, node in schemas.properties(branch).items():
        place = f"{spine}.properties[{name}]"
        errors += _nested_missing(declared.get(name), node, place, f"{path}.properties[{name}]")
    return errors
