"""The evaluation of expressions: each node becomes a Python function that counts its cost.

``&&``, ``||``, ``all`` and ``exists`` ignore an error in one operand or element if another one determines the result.
An evaluation ends with an error if its cost exceeds ``CALL_LIMIT`` or if its CPU time exceeds ``CPU_S``.
"""

import time
from collections.abc import Callable, Mapping
from typing import Final

from wharfinger.control_plane.cel.checking.checker import Checked, qualified
from wharfinger.control_plane.cel.costs.call_costs import call_cost
from wharfinger.control_plane.cel.costs.sizes import LIST_COST, MAP_COST, STRUCT_COST
from wharfinger.control_plane.cel.library import functions as library
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
from wharfinger.control_plane.cel.values import operations
from wharfinger.control_plane.cel.values.lookups import found, has, ranged, selected
from wharfinger.control_plane.cel.values.mismatches import mismatch
from wharfinger.control_plane.cel.values.values import (
    NONE,
    CelError,
    CelMap,
    CostError,
    MadeObject,
    Optional,
    TypeValue,
    Value,
)

CALL_LIMIT: Final = 1_000_000
"""The highest cost of one evaluation."""
CPU_S: Final = 5.0
"""The limit on the CPU time of one evaluation, in seconds. It is needed if the counted cost is lower than the real cost."""
_EXCEEDED: Final = "operation cancelled: actual cost limit exceeded"
_LOOPS_BETWEEN_CHECKS: Final = 100
"""The number of passes of a loop between two checks of the CPU time."""


class Run:
    """One evaluation: its variables, and its cost so far."""

    __slots__ = ("_until", "cost", "names")

    def __init__(self, names: Mapping[str, Value]) -> None:
        self.names: dict[str, Value] = dict(names)
        self.cost = 0
        self._until = time.process_time() + CPU_S

    def spend(self, cost: int) -> None:
        """Add a cost. Raises CostError if the total cost exceeds the limit."""
        self.cost += cost
        if self.cost > CALL_LIMIT:
            raise CostError(_EXCEEDED)

    def check_time(self) -> None:
        """Raise CostError if no CPU time is left."""
        if time.process_time() > self._until:
            self.cost = CALL_LIMIT + 1
            raise CostError(_EXCEEDED)


Step = Callable[[Run], Value]


class Program:
    """An expression that can be evaluated."""

    def __init__(self, checked: Checked) -> None:
        self._step = _Planner(checked).plan(checked.root)

    def evaluate(self, names: Mapping[str, Value]) -> tuple[Value | CelError, int]:
        """Return the value or error of the expression, and the cost of the evaluation."""
        run = Run(names)
        try:
            return self._step(run), run.cost
        except CelError as error:
            return error, run.cost
        except RecursionError:
            return CelError("max recursion depth exceeded"), run.cost


