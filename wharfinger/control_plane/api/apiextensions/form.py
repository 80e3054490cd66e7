"""A CustomResourceDefinition in kube-apiserver's internal form: fields that all versions share are moved out of the versions.

kube-apiserver validates this form, so errors contain its field paths: the schema of a definition with one version is
``spec.validation.openAPIV3Schema``. Values in errors are printed as Go structs, with all their fields.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.custom.correlation import equal
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.formats.json.value import JsonObject, JsonValue, find

_SHARED: Final = ("subresources", "schema", "additionalPrinterColumns", "selectableFields")


@dataclass(frozen=True, slots=True)
class Spec:
    """The ``spec`` of a definition; the fields that all versions share are moved out of the versions."""

    document: JsonObject
    versions: tuple[JsonObject, ...]
    shared: JsonObject
    """The fields that have the same value in all versions, by their names in a version."""

    @property
    def group(self) -> str:
        """The API group: ``example.com``."""
        return schemas.text(self.document, "group")

    @property
    def names(self) -> JsonObject:
        """The member ``names``."""
        return schemas.child(self.document, "names") or {}

    @property
    def preserves(self) -> bool:
        """The member ``preserveUnknownFields``. An update may leave it true, but no write may set it to true."""
        return schemas.flag(self.document, "preserveUnknownFields")

    def schemas(self) -> list[JsonObject]:
        """Return all schemas, the shared one first."""
        return [found for holder in (self.shared, *self.versions) if (found := schema_of(holder)) is not None]


def schema_of(holder: JsonObject) -> JsonObject | None:
    """Return the schema in ``holder``, which is one version or the fields that all versions share; None if it has no schema."""
    found = find(holder, "schema", "openAPIV3Schema")
    return found if isinstance(found, dict) else None


def spec_of(definition: JsonObject) -> Spec:
    """Return the internal form of a CustomResourceDefinition; a value of the wrong type is treated as absent."""
    document = schemas.child(definition, "spec") or {}
    versions = [version for version in schemas.values(document, "versions") if isinstance(version, dict)]
    shared: JsonObject = {}
    kept = versions
    for name in _SHARED if versions else ():
        first = versions[0].get(name) or None
        if all(equal(version.get(name) or None, first) for version in versions):
            kept = [{key: value for key, value in version.items() if key != name} for version in kept]
            if first is not None:
                shared[name] = first
    return Spec(document, tuple(kept), shared)


def shown_versions(spec: Spec) -> JsonValue:
    """Return the versions as an error shows them."""
    return None if spec.document.get("versions") is None else [_version(version) for version in spec.versions]


def _version(version: JsonObject) -> JsonObject:
    schema = schema_of(version)
    return {
        "Name": schemas.text(version, "name"),
        "Served": schemas.flag(version, "served"),
        "Storage": schemas.flag(version, "storage"),
        "Deprecated": schemas.flag(version, "deprecated"),
        "DeprecationWarning": version.get("deprecationWarning"),
        "Schema": None if schema is None else {"OpenAPIV3Schema": shown_schema(schema)},
        "Subresources": _subresources(version.get("subresources")),
        "AdditionalPrinterColumns": _columns(version.get("additionalPrinterColumns")),
        "SelectableFields": [
            {"JSONPath": schemas.text(item, "jsonPath")} for item in schemas.branches(version, "selectableFields")
        ]
        or None,
    }


def _subresources(value: JsonValue) -> JsonValue:
    if not isinstance(value, dict):
        return None
    scale = schemas.child(value, "scale")
    shown: JsonValue = None
    if scale is not None:
        shown = {
            "SpecReplicasPath": schemas.text(scale, "specReplicasPath"),
            "StatusReplicasPath": schemas.text(scale, "statusReplicasPath"),
            "LabelSelectorPath": scale.get("labelSelectorPath"),
        }
    return {"Status": None if value.get("status") is None else {}, "Scale": shown}


def _columns(value: JsonValue) -> JsonValue:
    columns = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    texts = (("Name", "name"), ("Type", "type"), ("Format", "format"), ("Description", "description"))
    shown: list[JsonValue] = [
        {
            **{name: schemas.text(column, key) for name, key in texts},
            "Priority": schemas.whole(column, "priority") or 0,
            "JSONPath": schemas.text(column, "jsonPath"),
        }
        for column in columns
    ]
    return shown or None


_FIELDS: Final[Mapping[str, tuple[str, str]]] = {
    "ID": ("id", "text"),
    "Schema": ("$schema", "text"),
    "Ref": ("$ref", "any"),
    "Description": ("description", "text"),
    "Type": ("type", "text"),
    "Nullable": ("nullable", "flag"),
    "Format": ("format", "text"),
    "Title": ("title", "text"),
    "Default": ("default", "any"),
    "Maximum": ("maximum", "any"),
    "ExclusiveMaximum": ("exclusiveMaximum", "flag"),
    "Minimum": ("minimum", "any"),
    "ExclusiveMinimum": ("exclusiveMinimum", "flag"),
    "MaxLength": ("maxLength", "any"),
    "MinLength": ("minLength", "any"),
    "Pattern": ("pattern", "text"),
    "MaxItems": ("maxItems", "any"),
    "MinItems": ("minItems", "any"),
    "UniqueItems": ("uniqueItems", "flag"),
    "MultipleOf": ("multipleOf", "any"),
    "Enum": ("enum", "any"),
    "MaxProperties": ("maxProperties", "any"),
    "MinProperties": ("minProperties", "any"),
    "Required": ("required", "any"),
    "Items": ("items", "items"),
    "AllOf": ("allOf", "schemas"),
    "OneOf": ("oneOf", "schemas"),
    "AnyOf": ("anyOf", "schemas"),
    "Not": ("not", "schema"),
    "Properties": ("properties", "map"),
    "AdditionalProperties": ("additionalProperties", "or bool"),
    "PatternProperties": ("patternProperties", "map"),
    "Dependencies": ("dependencies", "dependencies"),
    "AdditionalItems": ("additionalItems", "or bool"),
    "Definitions": ("definitions", "map"),
    "ExternalDocs": ("externalDocs", "docs"),
    "Example": ("example", "any"),
    "XPreserveUnknownFields": (schemas.PRESERVE, "any"),
    "XEmbeddedResource": (schemas.EMBEDDED, "flag"),
    "XIntOrString": (schemas.INT_OR_STRING, "flag"),
    "XListMapKeys": (schemas.LIST_KEYS, "any"),
    "XListType": (schemas.LIST_TYPE, "any"),
    "XMapType": (schemas.MAP_TYPE, "any"),
    "XValidations": (schemas.VALIDATIONS, "rules"),
}
"""The fields of a schema's Go struct, in their order: for each, its name in JSON and the type of its value."""


