"""Running the expressions of a policy under their budget (``apiserver/pkg/admission/plugin/cel``).

Variables are evaluated where they are asked for, once for each group of expressions; what they cost is paid out of the
same budget.
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
"""What the expressions of a policy may cost for one binding and parameter."""
CONDITIONS_BUDGET: Final = 2_500_000
"""What its match conditions may."""
_SPENT: Final = "validation failed due to running out of cost budget, no further validation rules will be run"


class OutOfBudgetError(Exception):
    """The expressions cost more than they may."""

    def __init__(self) -> None:
        super().__init__(_SPENT)


@dataclass(frozen=True, slots=True)
class Step:
    """An expression that can be evaluated, or why it cannot."""

    text: str
    program: Program | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an expression gave, or the error it ended with."""

    value: Value = None
    error: str = ""


def step_of(text: str, environment: Environment, *wanted: Type) -> Step:
    """Compile an expression that is to give one of these types (none given: any)."""
    found = compiled(text, environment)
    if problem := refusal(found, *wanted):
        return Step(text, problem=problem)
    try:
        return Step(text, None if found.checked is None else Program(found.checked))
    except (CelError, RecursionError) as error:
        return Step(text, problem=f"program instantiation failed: {error}")


class Variables(CelMap):
    """The variables of a policy, evaluated where they are asked for."""

    __slots__ = ("_known", "_names", "_steps", "spent")

    def __init__(self, steps: Mapping[str, Step], names: Mapping[str, Value]) -> None:
        super().__init__()
        self._steps = steps
        self._names = {**names, VARIABLES: self}
        self._known: dict[str, Outcome] = {}
        self.spent = 0
        """What they cost since somebody looked."""

    @property
    def names(self) -> Mapping[str, Value]:
        """All that expressions know, these included."""
        return self._names

    def __len__(self) -> int:
        return len(self._steps)

    def keys(self) -> Iterator[Value]:
        """Their names."""
        return iter(self._steps)

    def find(self, key: Value) -> tuple[bool, Value]:
        """Whether there is one, and its value. Raises CelError."""
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
    """What each expression gives (None: there is none), and what is left. Raises OutOfBudgetError."""
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
