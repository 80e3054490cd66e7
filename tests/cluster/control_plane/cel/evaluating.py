"""Expressions for tests."""

from wharfinger.cluster.control_plane.cel.checker import check
from wharfinger.cluster.control_plane.cel.costs import estimate
from wharfinger.cluster.control_plane.cel.parser import parse
from wharfinger.cluster.control_plane.cel.runtime import Program
from wharfinger.cluster.control_plane.cel.schema_types import Declared
from wharfinger.cluster.control_plane.cel.types import DYN, Type
from wharfinger.cluster.control_plane.cel.values import CelError, Value


def value_of(text: str, **names: Value) -> Value:
    """What an expression gives, or the text of its error."""
    checked = check(parse(text).root, dict.fromkeys(names, DYN), {})
    assert checked.issues == []
    result, _ = Program(checked).evaluate(names)
    return str(result) if isinstance(result, CelError) else result


def cost_of(text: str) -> int:
    """The estimate of an expression without variables."""
    return estimate(check(parse(text).root, {}, {}), Declared(DYN, 1))


def type_of(text: str) -> Type:
    """The type of an expression without variables."""
    return check(parse(text).root, {}, {}).result
