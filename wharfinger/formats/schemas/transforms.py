"""The transformations that addon-operator applies to the schemas in a module's ``openapi/`` before it uses them.

Each function takes a document as it was read and returns a new one with its references replaced (see
:func:`~wharfinger.formats.schemas.document.expanded`), so they can be applied one after another. Packages
expect ``closed(settings)`` for settings, ``closed(extended(values, settings))`` for values and, before Helm renders the chart,
``required_for_helm(closed(extended(values, settings)))``.
"""

from wharfinger.formats.json.value import JsonObject, JsonValue, type_name
from wharfinger.formats.schemas.document import SchemaError, ValuePath, expanded, path_text, properties

X_EXTEND = "x-extend"
X_REQUIRED_FOR_HELM = "x-required-for-helm"


def closed(document: JsonObject) -> JsonObject:
    """Return the schema with ``additionalProperties: false`` in every object schema that does not set this keyword.

    The schemas of properties and items are closed in the same way. If such an inner schema sets the keyword itself, nothing
    below it is closed, because its author has decided. A schema with ``x-kubernetes-preserve-unknown-fields: true``, which also
    allows unknown fields, is treated like a schema that sets the keyword. Branches of allOf, anyOf and oneOf stay open, because
    a value may have properties that only another branch declares. Raises SchemaError.
    """
    schema = expanded(document, what="schema")
    return _closed(schema) if not _sets_openness(schema) else {**schema, **_closed_inside(schema)}


def _sets_openness(schema: JsonObject) -> bool:
    return "additionalProperties" in schema or schema.get("x-kubernetes-preserve-unknown-fields") is True


def _closed(schema: JsonObject) -> JsonObject:
    if _sets_openness(schema):
        return schema
    inside = {**schema, **_closed_inside(schema)}
    return {**inside, "additionalProperties": False} if _is_object(schema) else inside


def _is_object(schema: JsonObject) -> bool:
    declared = schema.get("type")
    listed = declared if isinstance(declared, list) else [declared]
    return "object" in listed or (declared is None and "properties" in schema)


def _closed_inside(schema: JsonObject) -> JsonObject:
    result: JsonObject = {}
    if "properties" in schema:
        result["properties"] = {name: _closed(item) for name, item in properties(schema).items()}
    items = schema.get("items")
    if isinstance(items, dict):
        result["items"] = _closed(items)
    elif isinstance(items, list):
        result["items"] = [_closed(item) for item in items if isinstance(item, dict)]
    return result


def extended(document: JsonObject, base: JsonObject) -> JsonObject:
    """Return the document with its references expanded. If it has ``x-extend: {schema: …}``, merge it with the base.

    The merged document has the ``required``, ``properties``, ``patternProperties``, ``title``, ``description`` and ``x-…`` of
    both. If both define the same name, the document's definition is kept. References of the document may lead to definitions of
    the base. Raises SchemaError.
    """
    settings = document.get(X_EXTEND)
    if settings is None or not (isinstance(settings, dict) and settings.get("schema")):
        return expanded(document, what="schema")
    parent = expanded(base, what="the schema that is extended")
    definitions = {
        keyword: {**_objects(base, keyword), **_objects(document, keyword)} for keyword in ("definitions", "$defs")
    }
    schema = expanded({**document, **definitions}, what="schema")
    inherited = {
        name: item for name, item in parent.items() if name.startswith("x-") or name in {"title", "description"}
    }
    result: JsonObject = {**inherited, **schema}
    for keyword in ("properties", "patternProperties"):
        merged = {**properties(parent, keyword), **properties(schema, keyword)}
        if merged:
            result[keyword] = dict(merged)
    required = [*_names(parent.get("required")), *_names(schema.get("required"))]
    if required:
        result["required"] = list(dict.fromkeys(required))
    return result


def required_for_helm(document: JsonObject) -> JsonObject:
    """Return the document, with the names under each ``x-required-for-helm`` (a name or a list of names) added to ``required``.

    Raises SchemaError if ``x-required-for-helm`` has another type.
    """
    return _required_for_helm(expanded(document, what="schema"), ())


def _required_for_helm(schema: JsonObject, path: ValuePath) -> JsonObject:
    result = dict(schema)
    wanted = schema.get(X_REQUIRED_FOR_HELM)
    if wanted is not None:
        names = [wanted] if isinstance(wanted, str) else wanted
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            where = path_text((*path, X_REQUIRED_FOR_HELM))
            raise SchemaError(f"schema: {where}: expected a name or a list of names, found {type_name(wanted)}")
        result["required"] = list(dict.fromkeys([*_names(schema.get("required")), *_names(names)]))
    if "properties" in schema:
        result["properties"] = {
            name: _required_for_helm(item, (*path, "properties", name)) for name, item in properties(schema).items()
        }
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict):
            result[keyword] = _required_for_helm(inner, (*path, keyword))
    return result


def _objects(document: JsonObject, keyword: str) -> JsonObject:
    found = document.get(keyword)
    return found if isinstance(found, dict) else {}


def _names(value: object) -> list[JsonValue]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