def set_field_names(schema: JsonObject) -> list[str]:
    """Return the Go names of the fields that a schema sets, in Go's order."""
    return [
        name
        for name, (key, holds) in _FIELDS.items()
        if (value := schema.get(key)) is not None and not (holds in {"text", "flag"} and not value)
    ]


def shown_schema(schema: JsonObject) -> JsonObject:
    """Return a schema as an error shows it."""
    return {name: _field(schema, key, holds) for name, (key, holds) in _FIELDS.items()}


def _field(schema: JsonObject, key: str, holds: str) -> JsonValue:
    value = schema.get(key)
    if holds == "text":
        return schemas.text(schema, key)
    if holds == "flag":
        return schemas.flag(schema, key)
    if holds == "rules":
        return [shown_rule(rule) for rule in schemas.rules(schema)] or None
    if holds == "schemas":
        return None if value is None else [shown_schema(node) for node in schemas.branches(schema, key)]
    if holds == "dependencies":
        return None if not isinstance(value, dict) else {name: _dependency(value[name]) for name in sorted(value)}
    if holds == "map":
        return (
            None
            if value is None
            else {name: shown_schema(node) for name, node in schemas.children(schema, key).items()}
        )
    node = schemas.child(schema, key)
    if holds == "schema":
        return None if node is None else shown_schema(node)
    if holds == "items":
        listed: JsonValue = [shown_schema(item) for item in schemas.branches(schema, key)] or None
        shown = {"Schema": None if node is None else shown_schema(node), "JSONSchemas": listed}
        return None if value is None else shown
    if holds == "or bool":
        shown = {"Allows": value is not False, "Schema": None if node is None else shown_schema(node)}
        return None if value is None else shown
    if holds == "docs":
        return (
            None if node is None else {"Description": schemas.text(node, "description"), "URL": node.get("url") or ""}
        )
    return value


def _dependency(value: JsonValue) -> JsonValue:
    return {
        "Schema": shown_schema(value) if isinstance(value, dict) else None,
        "Property": value or None if isinstance(value, list) else None,
    }


def shown_rule(rule: JsonObject) -> JsonObject:
    """Return a rule as an error shows it."""
    return {
        "Rule": schemas.text(rule, "rule"),
        "Message": schemas.text(rule, "message"),
        "MessageExpression": schemas.text(rule, "messageExpression"),
        "Reason": rule.get("reason"),
        "FieldPath": schemas.text(rule, "fieldPath"),
        "OptionalOldSelf": rule.get("optionalOldSelf"),
    }