class _Planner:
    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._locals: list[str] = []

    def plan(self, node: Node) -> Step:
        """Return the function that evaluates a node."""
        if isinstance(node, Literal):
            value = node.value
            return lambda _run: value
        if isinstance(node, Ident):
            return self._ident(node.name)
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
        if isinstance(node, Fold):
            return self._bind(node) if node.bind else self._fold(node)
        raise CelError("expression cannot be evaluated")

    def _ident(self, name: str) -> Step:
        plain = name.removeprefix(".")
        if plain not in self._locals and plain not in self._checked.names:
            named = TypeValue(plain)
            return lambda _run: named

        def step(run: Run) -> Value:
            run.spend(1)
            value = run.names.get(plain, _ABSENT)
            if value is _ABSENT:
                raise CelError(f"no such attribute(s): {plain}")
            if isinstance(value, CelError):
                raise value
            return value

        return step

    def _select(self, node: Select) -> Step:
        name = None if node.test else qualified(node)
        if name is not None and name.partition(".")[0] not in self._locals:
            if name in self._checked.names:
                return self._ident(name)
            if name.partition(".")[0] not in self._checked.names:
                named = TypeValue(name)
                return lambda _run: named
        operand, field = self.plan(node.operand), node.field
        if node.test:
            return lambda run: has(operand(run), field)

        def step(run: Run) -> Value:
            value = operand(run)
            run.spend(1)
            return selected(value, field)

        return step

    def _call(self, node: Call) -> Step:
        special = {
            "_&&_": self._and,
            "_||_": self._or,
            "_?_:_": self._conditional,
            "@not_strictly_false": self._lenient,
        }
        if node.function in special:
            return special[node.function](node)
        if node.function in {"_?._", "_[?_]"}:
            return self._optional(node)
        if node.function in {"or", "orValue"} and node.target is not None:
            return self._or_else(node)
        arguments = [] if node.target is None else [self.plan(node.target)]
        arguments += map(self.plan, node.arguments)
        overloads = self._checked.overloads.get(node, ())
        function = library.implementation(node.function)
        name = node.function

        def step(run: Run) -> Value:
            given = [argument(run) for argument in arguments]
            run.spend(call_cost(name, overloads, given, None))
            try:
                return function(*given)
            except CelError as error:
                if str(error) == operations.NO_OVERLOAD:
                    raise CelError(mismatch(name, given)) from error
                raise

        return step

    def _and(self, node: Call) -> Step:
        first, second = map(self.plan, node.arguments)
        return lambda run: _logical(run, first, second, deciding=False)

    def _or(self, node: Call) -> Step:
        first, second = map(self.plan, node.arguments)
        return lambda run: _logical(run, first, second, deciding=True)

    def _conditional(self, node: Call) -> Step:
        condition, then, otherwise = map(self.plan, node.arguments)

        def step(run: Run) -> Value:
            decided = condition(run)
            if not isinstance(decided, bool):
                raise CelError(operations.NO_OVERLOAD)
            return then(run) if decided else otherwise(run)

        return step

    def _lenient(self, node: Call) -> Step:
        argument = self.plan(node.arguments[0])

        def step(run: Run) -> Value:
            run.spend(1)
            try:
                return argument(run) is not False
            except CostError:
                raise
            except CelError:
                return True

        return step

    def _optional(self, node: Call) -> Step:
        operand, key = map(self.plan, node.arguments)

        def step(run: Run) -> Value:
            value, name = operand(run), key(run)
            run.spend(1)
            if isinstance(value, Optional):
                if not value.present:
                    return NONE
                value = value.value
            return found(value, name)

        return step

    def _or_else(self, node: Call) -> Step:
        target = self.plan(node.target or node.arguments[0])
        other = self.plan(node.arguments[0])
        whole = node.function == "or"

        def step(run: Run) -> Value:
            value = target(run)
            if not isinstance(value, Optional):
                raise CelError(operations.NO_OVERLOAD)
            if value.present:
                return value if whole else value.value
            return other(run)

        return step

    def _list(self, node: ListNode) -> Step:
        elements = [(self.plan(element), index in node.optional) for index, element in enumerate(node.elements)]

        def step(run: Run) -> Value:
            run.spend(LIST_COST)
            result: list[Value] = []
            for element, is_optional in elements:
                value = element(run)
                if not is_optional:
                    result.append(value)
                elif isinstance(value, Optional) and value.present:
                    result.append(value.value)
            return result

        return step

    def _map(self, node: MapNode) -> Step:
        entries = [(self.plan(key), self.plan(value), is_optional) for key, value, is_optional in node.entries]

        def step(run: Run) -> Value:
            run.spend(MAP_COST)
            found: list[tuple[Value, Value]] = []
            for key, value, is_optional in entries:
                name, given = key(run), value(run)
                if not is_optional:
                    found.append((name, given))
                elif isinstance(given, Optional) and given.present:
                    found.append((name, given.value))
            return CelMap(found)

        return step

    def _struct(self, node: StructNode) -> Step:
        fields = [(name, self.plan(value), is_optional) for name, value, is_optional in node.fields]
        made_type = node.name.removeprefix(".")

        def step(run: Run) -> Value:
            run.spend(STRUCT_COST)
            found: list[tuple[Value, Value]] = []
            for name, value, is_optional in fields:
                given = value(run)
                if not is_optional:
                    found.append((name, given))
                elif isinstance(given, Optional) and given.present:
                    found.append((name, given.value))
            return MadeObject(made_type, found)

        return step

    def _bind(self, node: Fold) -> Step:
        value = self.plan(node.start)
        self._locals.append(node.accumulator)
        result = self.plan(node.result)
        self._locals.pop()
        name = node.accumulator

        def step(run: Run) -> Value:
            run.spend(LIST_COST)
            return _within(run, {name: value(run)}, result)

        return step

    def _fold(self, node: Fold) -> Step:
        over, start = self.plan(node.range), self.plan(node.start)
        self._locals += [node.accumulator, *node.names]
        condition, step, result = self.plan(node.condition), self.plan(node.step), self.plan(node.result)
        append = self._appended(node)
        del self._locals[-1 - len(node.names) :]
        names, accumulator = node.names, node.accumulator

        def loop(run: Run) -> Value:
            items = ranged(over(run), pairs=len(names) == 2)
            saved = {name: run.names[name] for name in (accumulator, *names) if name in run.names}
            run.names[accumulator] = start(run)
            try:
                for count, item in enumerate(items):
                    if count % _LOOPS_BETWEEN_CHECKS == 0:
                        run.check_time()
                    run.names.update(zip(names, item, strict=True))
                    if condition(run) is not True:
                        break
                    if append is not None:
                        append(run)
                    else:
                        run.names[accumulator] = _tried(run, step)
                return result(run)
            finally:
                for name in (accumulator, *names):
                    run.names.pop(name, None)
                run.names.update(saved)

        return loop

    def _appended(self, node: Fold) -> Callable[[Run], None] | None:
        """Return a step that appends to the list that a loop builds, instead of copying the list in each turn; None if the loop
        builds no list.
        """
        step, wanted = node.step, None
        if isinstance(step, Call) and step.function == "_?_:_":
            wanted, step = self.plan(step.arguments[0]), step.arguments[1]
        if not (isinstance(node.start, ListNode) and isinstance(step, Call) and step.function == "_+_"):
            return None
        added = step.arguments[1]
        if not isinstance(added, ListNode) or len(added.elements) != 1 or not isinstance(step.arguments[0], Ident):
            return None
        value, accumulator = self.plan(added.elements[0]), node.accumulator

        def append(run: Run) -> None:
            if wanted is not None:
                decided = wanted(run)
                if not isinstance(decided, bool):
                    raise CelError(operations.NO_OVERLOAD)
                if not decided:
                    run.spend(1)
                    return
            run.spend(LIST_COST + 2)
            made = run.names[accumulator]
            if isinstance(made, list):
                made.append(value(run))

        return append


_ABSENT: Final = object()


def _tried(run: Run, step: Step) -> Value:
    """Return the value of a step, or its error as a value, which a later step may ignore."""
    try:
        return step(run)
    except CostError:
        raise
    except CelError as error:
        return error


def _within(run: Run, names: Mapping[str, Value], step: Step) -> Value:
    saved = {name: run.names[name] for name in names if name in run.names}
    run.names.update(names)
    try:
        return step(run)
    finally:
        for name in names:
            run.names.pop(name, None)
        run.names.update(saved)


def _logical(run: Run, first: Step, second: Step, *, deciding: bool) -> Value:
    """Evaluate ``&&`` or ``||``: if the value of one side is ``deciding``, the result is ``deciding``, even if the other side
    causes an error.
    """
    failed: CelError | None = None
    for step in (first, second):
        try:
            value = step(run)
        except CostError:
            raise
        except CelError as error:
            failed = failed or error
            continue
        if value is deciding:
            return deciding
        if not isinstance(value, bool):
            failed = failed or CelError(operations.NO_OVERLOAD)
    if failed is not None:
        raise failed
    return not deciding
