"""The type checker, as in cel-go: it finds the type of every node, the possible overloads of every call, and errors."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wharfinger.control_plane.cel.checking.functions import RESULTS_OF_TYPES, Overload, functions
from wharfinger.control_plane.cel.syntax.issues import Issue
from wharfinger.control_plane.cel.syntax.nodes import (
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
    StructNode,
)
from wharfinger.control_plane.cel.values.schema_types import keyword_field
from wharfinger.control_plane.cel.values.types import (
    BOOL,
    DYN,
    ERROR,
    INT,
    NULL,
    STRING,
    Bindings,
    Type,
    listed,
    mapped,
    most_general,
    optional,
    param,
    read_type,
    unwrapped,
)
from wharfinger.control_plane.cel.values.values import Uint

Fields = Mapping[str, Mapping[str, Type]]
"""The fields of object types: by the name of the object type, and then by the name of the field, the type of the field."""
_LITERALS: Final[tuple[tuple[type, str], ...]] = (
    (bool, "bool"), (Uint, "uint"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"),
)  # fmt: skip

PATCH: Final = "JSONPatch"
MADE: Final = "Object"
PATCH_FIELDS: Final = {"op": STRING, "path": STRING, "from": STRING, "value": DYN}
"""The fields of a ``JSONPatch``."""
_NAMELESS: Final = Type("nameless", "")
"""The type of an unknown field of a ``JSONPatch``; it equals no other type."""
ESCAPE_KEY: Final = "jsonpatch.escapeKey"
_DECLARED: Final = "kubernetes."
_UNRESOLVED: Final = "unexpected failed resolution of"


@dataclass(slots=True)
class Checked:
    """An expression with the types of its nodes and the possible overloads of its calls."""

    root: Node
    types: dict[Node, Type]
    overloads: dict[Node, tuple[str, ...]]
    names: set[str] = field(default_factory=set)
    """The variables that the expression uses."""
    issues: list[Issue] = field(default_factory=list)

    @property
    def result(self) -> Type:
        """The type of the whole expression."""
        return self.types[self.root]


def check(root: Node, variables: Mapping[str, Type], fields: Fields, *, patches: bool = False) -> Checked:
    """Return the checked expression; its errors are in ``issues``.

    With ``patches``, the expression may construct objects and JSON patches.
    """
    checker = _Checker(root, variables, fields, patches=patches)
    checker.node(root)
    checked = checker.checked
    checked.types = {node: checker.bound.substituted(kind, final=True) for node, kind in checked.types.items()}
    return checked


class _Checker:
    def __init__(self, root: Node, variables: Mapping[str, Type], fields: Fields, *, patches: bool) -> None:
        self.checked = Checked(root, {}, {})
        self._patches = patches
        self.bound = Bindings()
        self._scopes: list[dict[str, Type]] = [dict(variables)]
        self._fields = fields
        self._fresh = 0

    def node(self, node: Node) -> Type:
        """Return the type of a node, and record it."""
        kind = self._judged(node)
        self.checked.types[node] = kind
        return kind

    def _judged(self, node: Node) -> Type:
        if isinstance(node, Literal):
            return _literal(node.value)
        if isinstance(node, Ident):
            return self._ident(node)
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, Call):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, StructNode):
            return self._struct(node)
        return self._fold(node) if isinstance(node, Fold) else ERROR

    def _wrong(self, node: Node, text: str) -> Type:
        self.checked.issues.append(Issue(node.at, text))
        return ERROR

    def _mismatch(self, node: Node, wanted: Type, found: Type) -> None:
        self._wrong(node, f"expected type '{wanted}' but found '{found}'")

    def _lookup(self, name: str) -> Type | None:
        plain = name.removeprefix(".")
        for depth, scope in reversed([*enumerate(self._scopes)]):
            if plain in scope and (plain == name or depth == 0):
                if depth == 0:
                    self.checked.names.add(plain)
                return scope[plain]
        if is_made(plain) if self._patches else plain.startswith(_DECLARED) and plain in self._fields:
            return Type("type", "type", (Type("struct", plain),))
        named = RESULTS_OF_TYPES.get(plain)
        return None if named is None else Type("type", "type", (read_type(named),))

    def _ident(self, node: Ident) -> Type:
        found = self._lookup(node.name)
        if found is None:
            return self._wrong(node, f"undeclared reference to '{node.name}' (in container '')")
        return found

    def _new(self) -> Type:
        self._fresh += 1
        return param(f"_var{self._fresh - 1}")

    def _select(self, node: Select) -> Type:
        name = None if node.test else qualified(node)
        named = None if name is None or "." not in name else self._lookup(name)
        if named is not None:
            return named
        found = self._field(node, node.operand, node.field, always_optional=False)
        return BOOL if node.test else self.bound.substituted(found)

    def _field(self, node: Node, operand: Node, name: str, *, always_optional: bool) -> Type:
        target, is_optional = unwrapped(self.bound.substituted(self.node(operand)))
        if target.kind == "map":
            found = target.params[1]
        elif target.kind == "struct":
            found = self._declared(node.at, target.name, name)
        elif target.kind == "param":
            self.bound.assignable(DYN, target)
            found = DYN
        else:
            if target.kind not in {"dyn", "error"}:
                self._wrong(node, f"type '{target}' does not support field selection")
            found = DYN
        return optional(found) if is_optional or always_optional else found

    def _declared(self, at: int, struct: str, name: str) -> Type:
        """Return the type of a field of an object; an unknown field is reported as an error."""
        if self._patches and is_made(struct):
            return PATCH_FIELDS.get(name, _NAMELESS) if struct == PATCH else DYN
        fields = self._fields.get(struct)
        if fields is None:
            return self._wrong(Node(at), f"{_UNRESOLVED} '{struct}'")
        known = fields.get(name) or fields.get(keyword_field(name))
        return known or self._wrong(Node(at), f"undefined field '{name}'")

    def _struct(self, node: StructNode) -> Type:
        named = self._lookup(node.name)
        if named is None:
            return self._wrong(node, f"undeclared reference to '{node.name}' (in container '')")
        result = named.params[0] if named.kind == "type" else ERROR
        if named.kind != "type":
            self._wrong(node, f"'{named}' is not a type")
        elif result.kind != "struct":
            result = self._wrong(node, f"'{result.name}' is not a message type")
        for name, value, is_optional in node.fields:
            at = node.places.get(name, node.at)
            wanted = self._declared(at, result.name, name) if result.kind == "struct" else ERROR
            if result.kind != "struct":
                unknown = f"undefined field '{name}'" if named.kind == "type" else f"{_UNRESOLVED} '{node.name}'"
                self._wrong(Node(at), unknown)
            kind = self.node(value)
            kind = self._unwrapped(value, kind) if is_optional else kind
            if not self.bound.assignable(wanted, kind):
                shown = (self.bound.substituted(one, final=True) for one in (wanted, kind))
                text = "expected type of field '{}' is '{}' but provided type is '{}'".format(name, *shown)
                self._wrong(Node(at), text)
        return result

    def _functions(self, name: str) -> tuple[Overload, ...] | None:
        return None if name == ESCAPE_KEY and not self._patches else functions().get(name)

    def _call(self, node: Call) -> Type:
        if node.function == "_?._":
            field_name = node.arguments[1]
            name = field_name.value if isinstance(field_name, Literal) and isinstance(field_name.value, str) else ""
            self.checked.overloads[node] = ("select_optional_field",)
            return self.bound.substituted(self._field(node, node.arguments[0], name, always_optional=True))
        arguments = [self.node(argument) for argument in node.arguments]
        if node.target is None:
            known = self._functions(node.function.removeprefix("."))
            if known is None:
                return self._wrong(node, f"undeclared reference to '{node.function}' (in container '')")
            return self._resolved(node, node.function.removeprefix("."), known, arguments, None)
        prefix = qualified(node.target)
        joined = None if prefix is None else self._functions(f"{prefix}.{node.function}")
        if joined is not None:
            node.function, node.target = f"{prefix}.{node.function}", None
            return self._resolved(node, node.function, joined, arguments, None)
        target = self.node(node.target)
        known = functions().get(node.function)
        if known is None:
            return self._wrong(node, f"undeclared reference to '{node.function}' (in container '')")
        return self._resolved(node, node.function, known, arguments, target)

    def _resolved(
        self, node: Call, name: str, known: tuple[Overload, ...], arguments: list[Type], target: Type | None
    ) -> Type:
        given = (() if target is None else (target,)) + tuple(arguments)
        if name in {"_&&_", "_||_"}:
            return self._logical(node, name, given)
        result: Type | None = None
        chosen: list[str] = []
        for overload in known:
            if overload.member is (target is None):
                continue
            parameters, gives = overload.parameters, overload.result
            if overload.variables:
                fresh = {variable: self._new() for variable in sorted(overload.variables)}
                parameters = tuple(_renamed(kind, fresh) for kind in parameters)
                gives = _renamed(gives, fresh)
            if self.bound.all_assignable(given, parameters):
                chosen.append(overload.id)
                gives = self.bound.substituted(gives)
                if result is None:
                    result = gives
                elif result.kind != "dyn" and gives != result:
                    result = DYN
        if result is None:
            shown = [str(self.bound.substituted(kind, final=True)) for kind in given]
            before = "" if target is None else f"{shown.pop(0)}."
            return self._wrong(
                node, f"found no matching overload for '{name}' applied to '{before}({', '.join(shown)})'"
            )
        self.checked.overloads[node] = tuple(chosen)
        return result

    def _logical(self, node: Call, name: str, given: tuple[Type, ...]) -> Type:
        fits = True
        for argument, kind in zip(node.arguments, given, strict=True):
            if not self.bound.assignable(kind, BOOL):
                self._mismatch(argument, BOOL, kind)
                fits = False
        self.checked.overloads[node] = ("logical_and" if name == "_&&_" else "logical_or",)
        return BOOL if fits else ERROR

    def _list(self, node: ListNode) -> Type:
        joined: Type | None = None
        for index, element in enumerate(node.elements):
            kind = self.node(element)
            if index in node.optional:
                kind = self._unwrapped(element, kind)
            joined = self._joined(joined, kind)
        return listed(joined or self._new())

    def _unwrapped(self, node: Node, kind: Type) -> Type:
        inner, is_optional = unwrapped(kind)
        if not is_optional and inner.kind != "dyn":
            self._mismatch(node, optional(inner), inner)
        return inner

    def _map(self, node: MapNode) -> Type:
        keys: Type | None = None
        values: Type | None = None
        for key, value, is_optional in node.entries:
            keys = self._joined(keys, self.node(key))
            kind = self.node(value)
            values = self._joined(values, self._unwrapped(value, kind) if is_optional else kind)
        return mapped(keys or self._new(), values or self._new())

    def _joined(self, previous: Type | None, current: Type) -> Type:
        if previous is None:
            return current
        if self.bound.assignable(previous, current):
            return most_general(previous, current)
        return DYN  # ``literals`` reports lists and maps of mixed types

    def _fold(self, node: Fold) -> Type:
        self.node(node.range)
        start = self.node(node.start)
        found = self.bound.substituted(self.checked.types[node.range])
        self._scopes.append({node.accumulator: start})
        loop: tuple[Type, ...]
        if found.kind == "list":
            element = found.params[0]
            loop = (element,) if len(node.names) == 1 else (INT, element)
        elif found.kind == "map":
            loop = found.params[:1] if len(node.names) == 1 else found.params
        elif found.kind in {"dyn", "error", "param"}:
            self.bound.assignable(DYN, found)
            loop = (DYN,) * len(node.names)
        else:
            text = f"expression of type '{found}' cannot be range of a comprehension (must be list, map, or dynamic)"
            loop = (self._wrong(node.range, text),) * len(node.names)
        self._scopes.append(dict(zip(node.names, loop, strict=True)))
        self._expect(node.condition, BOOL)
        self._expect(node.step, start)
        self._scopes.pop()
        result = self.node(node.result)
        self._scopes.pop()
        return self.bound.substituted(result)

    def _expect(self, node: Node, wanted: Type) -> None:
        kind = self.node(node)
        if not self.bound.assignable(wanted, kind):
            self._mismatch(node, wanted, kind)


def is_made(name: str) -> bool:
    """Return whether a type exists only in patch expressions: ``JSONPatch``, ``Object``, or a type such as ``Object.spec``."""
    return name in (PATCH, MADE) or name.startswith(f"{MADE}.")


def qualified(node: Node | None) -> str | None:
    """Return ``a.b.c`` if a node consists of names only, else None."""
    if isinstance(node, Ident):
        return node.name
    if isinstance(node, Select) and not node.test:
        inner = qualified(node.operand)
        return None if inner is None else f"{inner}.{node.field}"
    return None


def _literal(value: object) -> Type:
    if value is None:
        return NULL
    return next((Type(name, name) for kind, name in _LITERALS if isinstance(value, kind)), ERROR)


def _renamed(kind: Type, names: Mapping[str, Type]) -> Type:
    if kind.kind == "param":
        return names.get(kind.name, kind)
    if not kind.params:
        return kind
    return Type(kind.kind, kind.name, tuple(_renamed(inner, names) for inner in kind.params))
