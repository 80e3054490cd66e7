"""The macros ``has``, ``all``, ``exists``, ``map`` and others; most of them are expanded to loops over a range."""

from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.cel.syntax.nodes import (
    ACCUMULATOR,
    Call,
    Fold,
    Ident,
    ListNode,
    Literal,
    MapNode,
    Node,
    Select,
)


class MacroError(ValueError):
    """The error of a macro whose arguments are not of the required form."""

    def __init__(self, at: int, why: str) -> None:
        super().__init__(why)
        self.at = at


Macro = Callable[[Call], Node | None]
MacroKey = tuple[str, int, bool]
"""A function's name, the number of its arguments, and whether it is called on a target."""
NO_MACROS: Final[Mapping[MacroKey, Macro]] = {}


def _variable(node: Node, why: str) -> str:
    if not isinstance(node, Ident) or node.name.startswith("."):
        raise MacroError(node.at, why)
    if node.name == "__result__":
        raise MacroError(node.at, "iteration variable overwrites accumulator variable")
    return node.name


def _accumulated(at: int) -> Ident:
    return Ident(at, ACCUMULATOR)


def _has(call: Call) -> Node:
    argument = call.arguments[0]
    if not isinstance(argument, Select) or argument.test:
        raise MacroError(argument.at, "invalid argument to has() macro")
    return Select(call.at, argument.operand, argument.field, test=True)


def _quantifier(kind: str, names: int) -> Macro:
    def expand(call: Call) -> Node:
        at, result = call.at, _accumulated(call.at)
        variables = _variables(call, names)
        wanted = call.arguments[-1]
        start: Node = Literal(at, kind == "all")
        condition: Node = Literal(at, True)  # noqa: FBT003
        if kind == "all":
            condition = Call(at, "@not_strictly_false", [result])
            step: Node = Call(at, "_&&_", [_accumulated(at), wanted])
        elif kind == "exists":
            condition = Call(at, "@not_strictly_false", [Call(at, "!_", [result])])
            step = Call(at, "_||_", [_accumulated(at), wanted])
        else:
            start = Literal(at, 0)
            more = Call(at, "_+_", [_accumulated(at), Literal(at, 1)])
            step = Call(at, "_?_:_", [wanted, more, _accumulated(at)])
            last = Call(at, "_==_", [_accumulated(at), Literal(at, 1)])
            return Fold(at, _target(call), variables, ACCUMULATOR, start, condition, step, last)
        return Fold(at, _target(call), variables, ACCUMULATOR, start, condition, step, _accumulated(at))

    return expand


def _target(call: Call) -> Node:
    return call.target or Literal(call.at, None)


def _variables(call: Call, names: int) -> tuple[str, ...]:
    if names == 1:
        return (_variable(call.arguments[0], "argument must be a simple name"),)
    found = tuple(_variable(node, "argument must be a simple name") for node in call.arguments[:2])
    if found[0] == found[1]:
        raise MacroError(call.arguments[1].at, f"duplicate variable name: {found[0]}")
    return found


def _transformed(call: Call) -> Node:
    """Expand ``map(x, f)`` or ``map(x, condition, f)``."""
    at = call.at
    name = _variable(call.arguments[0], "argument is not an identifier")
    step: Node = Call(at, "_+_", [_accumulated(at), ListNode(at, [call.arguments[-1]])])
    if len(call.arguments) == 3:
        step = Call(at, "_?_:_", [call.arguments[1], step, _accumulated(at)])
    always = Literal(at, True)  # noqa: FBT003
    return Fold(at, _target(call), (name,), ACCUMULATOR, ListNode(at, []), always, step, _accumulated(at))


def _filtered(call: Call) -> Node:
    at, element = call.at, call.arguments[0]
    name = _variable(element, "argument is not an identifier")
    step = Call(at, "_+_", [_accumulated(at), ListNode(at, [element])])
    step = Call(at, "_?_:_", [call.arguments[1], step, _accumulated(at)])
    always = Literal(at, True)  # noqa: FBT003
    return Fold(at, _target(call), (name,), ACCUMULATOR, ListNode(at, []), always, step, _accumulated(at))


