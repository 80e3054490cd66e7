"""The compiled CEL rules of a schema, and their evaluation on a value. Only :mod:`~wharfinger.formats.cel.worker` runs this.

The rules come from the SchemaRules that :mod:`~wharfinger.formats.schemas.validations` extracts from the schema. In the rules
for a part of the value, ``self`` is this part, and ``oldSelf`` is a part of the old value:

==========================  ==========================================================================================
part of the value           part of the old value
==========================  ==========================================================================================
properties                  the property of the same name
additionalProperties        the key of the same name, for keys that are not properties
items of a ``map`` list     the item with the same values for the ``x-kubernetes-list-map-keys``
other items                 none, because it is unknown which old item corresponds
==========================  ==========================================================================================

As in Kubernetes, a rule applies only to values that are not null, so only a rule on an enclosing value can forbid a null. An
old value that is null counts as no old value. A rule that refers to ``oldSelf`` is skipped if there is no old value, unless
``optionalOldSelf`` is set. A rule that cannot be evaluated (because of a missing key or an invalid argument of a function) is
always a finding.

Rules of Kubernetes (``x-kubernetes-validations``) see the value with its schema's types: a ``number`` is a double, and an
``integer`` is an int. Properties whose names are not identifiers also exist under their escaped names. Rules of Deckhouse
(``x-deckhouse-validations``) see the plain value.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from wharfinger.formats.cel.engine import CelError, Expression, OutOfMemoryError, compile_expression
from wharfinger.formats.cel.protocol import MAX_FINDINGS, CelRequest, Finding, FindingKind
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_list, find_object, find_str, need_str
from wharfinger.formats.schemas.document import ValuePath, by_keys, item_key
from wharfinger.formats.schemas.validations import MAX_MESSAGE


@dataclass(frozen=True, slots=True)
class Outcome:
    """The findings to return, and whether the process should end after the answer."""

    findings: tuple[Finding, ...]
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    at: str
    message: str
    field: ValuePath
    kubernetes: bool
    optional: bool
    expression: Expression | None
    message_expression: Expression | None
    problem: str

    @property
    def is_skipped_without_old(self) -> bool:
        return self.expression is not None and self.expression.uses_old and not self.optional


@dataclass(frozen=True, slots=True)
class _Node:
    """The rules and types at one place of the schema."""

    type: str
    rules: tuple[_Rule, ...]
    properties: dict[str, "_Node"]
    names: dict[str, str]
    others: "_Node | None"
    items: "tuple[_Node | None, ...] | _Node | None"
    keys: tuple[str, ...]
    branches: "tuple[_Node, ...]"

    def item(self, index: int) -> "_Node | None":
        if isinstance(self.items, tuple):
            return self.items[index] if index < len(self.items) else None
        return self.items


def compile_rules(node: JsonObject) -> "CompiledRules":
    """Compile the rules in the decoded text of a SchemaRules.

    Raises ShapeError for a value of another shape. A rule that does not compile raises nothing: it becomes a finding.
    """
    return CompiledRules(_node(node))


class CompiledRules:
    """The compiled rules of one schema, made by :func:`compile_rules`."""

    def __init__(self, root: _Node) -> None:
        self._root = root

    def checked(self) -> Outcome:
        """Return the findings about the rules themselves."""
        return Outcome(tuple(_problems(self._root))[:MAX_FINDINGS])

    def evaluated(self, request: CelRequest, at: Callable[[str], None]) -> Outcome:
        """Evaluate the rules on a value.

        Before a rule is evaluated, ``at`` is called with the rule's place in the schema, but not again if the same rule is
        evaluated several times in a row.
        """
        walk = _Walk(at)
        with contextlib.suppress(_EnoughError):
            walk.node(self._root, request.value, request.old, ())
        return Outcome(tuple(walk.findings), walk.out_of_memory)


def _node(encoded: JsonObject) -> _Node:
    items = encoded.get("items")
    others = encoded.get("additionalProperties")
    kind = find_str(encoded, "type")
    return _Node(
        type=kind,
        rules=tuple(_rule(_object(rule), kind) for rule in find_list(encoded, "rules")),
        properties={name: _node(_object(inner)) for name, inner in find_object(encoded, "properties").items()},
        names={name: str(spelled) for name, spelled in find_object(encoded, "names").items()},
        others=_node(others) if isinstance(others, dict) else None,
        items=tuple(_node(item) if isinstance(item, dict) else None for item in items)
        if isinstance(items, list)
        else (_node(items) if isinstance(items, dict) else None),
        keys=tuple(str(key) for key in find_list(encoded, "keys")),
        branches=tuple(_node(_object(branch)) for branch in find_list(encoded, "allOf")),
    )


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _rule(encoded: JsonObject, kind: str) -> _Rule:
    kubernetes, optional = find(encoded, "kubernetes") is True, find(encoded, "optional") is True
    expression: Expression | None = None
    message_expression: Expression | None = None
    problem = ""
    self_type = kind if kubernetes else ""
    try:
        expression = compile_expression(
            need_str(encoded, "rule"), self_type=self_type, result="bool", optional_old=optional
        )
        if expression.uses_old and not optional and find(encoded, "uncorrelated") is True:
            problem = (
                "uses oldSelf inside a list that is not a map (x-kubernetes-list-type), so old and new items cannot be "
                "matched; move the rule above the list"
            )
    except CelError as error:
        problem = f"does not compile: {error}"
    if find_str(encoded, "messageExpression"):
        try:
            message_expression = compile_expression(
                find_str(encoded, "messageExpression"), self_type=self_type, result="string", optional_old=optional
            )
        except CelError as error:
            problem = problem or f"its messageExpression does not compile: {error}"
    steps = tuple(step for step in find_list(encoded, "field") if isinstance(step, str))
    return _Rule(
        need_str(encoded, "at"), find_str(encoded, "message"), steps, kubernetes, optional,
        expression, message_expression, problem,
    )  # fmt: skip


def _problems(node: _Node) -> Iterator[Finding]:
    for rule in node.rules:
        if rule.problem:
            yield Finding(FindingKind.ERROR, (), rule.at, rule.problem)
    below = [*node.properties.values(), *node.branches]
    below += [one for one in (node.others, *(node.items if isinstance(node.items, tuple) else (node.items,))) if one]
    for one in below:
        yield from _problems(one)


class _EnoughError(Exception):
    """The evaluation stops: there are enough findings, or there is no memory for more."""


@dataclass(slots=True)
class _Walk:
    at: Callable[[str], None]
    findings: list[Finding] = field(default_factory=list)
    out_of_memory: bool = False
    last: str = ""

    def node(self, node: _Node, value: JsonValue, old: JsonValue, path: ValuePath) -> None:
        if node.rules and value is not None:
            self.rules(node, value, old, path)
        if isinstance(value, dict) and (node.properties or node.others is not None):
            before = old if isinstance(old, dict) else {}
            for name, item in value.items():
                inner = node.properties.get(name, node.others)
                if inner is not None:
                    self.node(inner, item, before.get(name), (*path, name))
        elif isinstance(value, list) and node.items is not None:
            known = by_keys(old, node.keys)
            for index, item in enumerate(value):
                inner = node.item(index)
                if inner is not None:
                    key = item_key(item, node.keys)
                    self.node(inner, item, None if key is None else known.get(key), (*path, index))
        for branch in node.branches:
            self.node(branch, value, old, path)

    def rules(self, node: _Node, value: JsonValue, old: JsonValue, path: ValuePath) -> None:
        typed: tuple[JsonValue, JsonValue] | None = None
        for rule in node.rules:
            if rule.is_skipped_without_old and old is None:
                continue
            if rule.kubernetes and typed is None:
                typed = _typed(value, node), _typed(old, node)
            here, before = typed if rule.kubernetes and typed is not None else (value, old)
            if rule.at != self.last:
                self.at(rule.at)
                self.last = rule.at
            self.rule(rule, here, before, path)

    def rule(self, rule: _Rule, value: JsonValue, old: JsonValue, path: ValuePath) -> None:
        if rule.expression is None:
            self.add(Finding(FindingKind.ERROR, path, rule.at, rule.problem))
            return
        try:
            holds = rule.expression.evaluate(value, old)
        except OutOfMemoryError as error:
            self.add(Finding(FindingKind.ERROR, path, rule.at, f"could not be evaluated: {error}"))
            self.out_of_memory = True
            raise _EnoughError from error
        except CelError as error:
            self.add(Finding(FindingKind.ERROR, path, rule.at, f"could not be evaluated: {error}"))
            return
        if not isinstance(holds, bool):
            self.add(Finding(FindingKind.ERROR, path, rule.at, "could not be evaluated: its result is not a bool"))
        elif not holds:
            self.add(self.failed(rule, value, old, path))

    def failed(self, rule: _Rule, value: JsonValue, old: JsonValue, path: ValuePath) -> Finding:
        place = (*path, *rule.field)
        if rule.message_expression is None:
            return Finding(FindingKind.FAILED, place, rule.at, rule.message)
        message: object = ""
        try:
            if not rule.message_expression.uses_old or old is not None or rule.optional:
                message = rule.message_expression.evaluate(value, old)
        except OutOfMemoryError:
            self.out_of_memory = True
        except CelError:
            message = ""
        encoded = message.strip() if isinstance(message, str) else ""
        if not encoded or "\n" in encoded or "\r" in encoded:
            return Finding(FindingKind.WARNING, place, rule.at, rule.message)
        return Finding(FindingKind.FAILED, place, rule.at, encoded[:MAX_MESSAGE], rule.message, len(rule.field))

    def add(self, finding: Finding) -> None:
        self.findings.append(finding)
        if len(self.findings) >= MAX_FINDINGS:
            raise _EnoughError


def _typed(value: JsonValue, node: _Node | None) -> JsonValue:
    """Return the value as rules of Kubernetes see it: with the types and the escaped property names of its schema."""
    if node is None or value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return _as_double(value) if node.type == "number" else value
    if isinstance(value, float):
        return int(value) if node.type == "integer" and value.is_integer() else value
    if isinstance(value, list):
        return value if node.items is None else [_typed(item, node.item(index)) for index, item in enumerate(value)]
    if not (node.properties or node.others is not None or node.names):
        return value
    out = {name: _typed(item, node.properties.get(name, node.others)) for name, item in value.items()}
    out |= {spelled: out[name] for name, spelled in node.names.items() if name in out and spelled not in out}
    return out


def _as_double(value: int) -> JsonValue:
    try:
        return float(value)
    except OverflowError:
        return value
