"""The validation of CEL rules in a CustomResourceDefinition: their form, their compilation and their estimated cost.

The estimated cost of a rule is limited to 10,000,000, and the estimated cost of all rules of a schema to ten times as much. The
cost of a rule is multiplied by the number of times that it may be evaluated in one object. ``maxItems`` and ``maxProperties``
of the lists and maps that contain the value limit this number. Without these limits, it is the number of values that fit into
the largest request (:class:`RuleScope`).
"""

import re
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.api.apiextensions.form import shown_rule
from wharfinger.control_plane.api.apiextensions.structure import conversion_problem
from wharfinger.control_plane.cel.schema_rules import Scope
from wharfinger.control_plane.custom.cel_rules import Rule, compiled_rules
from wharfinger.control_plane.custom.schema_paths import FieldPathError, valid_field_path
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.wire.field_errors import forbidden, internal_error, invalid, not_supported, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject

RULE_LIMIT: Final = 10_000_000
TOTAL_LIMIT: Final = 100_000_000
MAX_COST: Final = 2**64 - 1
"""The upper limit of cost estimates, as in Go."""
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
_LINES: Final = re.compile(r"[\n\r]+")
_MAX_REPORTED: Final = 4
_TYPES: Final = frozenset({"array", "boolean", "integer", "number", "object", "string"})


@dataclass(slots=True)
class TotalCost:
    """The total cost of the rules of a schema, and the paths of the most expensive rules."""

    total: int = 0
    dearest: list[tuple[int, str]] = field(default_factory=list)

    def add(self, path: str, cost: int) -> None:
        """Add the cost of one expression."""
        self.total = min(self.total + cost, MAX_COST)
        if cost >= TOTAL_LIMIT // 100:
            self.dearest = sorted([*self.dearest, (cost, path)], key=lambda item: -item[0])[:_MAX_REPORTED]


@dataclass(frozen=True, slots=True)
class RuleScope:
    """One schema inside the whole schema of a CustomResourceDefinition.

    ``cardinality`` is the maximum number of values that one object may have for this schema, or None if there is no limit.
    ``total`` is the cost of all rules of the whole schema.
    """

    schema: JsonObject
    cardinality: int | None
    total: TotalCost
    is_root: bool = False
    is_broken: bool = False
    """True if an enclosing schema has a type that CEL does not have."""

    @classmethod
    def root(cls, schema: JsonObject) -> "RuleScope":
        """Return the scope of the whole schema."""
        return cls(schema, 1, TotalCost(), is_root=True)

    def child(self, schema: JsonObject) -> "RuleScope":
        """Return the scope of a schema for the members or the items of this scope's values."""
        times = _most_elements(self.schema)
        count = None if self.cardinality is None or times is None else min(self.cardinality * times, MAX_COST)
        kind = schemas.text(self.schema, "type")
        return RuleScope(schema, count, self.total, is_broken=self.is_broken or (kind != "" and kind not in _TYPES))


def _most_elements(schema: JsonObject) -> int | None:
    match schemas.text(schema, "type"):
        case "object" if schemas.has_additional(schema):
            most = schemas.whole(schema, "maxProperties")
        case "array":
            most = schemas.whole(schema, "maxItems")
        case _:
            return 1
    return None if most is None else max(most, 0)


def rule_errors(schema: JsonObject, path: str) -> list[FieldError]:
    """Check the form of a schema's rules without compiling them, and return the errors."""
    errors: list[FieldError] = []
    for index, rule in enumerate(schemas.rules(schema)):
        errors += _rule_form_errors(schema, rule, f"{path}.{schemas.VALIDATIONS}[{index}]")
    return errors


def _rule_form_errors(schema: JsonObject, rule: JsonObject, path: str) -> list[FieldError]:
    text, message = schemas.text(rule, "rule"), schemas.text(rule, "message")
    expression, field_path = schemas.text(rule, "messageExpression"), schemas.text(rule, "fieldPath")
    errors: list[FieldError] = []
    if not text.strip():
        errors.append(required(f"{path}.rule", "rule is not specified"))
    elif message and not message.strip():
        errors.append(invalid(f"{path}.message", message, "must be non-empty if specified"))
    elif _LINES.search(message.strip()):
        errors.append(invalid(f"{path}.message", message, "must not contain line breaks"))
    elif _LINES.search(text.strip()) and not message.strip():
        errors.append(required(f"{path}.message", "message must be specified if rule contains line breaks"))
    if expression and not expression.strip():
        errors.append(required(f"{path}.messageExpression", "messageExpression must be non-empty if specified"))
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        errors.append(not_supported(f"{path}.reason", reason, REASONS))
    if not field_path:
        return errors
    if not field_path.strip():
        errors.append(invalid(f"{path}.fieldPath", field_path, "must be non-empty if specified"))
    if _LINES.search(field_path):
        errors.append(invalid(f"{path}.fieldPath", field_path, "must not contain line breaks"))
    try:
        if not conversion_problem(schema):
            valid_field_path(field_path, schema)
    except FieldPathError:
        errors.append(invalid(f"{path}.fieldPath", field_path, "must be a valid path"))
    return errors