def _two_variables(kind: str) -> Macro:
    """Return the macro ``transformList``, ``transformMap`` or ``transformMapEntry``."""

    def expand(call: Call) -> Node:
        at = call.at
        variables = _variables(call, 2)
        value = call.arguments[-1]
        start: Node = ListNode(at, []) if kind == "list" else MapNode(at, [])
        if kind == "list":
            step: Node = Call(at, "_+_", [_accumulated(at), ListNode(at, [value])])
        elif kind == "map":
            step = Call(at, "cel.@mapInsert", [_accumulated(at), Ident(at, variables[0]), value])
        else:
            step = Call(at, "cel.@mapInsert", [_accumulated(at), value])
        if len(call.arguments) == 4:
            step = Call(at, "_?_:_", [call.arguments[2], step, _accumulated(at)])
        always = Literal(at, True)  # noqa: FBT003
        return Fold(at, _target(call), variables, ACCUMULATOR, start, always, step, _accumulated(at))

    return expand


def _optional(function: str) -> Macro:
    """Return the macro ``optMap`` or ``optFlatMap``."""

    def expand(call: Call) -> Node:
        at, target = call.at, _target(call)
        name = call.arguments[0]
        if not isinstance(name, Ident):
            raise MacroError(name.at, f"{function}() variable name must be a simple identifier")
        value = Call(at, "value", [], target)
        never = Literal(at, False)  # noqa: FBT003
        inner = Fold(
            at,
            ListNode(at, []),
            ("#unused",),
            name.name,
            value,
            never,
            Ident(at, name.name),
            call.arguments[1],
            bind=True,
        )
        then: Node = Call(at, "optional.of", [inner]) if function == "optMap" else inner
        return Call(at, "_?_:_", [Call(at, "hasValue", [], target), then, Call(at, "optional.none", [])])

    return expand


def _sort_by(call: Call) -> Node:
    """Expand ``sortBy(x, key)``, which sorts a list by the value of ``key`` for each element."""
    at = call.at
    name = _variable(call.arguments[0], "sortBy(var, ...) variable name must be a simple identifier")
    target = _target(call)
    step = Call(at, "_+_", [_accumulated(at), ListNode(at, [call.arguments[1]])])
    always = Literal(at, True)  # noqa: FBT003
    keys = Fold(
        at, Ident(at, "@__sortBy_input__"), (name,), ACCUMULATOR, ListNode(at, []), always, step, _accumulated(at)
    )
    sort = Call(at, "@sortByAssociatedKeys", [keys], Ident(at, "@__sortBy_input__"))
    never = Literal(at, False)  # noqa: FBT003
    return Fold(
        at,
        ListNode(at, []),
        ("#unused",),
        "@__sortBy_input__",
        target,
        never,
        Ident(at, "@__sortBy_input__"),
        sort,
        bind=True,
    )


def _bound(call: Call) -> Node | None:
    """Expand ``cel.bind(x, value, expression)``, which gives a value a name. Return None if the target of the call is not
    ``cel``.
    """
    if not isinstance(call.target, Ident) or call.target.name != "cel":
        return None
    at = call.at
    name = call.arguments[0]
    if not isinstance(name, Ident):
        raise MacroError(name.at, "cel.bind() variable names must be simple identifiers")
    never = Literal(at, False)  # noqa: FBT003
    return Fold(
        at, ListNode(at, []), ("#unused",), name.name, call.arguments[1], never, Ident(at, name.name), call.arguments[2],
        bind=True,
    )  # fmt: skip


BINDINGS: Final[Mapping[MacroKey, Macro]] = {("bind", 3, True): _bound}
"""The macro ``cel.bind``, which only the selectors of devices can use."""
MACROS: Final[Mapping[MacroKey, Macro]] = {
    ("has", 1, False): _has,
    ("all", 2, True): _quantifier("all", 1),
    ("exists", 2, True): _quantifier("exists", 1),
    ("exists_one", 2, True): _quantifier("one", 1),
    ("existsOne", 2, True): _quantifier("one", 1),
    ("map", 2, True): _transformed,
    ("map", 3, True): _transformed,
    ("filter", 2, True): _filtered,
    ("all", 3, True): _quantifier("all", 2),
    ("exists", 3, True): _quantifier("exists", 2),
    ("exists_one", 3, True): _quantifier("one", 2),
    ("existsOne", 3, True): _quantifier("one", 2),
    ("transformList", 3, True): _two_variables("list"),
    ("transformList", 4, True): _two_variables("list"),
    ("transformMap", 3, True): _two_variables("map"),
    ("transformMap", 4, True): _two_variables("map"),
    ("transformMapEntry", 3, True): _two_variables("entry"),
    ("transformMapEntry", 4, True): _two_variables("entry"),
    ("optMap", 2, True): _optional("optMap"),
    ("optFlatMap", 2, True): _optional("optFlatMap"),
    ("sortBy", 2, True): _sort_by,
}
"""The standard macros."""
