"""Helpers that evaluate CEL expressions for tests."""

from wharfinger.control_plane.cel.checking.checker import check
from wharfinger.control_plane.cel.costs.estimate import estimate
from wharfinger.control_plane.cel.evaluation import Program
from wharfinger.control_plane.cel.syntax.parser import parse
from wharfinger.control_plane.cel.values.schema_types import Declared
from wharfinger.control_plane.cel.values.types import DYN, Type
from wharfinger.control_plane.cel.values.values import CelError, Value


def value_of(text: str, **names: Value) -> Value:
    """Return the result of a CEL expression, or the text of its error."""
    checked = check(parse(text).root, dict.fromkeys(names, DYN), {})
    assert checked.issues == []
    result, _ = Program(checked).evaluate(names)
    return str(result) if isinstance(result, CelError) else result


def cost_of(text: str) -> int:
    """Return the estimated cost of a CEL expression without variables."""
    return estimate(check(parse(text).root, {}, {}), Declared(DYN, 1))


def type_of(text: str) -> Type:
    """Return the type of a CEL expression without variables."""
    return check(parse(text).root, {}, {}).result