def compiled_errors(scope: RuleScope, path: str, uncorrelated: str | None, *, suppressed: bool) -> list[FieldError]:
    """Compile a schema's rules, and return the errors; with ``suppressed``, the cost of a single rule is not limited.

    ``uncorrelated`` is None, or the path of an outer schema inside which no value can be matched with its old value, so that
    rules must not use ``oldSelf``.
    """
    types = Scope(scope.schema, root=scope.is_root or schemas.flag(scope.schema, schemas.EMBEDDED))
    if scope.is_broken or types.declared is None:
        why = "failed to construct type information for x-kubernetes-validations rules: "
        why += "unable to convert structural schema to CEL declarations"
        return [internal_error(f"{path}.{schemas.VALIDATIONS}", f"internal error: {why}")]
    errors: list[FieldError] = []
    for index, rule in enumerate(compiled_rules(scope.schema, types)):
        errors += _compiled_rule_errors(
            rule, scope, types, f"{path}.{schemas.VALIDATIONS}[{index}]", suppressed=suppressed
        )
        if rule.compiled.uses_old and uncorrelated is not None:
            why = f"oldSelf cannot be used on the uncorrelatable portion of the schema within {uncorrelated}"
            text = schemas.text(rule.document, "rule")
            errors.append(invalid(f"{path}.{schemas.VALIDATIONS}[{index}].rule", text, why))
        elif not rule.compiled.uses_old and rule.document.get("optionalOldSelf") is not None:
            field_name = f"{path}.{schemas.VALIDATIONS}[{index}].optionalOldSelf"
            why = "may not be set if oldSelf is not used in rule"
            errors.append(invalid(field_name, rule.document["optionalOldSelf"], why))
    return errors


def _compiled_rule_errors(
    rule: Rule, scope: RuleScope, types: Scope, path: str, *, suppressed: bool
) -> list[FieldError]:
    errors: list[FieldError] = []
    times = types.most_values if scope.cardinality is None else scope.cardinality
    cost = min(rule.compiled.cost * times, MAX_COST)
    if cost > RULE_LIMIT and not suppressed:
        errors.append(forbidden(f"{path}.rule", cost_text("estimated rule cost", cost, RULE_LIMIT)))
    scope.total.add(f"{path}.rule", cost)
    shown = shown_rule(rule.document)
    if rule.compiled.problem:
        errors.append(invalid(f"{path}.rule", shown, rule.compiled.problem))
    message = rule.message
    if message is not None and message.problem:
        errors.append(invalid(f"{path}.messageExpression", shown, message.problem))
    elif message is not None:
        if message.cost > RULE_LIMIT and not suppressed:
            why = cost_text("estimated messageExpression cost", message.cost, RULE_LIMIT)
            errors.append(forbidden(f"{path}.messageExpression", why))
        scope.total.add(f"{path}.messageExpression", message.cost)
    return errors


def cost_text(name: str, cost: int, limit: int) -> str:
    """Return the message that a cost exceeds its limit. The message contains the quotient of the cost and the limit."""
    times = cost / limit
    factor = "more than 100x" if times > 100 else f"{times:.6f}x" if times < 1.5 else f"{times:.1f}x"
    where = "and maxLength where arrays, maps, and strings are declared"
    return f"{name} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, {where})"


def total_errors(scope: RuleScope, path: str) -> list[FieldError]:
    """Return the errors if the total cost of all rules in a schema is too high."""
    total = scope.total
    if total.total <= TOTAL_LIMIT:
        return []
    why = "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema"
    name = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
    return [
        *(forbidden(place, why) for _, place in total.dearest),
        forbidden(path, cost_text(name, total.total, TOTAL_LIMIT)),
    ]
