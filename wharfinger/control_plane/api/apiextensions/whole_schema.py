"""The validation of a definition's schema as a whole: its root, its structure, its defaults, and the total cost of its
rules.
"""

from dataclasses import dataclass, field, replace

from wharfinger.control_plane.api.apiextensions.cel_rules import RuleScope, total_errors
from wharfinger.control_plane.api.apiextensions.defaults import default_errors
from wharfinger.control_plane.api.apiextensions.form import set_field_names, shown_schema
from wharfinger.control_plane.api.apiextensions.schemas import Leniency, Place, schema_errors
from wharfinger.control_plane.api.apiextensions.structure import conversion_problem, structure_errors
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import forbidden, invalid
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems "
    "MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations"
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The checks that apply to schemas; an update skips those that the old definition already violated."""

    pruned: bool = True
    lenient: Leniency = field(default_factory=Leniency)

    def unchanged(self) -> "Asked":
        """Return the checks for a schema that the update does not change. They do not limit the cost of a single rule."""
        return replace(self, lenient=replace(self.lenient, rule_costs=True))


def whole_errors(schema: JsonObject, path: str, asked: Asked, *, has_status: bool) -> list[FieldError]:
    """Return all errors of a schema; ``path`` is the path of the object with the field ``openAPIV3Schema``."""
    place = f"{path}.openAPIV3Schema"
    errors = _root_errors(schema, place) if has_status else []
    if schemas.flag(schema, "nullable"):
        errors.append(forbidden(f"{place}.nullable", "nullable cannot be true at the root"))
    scope: RuleScope | None = None
    impossible = conversion_problem(schema)
    if not impossible:
        unstructured = structure_errors(schema, place)
        wrong = unstructured or default_errors(schema, place, pruned=asked.pruned)
        errors += wrong
        if not wrong:
            scope = RuleScope.root(schema)
    found = schema_errors(schema, place, Place(), asked.lenient, scope, root=True)
    errors += found.plain + found.rules
    if impossible and not errors:
        errors.append(invalid(place, "", impossible))
    return errors + (total_errors(scope, place) if scope is not None else [])


def _root_errors(schema: JsonObject, path: str) -> list[FieldError]:
    """Return the first error about the root of the schema of a version that has a status subresource. Only some fields are
    allowed there.
    """
    allowed = _AT_ROOT.split()
    for name in set_field_names(schema):
        if name == "Type" and schemas.text(schema, "type") != "object":
            why = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            return [invalid(f"{path}.type", schemas.text(schema, "type"), why)]
        if name not in allowed:
            why = f"only [{_AT_ROOT}] fields are allowed at the root of the schema if the status subresource is enabled"
            return [invalid(path, shown_schema(schema), why)]
    return []
