"""The compilation of the CEL rules in a schema."""

import pytest

from wharfinger.control_plane.cel.compiling import MAX_CHARS
from wharfinger.control_plane.cel.schema_rules import Scope
from wharfinger.control_plane.cel.values.types import BOOL
from wharfinger.formats.json.value import JsonObject

SCHEMA: JsonObject = {"type": "object", "properties": {"a": {"type": "integer"}}}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("self.a > 1", ""),
        ("self.a", "cel expression must evaluate to a bool"),
        ("self.b > 1", "compilation failed: ERROR: <input>:1:5: undefined field 'b'"),
        ("self.a >", "compilation failed: ERROR: <input>:1:9: Syntax error"),
        ("self" + ".a" * 5000, "compilation failed: ERROR: <input>:1:1: expression is nested too deep"),
        ("1" * (MAX_CHARS + 1), "compilation failed: ERROR: <input>:-1:0: expression code point size exceeds limit"),
    ],
)
def test_invalid_rules_are_reported(text: str, problem: str) -> None:
    compiled = Scope(SCHEMA, root=False).compiled(text, BOOL, optional_old=False)
    assert compiled.problem.startswith(problem)
    assert (compiled.program is None) is bool(problem)


def test_rules_may_use_old_self() -> None:
    scope = Scope(SCHEMA, root=True)
    assert scope.compiled("self.a == oldSelf.a", BOOL, optional_old=False).uses_old
    assert not scope.compiled("oldSelf.hasValue()", BOOL, optional_old=True).problem
    assert (
        Scope({"x-kubernetes-preserve-unknown-fields": True}, root=False)
        .compiled("true", BOOL, optional_old=False)
        .problem
    )
