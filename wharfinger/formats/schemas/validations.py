"""The rules of a schema: ``x-kubernetes-validations`` and ``x-deckhouse-validations``, read within limits. Pure.

A rule is an expression in CEL over ``self`` (the value at the rule's place) and ``oldSelf`` (the old value at the same place).
Both kinds of rules are allowed at every level (properties, additionalProperties, items, and ``allOf``, whose branches are about
the same value):

=============================  =====================================================================================
``x-kubernetes-validations``   ``rule`` with ``message``, ``messageExpression``, ``reason``, ``fieldPath`` and
                               ``optionalOldSelf``, with Kubernetes' requirements
``x-deckhouse-validations``    ``expression`` and ``message``, both required
=============================  =====================================================================================

Here a rule is only text. :mod:`~wharfinger.formats.cel.engine` evaluates it in a process that can be killed
(:mod:`~wharfinger.formats.cel.worker`). The process does not get the whole schema, but a :class:`SchemaRules`: the rules, the
parts of the schema that lead to them, and the types below a rule of Kubernetes, because such a rule sees typed values.

A rule at a place where it would never be evaluated (``anyOf``, ``oneOf``, ``not``, ``patternProperties``, ``additionalItems``) is
refused, as in Kubernetes. Otherwise its author would rely on a check that never runs.
"""

import re
from dataclasses import dataclass, field
from typing import Final

from wharfinger.formats.json.value import JsonObject, JsonValue, encode_json, type_name
from wharfinger.formats.schemas.document import SchemaError, ValuePath, map_keys, path_text, properties, types

KUBERNETES: Final = "x-kubernetes-validations"
DECKHOUSE: Final = "x-deckhouse-validations"
MAX_RULES: Final = 1_000
"""The largest number of rules in one schema."""
MAX_EXPRESSION: Final = 16 * 1024
"""The largest number of characters in one expression."""
MAX_MESSAGE: Final = 2_048
"""The largest number of characters in a message, as in Kubernetes."""
REASONS: Final = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")

_NOT_EVALUATED: Final = ("anyOf", "oneOf", "not", "patternProperties", "additionalItems")
_FIELD_STEP: Final = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\['((?:[^'\\]|\\['\\])+)'\]")
_ESCAPED: Final = (("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__"))
_ESCAPABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
_RESERVED: Final = frozenset(
    {
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return"),
    }
)


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """The rules of one schema. ``text`` is the JSON from which a worker reads them; equal texts mean equal rules."""

    count: int
    text: bytes = field(repr=False)

    @property
    def compare(self) -> bool:
        """True if one of the rules may refer to the old value."""
        return b"oldSelf" in self.text


def rules_of(schema: JsonObject, *, what: str) -> SchemaRules | None:
    """Return the rules of an expanded schema; None if the schema has no rules.

    Raises SchemaError, which names the place, for an invalid rule.
    """
    reading = _Reading(what)
    node = reading.node(schema, (), correlated=True, typed=False)
    if not reading.count or node is None:
        return None
    return SchemaRules(reading.count, encode_json(node))


def escaped(name: str) -> str:
    """Return the name under which Kubernetes' rules see a property, such as ``x__dash__y`` for ``x-y``; "" if rules cannot use
    it.
    """
    if name in _RESERVED:
        return f"__{name}__"
    if not _ESCAPABLE.fullmatch(name):
        return ""
    for text, spelled in _ESCAPED:
        name = name.replace(text, spelled)
    return name


