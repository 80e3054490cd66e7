"""The evaluation of rules in CEL (``x-kubernetes-validations``) on new and old values, within one cost budget for all
rules.

A rule that uses ``oldSelf`` is skipped if there is no old value, unless ``optionalOldSelf`` is true for it. If a rule that
does not use ``oldSelf`` fails on an unchanged value, the failure is only a warning. For a value without an old value, the nearest
enclosing value that has an old value is compared instead. A rule that cannot be evaluated counts as failed.
"""

from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.cel.schema_rules import OLD, SELF, Compiled, Scope
from wharfinger.control_plane.cel.values.objects import viewed
from wharfinger.control_plane.cel.values.schema_types import with_meta
from wharfinger.control_plane.cel.values.types import BOOL, STRING
from wharfinger.control_plane.cel.values.values import NONE, CelError, CostError, Optional, Value
from wharfinger.control_plane.custom.correlation import Pair, item_key, keyed_items
from wharfinger.control_plane.custom.schema_paths import FieldPathError, valid_field_path
from wharfinger.control_plane.kinds import schema_nodes as schemas
from wharfinger.control_plane.kinds.field_paths import indexed, joined, keyed
from wharfinger.control_plane.wire.field_errors import duplicate, forbidden, invalid, required
from wharfinger.control_plane.wire.status import FieldError
from wharfinger.formats.json.value import JsonObject, JsonValue

BUDGET: Final = 10_000_000
_MESSAGE_BYTES: Final = 5 * 1024
_ROOT: Final = "<nil>"
_BUDGET_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an evaluation; ``left`` is the rest of the budget, negative if the budget was exceeded."""

    errors: list[FieldError]
    left: int
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule."""

    document: JsonObject
    compiled: Compiled
    message: Compiled | None
    field: str

    @property
    def label(self) -> str:
        """The text by which errors name the rule: its message, or else its expression."""
        return (schemas.text(self.document, "message") or schemas.text(self.document, "rule")).strip()

    @property
    def optional_old(self) -> bool:
        """True if ``oldSelf`` is a CEL optional in the rule."""
        return schemas.flag(self.document, "optionalOldSelf")


@dataclass(slots=True)
class _Node:
    """The rules of a schema, and the nodes of its inner schemas that have rules."""

    schema: JsonObject
    root: bool
    rules: list[Rule]
    members: dict[str, "_Node"] = field(default_factory=dict)
    additional: "_Node | None" = None
    items: "_Node | None" = None

    def any(self) -> bool:
        """Return whether there are any rules."""
        return bool(self.rules or self.members or self.additional or self.items)


@dataclass(frozen=True, slots=True)
class _Ratchet:
    """The pairs that tell whether a value has changed: ``current`` is the value and its old value.

    ``nearest`` is the nearest enclosing value that has an old value, with this old value. If the value itself has no old value,
    ``current`` is None, and ``nearest`` is compared instead.
    """

    current: Pair | None
    nearest: Pair | None

    def member(self, name: str) -> "_Ratchet":
        if self.current is None:
            return self
        if self.nearest is None and name in {"apiVersion", "kind"}:
            return _Ratchet(None, None)
        return _Ratchet(self.current.member(name), self.current)

    def item(self, index: int) -> "_Ratchet":
        return self if self.current is None else _Ratchet(self.current.item(index), self.current)

    def same(self) -> bool:
        pair = self.current or self.nearest
        return pair is not None and pair.same()


def compiled_rules(schema: JsonObject, scope: Scope) -> list[Rule]:
    """Compile the rules of a schema, without the rules of the schemas inside it."""
    found = []
    for document in schemas.rules(schema):
        text, expression = schemas.text(document, "rule"), schemas.text(document, "messageExpression")
        if not text.strip():
            found.append(Rule(document, Compiled(), None, ""))
            continue
        old = schemas.flag(document, "optionalOldSelf")
        compiled = scope.compiled(text, BOOL, optional_old=old)
        message = None
        if expression and not compiled.problem:
            message = scope.compiled(expression, STRING, optional_old=old, message=True)
        found.append(Rule(document, compiled, message, _field_path(document, schema)))
    return found


def _field_path(document: JsonObject, schema: JsonObject) -> str:
    text = schemas.text(document, "fieldPath")
    try:
        return valid_field_path(text, schema)[1] if text else ""
    except FieldPathError:
        return ""


class RuleSet:
    """The rules of a schema and of the schemas inside it; falsy if there are none.

    ``root`` is true if the schema is that of a whole object, which has metadata.
    """

    def __init__(self, schema: JsonObject, *, root: bool) -> None:
        self._node: _Node | None = None
        if schemas.has(schema, lambda node: bool(schemas.rules(node))):
            self._node = _node(schema, root=root)

    def __bool__(self) -> bool:
        return self._node is not None and self._node.any()

    def errors(
        self, value: JsonValue, old: JsonValue, budget: int, *, path: str = "", pair: Pair | None = None
    ) -> Outcome:
        """Evaluate the rules on a value, and return the errors.

        With ``pair`` (the value and the stored value), the failure of a rule on an unchanged part is only a warning, unless the
        rule uses ``oldSelf``. Without ``pair``, every failure is an error.
        """
        if self._node is None:
            return Outcome([], budget)
        run = _Run(budget, ratcheting=pair is not None)
        run.node(self._node, value, old, path, _Ratchet(pair, None))
        return Outcome(run.errors, run.left, tuple(run.warnings))


