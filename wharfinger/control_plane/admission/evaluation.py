"""The evaluation of a policy's expressions under their budget (``apiserver/pkg/admission/plugin/cel``).

A variable is evaluated when it is first used, at most once in each call of :func:`evaluated`. Its cost is charged to the
budget of that call.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from wharfinger.control_plane.api.admissionregistration.expression_environment import (
    VARIABLES,
    Environment,
    compiled,
    refusal,
)
from wharfinger.control_plane.cel.evaluation import Program
from wharfinger.control_plane.cel.values.types import Type
from wharfinger.control_plane.cel.values.values import CelError, CelMap, Value
from wharfinger.control_plane.wire.field_errors import quoted

BUDGET: Final = 10_000_000
"""The cost limit of a policy's validations with their messages, of its audit annotations, and of each of its mutations. It
applies separately to each binding and parameter.
"""
CONDITIONS_BUDGET: Final = 2_500_000
"""The cost limit of the match conditions of a policy or a webhook."""
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudgetError(Exception):
    """The expressions exceeded their cost budget."""

    def __init__(self) -> None:
        super().__init__(_SPENT)


@dataclass(frozen=True, slots=True)
class Step:
    """A compiled expression, or the reason why it cannot be compiled."""

    text: str
    program: Program | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an evaluation: the value of the expression, or the error with which the evaluation ended."""

    value: Value = None
    error: str = ""


def step_of(text: str, environment: Environment, *wanted: Type) -> Step:
    """Compile an expression whose type must be one of ``wanted``; without ``wanted``, any type is allowed."""
    found = compiled(text, environment)
    if problem := refusal(found, *wanted):
        return Step(text, problem=problem)
    try:
        return Step(text, None if found.checked is None else Program(found.checked))
    except (CelError, RecursionError) as error:
        return Step(text, problem=f"program instantiation failed: {error}")


class Variables(CelMap):
    """The variables of a policy; each is evaluated when it is first used."""

    __slots__ = ("_known", "_names", "_steps", "spent")

    def __init__(self, steps: Mapping[str, Step], names: Mapping[str, Value]) -> None:
        super().__init__()
        self._steps = steps
        self._names = {**names, VARIABLES: self}
        self._known: dict[str, Outcome] = {}
        self.spent = 0
        """The cost of the variables that were evaluated since the last charge to the budget."""

    @property
    def names(self) -> Mapping[str, Value]:
        """All names that expressions can use, including ``variables``."""
        return self._names

    def __len__(self) -> int:
        return len(self._steps)

    def keys(self) -> Iterator[Value]:
        """Return the names of the variables."""
        return iter(self._steps)

    def find(self, key: Value) -> tuple[bool, Value]:
        """Return whether the variable exists, and its value. Raises CelError."""
        if not isinstance(key, str) or key not in self._steps:
            return False, None
        if key not in self._known:
            self._known[key] = self._evaluated(key)
        outcome = self._known[key]
        if outcome.error:
            raise CelError(outcome.error)
        return True, outcome.value

    def _evaluated(self, name: str) -> Outcome:
        step = self._steps[name]
        if step.program is None:
            return Outcome(error=f"composited variable {quoted(name)} fails to compile: {step.problem}")
        value, cost = step.program.evaluate(self._names)
        self.spent += cost
        if isinstance(value, CelError):
            return Outcome(error=f"composited variable {quoted(name)} fails to evaluate: {value}")
        return Outcome(value)


def evaluated(
    steps: Sequence[Step | None], variables: Mapping[str, Step], names: Mapping[str, Value], budget: int
) -> tuple[list[Outcome | None], int]:
    """Return the result of each expression (None if there is no expression), and the rest of the budget.

    Raises OutOfBudgetError.
    """
    composed = Variables(variables, names)
    found: list[Outcome | None] = []
    for step in steps:
        if step is None:
            found.append(None)
            continue
        if step.program is None:
            found.append(Outcome(error=f"compilation error: {step.problem}"))
            continue
        value, cost = step.program.evaluate(composed.names)
        budget -= composed.spent + cost
        composed.spent = 0
        if budget < 0:
            raise OutOfBudgetError
        failed = isinstance(value, CelError)
        found.append(
            Outcome(error=f"expression '{step.text}' resulted in error: {value}") if failed else Outcome(value)
        )
    return found, budget