@dataclass(slots=True)
class _Reading:
    what: str
    count: int = 0

    def error(self, path: ValuePath, why: str) -> SchemaError:
        return SchemaError(f"{self.what}: {path_text(path)}: {why}")

    def node(self, schema: JsonObject, path: ValuePath, *, correlated: bool, typed: bool) -> JsonObject | None:
        """Return the parts of a schema that a worker needs to evaluate its rules; None if no part is needed.

        ``correlated`` is True if each value has a corresponding old value. ``typed`` is True below a Kubernetes rule.
        """
        self.refuse_unreachable(schema, path)
        rules = [*self.kubernetes(schema, path, correlated), *self.deckhouse(schema, path)]
        typed = typed or KUBERNETES in schema
        out: JsonObject = {}
        if rules:
            out["rules"] = list(rules)
            out["type"] = _declared(schema)
        if typed and _declared(schema) in {"number", "integer"}:
            out["type"] = _declared(schema)
        members = self.members(schema, path, correlated=correlated, typed=typed)
        if members:
            out["properties"] = members
        names: JsonObject = {name: escaped(name) for name in properties(schema) if escaped(name) not in {name, ""}}
        if typed and names:
            out["names"] = names
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            self.put(out, "additionalProperties", others, path, correlated=correlated, typed=typed)
        if "additionalProperties" in out and properties(schema):
            # All declared properties are listed, so that a worker does not take one for an additional property.
            out["properties"] = {name: members.get(name, {}) for name in properties(schema)}
        self.put_items(schema, out, path, correlated=correlated, typed=typed)
        branches = schema.get("allOf")
        if isinstance(branches, list):
            nodes = [
                self.node(branch, (*path, "allOf", index), correlated=correlated, typed=False)
                for index, branch in enumerate(branches)
                if isinstance(branch, dict)
            ]
            found = [node for node in nodes if node is not None]
            if found:
                out["allOf"] = list(found)
        return out or None

    def members(self, schema: JsonObject, path: ValuePath, *, correlated: bool, typed: bool) -> JsonObject:
        out: JsonObject = {}
        for name, inner in properties(schema).items():
            node = self.node(inner, (*path, "properties", name), correlated=correlated, typed=typed)
            if node is not None:
                out[name] = node
        return out

    def put(
        self, out: JsonObject, keyword: str, schema: JsonObject, path: ValuePath, *, correlated: bool, typed: bool
    ) -> None:
        node = self.node(schema, (*path, keyword), correlated=correlated, typed=typed)
        if node is not None:
            out[keyword] = node

    def put_items(self, schema: JsonObject, out: JsonObject, path: ValuePath, *, correlated: bool, typed: bool) -> None:
        items = schema.get("items")
        if isinstance(items, dict):
            keys = map_keys(schema)
            self.put(out, "items", items, path, correlated=correlated and bool(keys), typed=typed)
            if keys and "items" in out:
                out["keys"] = list(keys)
        elif isinstance(items, list):
            nodes = [
                self.node(item, (*path, "items", index), correlated=False, typed=typed)
                if isinstance(item, dict)
                else None
                for index, item in enumerate(items)
            ]
            if any(node is not None for node in nodes):
                out["items"] = list(nodes)

    def refuse_unreachable(self, schema: JsonObject, path: ValuePath) -> None:
        for keyword in _NOT_EVALUATED:
            inner = schema.get(keyword)
            if isinstance(inner, dict | list) and _has_rules(inner):
                raise self.error(
                    (*path, keyword),
                    f"has {KUBERNETES} or {DECKHOUSE} in it. Rules are not evaluated there; move them out of {keyword}",
                )

    def listed(self, schema: JsonObject, keyword: str, path: ValuePath) -> list[tuple[JsonObject, ValuePath]]:
        found = schema.get(keyword)
        if found is None:
            return []
        if not isinstance(found, list):
            raise self.error((*path, keyword), f"expected a list of rules, found {type_name(found)}")
        self.count += len(found)
        if self.count > MAX_RULES:
            raise self.error((*path, keyword), f"the schema has more than {MAX_RULES} rules")
        rules: list[tuple[JsonObject, ValuePath]] = []
        for index, rule in enumerate(found):
            if not isinstance(rule, dict):
                raise self.error((*path, keyword, index), f"a rule is an object, found {type_name(rule)}")
            rules.append((rule, (*path, keyword, index)))
        return rules

    def text(self, rule: JsonObject, key: str, path: ValuePath, most: int, *, needed: bool) -> str:
        found = rule.get(key)
        if found is None and not needed:
            return ""
        if not isinstance(found, str):
            raise self.error(
                (*path, key), "is required" if found is None else f"expected text, found {type_name(found)}"
            )
        if not found.strip():
            raise self.error((*path, key), "is empty; write a text, or leave it out")
        if len(found) > most:
            raise self.error((*path, key), f"has {len(found)} characters; at most {most} are allowed")
        return found

    def deckhouse(self, schema: JsonObject, path: ValuePath) -> list[JsonObject]:
        return [
            {
                "at": path_text(here),
                "rule": self.text(rule, "expression", here, MAX_EXPRESSION, needed=True),
                "message": self.text(rule, "message", here, MAX_MESSAGE, needed=True),
            }
            for rule, here in self.listed(schema, DECKHOUSE, path)
        ]

    def kubernetes(self, schema: JsonObject, path: ValuePath, correlated: bool) -> list[JsonObject]:  # noqa: FBT001
        return [
            self.kubernetes_rule(rule, here, schema, correlated=correlated)
            for rule, here in self.listed(schema, KUBERNETES, path)
        ]

    def kubernetes_rule(self, rule: JsonObject, path: ValuePath, schema: JsonObject, *, correlated: bool) -> JsonObject:
        expression = self.text(rule, "rule", path, MAX_EXPRESSION, needed=True)
        message = self.text(rule, "message", path, MAX_MESSAGE, needed=False)
        message_expression = self.text(rule, "messageExpression", path, MAX_EXPRESSION, needed=False)
        if "\n" in message or "\r" in message:
            raise self.error((*path, "message"), "has a line break; a message is one line")
        if "\n" in expression.strip() and not message and not message_expression:
            raise self.error((*path, "message"), "is required, since the rule has a line break")
        reason = self.text(rule, "reason", path, MAX_MESSAGE, needed=False)
        if reason and reason not in REASONS:
            raise self.error((*path, "reason"), f"is not one of {', '.join(REASONS)}")
        optional = rule.get("optionalOldSelf")
        if optional is not None and not isinstance(optional, bool):
            raise self.error((*path, "optionalOldSelf"), f"expected true or false, found {type_name(optional)}")
        out: JsonObject = {
            "at": path_text(path),
            "rule": expression,
            "message": message or f"failed rule: {' '.join(expression.split())}",
            "kubernetes": True,
        }
        out |= {
            key: value
            for key, value in (
                ("messageExpression", message_expression),
                ("field", self.field_path(rule, path, schema)),
                ("optional", optional),
                ("uncorrelated", not correlated),
            )
            if value
        }
        return out

    def field_path(self, rule: JsonObject, path: ValuePath, schema: JsonObject) -> list[JsonValue]:
        written = self.text(rule, "fieldPath", path, MAX_MESSAGE, needed=False)
        here = (*path, "fieldPath")
        steps: list[JsonValue] = []
        at = 0
        inner: JsonValue = schema
        while at < len(written):
            match = _FIELD_STEP.match(written, at)
            if match is None:
                raise self.error(here, "expected a path of fields, such as .spec.host or .labels['app.name']")
            name = match[1] if match[1] is not None else re.sub(r"\\(.)", r"\1", match[2])
            others = inner.get("additionalProperties") if isinstance(inner, dict) else None
            inner = properties(inner).get(name, others) if isinstance(inner, dict) else None
            if not isinstance(inner, dict):
                raise self.error(here, f"names no field of the schema: there is no {name[:80]!r}")
            steps.append(name)
            at = match.end()
        return steps


def _declared(schema: JsonObject) -> str:
    """Return the single type that the schema declares. Return "" if the schema declares no type or several types, or allows
    null.
    """
    declared = types(schema)
    return declared[0] if len(declared) == 1 and schema.get("nullable") is not True else ""


def _has_rules(schema: JsonValue) -> bool:
    if isinstance(schema, dict):
        return KUBERNETES in schema or DECKHOUSE in schema or any(map(_has_rules, schema.values()))
    return isinstance(schema, list) and any(map(_has_rules, schema))