def _node(schema: JsonObject, *, root: bool) -> _Node:
    rules = compiled_rules(schema, Scope(schema, root=root)) if schemas.rules(schema) else []
    node = _Node(schema, root, rules)

    def inner(child: JsonObject | None) -> _Node | None:
        if child is None or not schemas.has(child, lambda one: bool(schemas.rules(one))):
            return None
        return _node(child, root=schemas.flag(child, schemas.EMBEDDED))

    for name, child in schemas.properties(schema).items():
        found = inner(child)
        if found is not None:
            node.members[name] = found
    node.additional, node.items = inner(schemas.additional(schema)), inner(schemas.items(schema))
    return node


class _Run:
    def __init__(self, budget: int, *, ratcheting: bool) -> None:
        self.left = budget
        self.errors: list[FieldError] = []
        self.warnings: list[str] = []
        self._ratcheting = ratcheting

    def node(self, node: _Node, value: JsonValue, old: JsonValue, path: str, was: _Ratchet) -> None:
        """Evaluate the CEL rules of a value and of its parts, until the cost budget is spent."""
        if value is None:
            return
        self._rules(node, value, old, path, was)
        if isinstance(value, list):
            self._items(node, value, old, path, was)
        elif isinstance(value, dict):
            before = old if isinstance(old, dict) else {}
            for name, member in sorted(value.items()) if node.additional is not None or node.members else ():
                inner = node.members.get(name)
                place = joined(path, name) if inner is not None else keyed(path, name)
                inner = inner or (
                    node.additional if name not in (schemas.child(node.schema, "properties") or {}) else None
                )
                if inner is not None and self.left >= 0:
                    self.node(inner, member, before.get(name), place, was.member(name))

    def _items(self, node: _Node, value: list[JsonValue], old: JsonValue, path: str, was: _Ratchet) -> None:
        if node.items is None:
            return
        before = keyed_items(node.schema, old)
        for index, item in enumerate(value):
            if self.left < 0:
                return
            key = item_key(node.schema, item) if before else None
            self.node(node.items, item, before.get(key) if key else None, indexed(path, index), was.item(index))

    def _rules(self, node: _Node, value: JsonValue, old: JsonValue, path: str, was: _Ratchet) -> None:
        kind = schemas.text(node.schema, "type")
        view: Value = None
        before: Value = None
        for index, rule in enumerate(node.rules):
            if self.left < 0:
                return
            if rule.compiled.problem:
                self.errors.append(invalid(path or _ROOT, kind, f"rule compile error: {rule.compiled.problem}"))
                continue
            if rule.compiled.program is None or (rule.compiled.uses_old and old is None and not rule.optional_old):
                continue
            if self.left <= 0:
                self._spent(path, kind, _BUDGET_SPENT)
                return
            if index == 0 or view is None:
                schema = with_meta(node.schema) if node.root else node.schema
                view = _view(value, schema)
                before = None if old is None else _view(old, schema)
            names: dict[str, Value] = {SELF: view, OLD: before}
            if rule.optional_old:
                names[OLD] = NONE if old is None else Optional(present=True, value=before)
            self._evaluate(rule, names, value, path, kind, was)

    def _spent(self, path: str, kind: str, why: str) -> None:
        self.errors.append(invalid(path or _ROOT, kind, why))
        self.left = -1

    def _evaluate(
        self, rule: Rule, names: dict[str, Value], value: JsonValue, path: str, kind: str, was: _Ratchet
    ) -> None:
        program = rule.compiled.program
        if program is None:
            return
        result, cost = program.evaluate(names)
        if cost > self.left:
            self._spent(path, kind, _BUDGET_SPENT)
            return
        self.left -= cost
        if isinstance(result, CelError):
            self._failed(rule, result, path, kind)
            return
        if result is True:
            return
        place = path
        if rule.field:
            place = f"{path}.{rule.field}" if path else rule.field
        detail = self._detail(rule, names)
        error = _rule_error(place or _ROOT, kind, value, detail, rule.document.get("reason"))
        if self._ratcheting and not rule.compiled.uses_old and was.same():
            self.warnings.append(str(error))
        else:
            self.errors.append(error)

    def _failed(self, rule: Rule, error: CelError, path: str, kind: str) -> None:
        """Add the error of a rule that could not be evaluated."""
        text = str(error)
        if text.startswith("no such overload"):
            why = "call arguments did not match a supported operator, function or macro signature for rule"
            self.errors.append(invalid(path or _ROOT, kind, f"'{text}': {why}: {rule.label}"))
        elif isinstance(error, CostError):
            why = "no further validation rules will be run due to call cost exceeds limit for rule"
            self._spent(path, kind, f"'{text}': {why}: {rule.label}")
        else:
            self.errors.append(invalid(path or _ROOT, kind, f"{text} evaluating rule: {rule.label}"))

    def _detail(self, rule: Rule, names: dict[str, Value]) -> str:
        message = rule.message
        if message is not None and message.program is not None:
            result, cost = message.program.evaluate(names)
            self.left -= cost
            text = result.strip() if isinstance(result, str) else ""
            if text and "\n" not in text and len(text.encode()) <= _MESSAGE_BYTES:
                return text
        own = schemas.text(rule.document, "message")
        return own.strip() if own else f"failed rule: {rule.label}"


def _view(value: JsonValue, schema: JsonObject) -> Value:
    """Return a value as rules see it; if it cannot be converted, return the error, which fails every rule that uses the value."""
    try:
        return viewed(value, schema)
    except CelError as error:
        return error


def _rule_error(path: str, kind: str, value: JsonValue, detail: str, reason: JsonValue) -> FieldError:
    shown = kind not in {"object", "array"}
    if reason == "FieldValueForbidden":
        return forbidden(path, detail)
    if reason == "FieldValueRequired":
        return required(path, detail)
    if reason == "FieldValueDuplicate":
        return duplicate(path, value) if shown else FieldError(path, "FieldValueDuplicate", "Duplicate value")
    if shown:
        return invalid(path, value, detail)
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {detail}")
