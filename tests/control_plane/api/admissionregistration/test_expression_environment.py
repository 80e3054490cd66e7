import pytest

from wharfinger.control_plane.api.admissionregistration.expression_environment import (
    CONDITION,
    PATCHES,
    Environment,
    compiled,
    kept_type,
    refusal,
)
from wharfinger.control_plane.cel.values.types import (
    BOOL,
    DYN,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    listed,
    mapped,
    read_type,
)


@pytest.mark.parametrize(
    ("text", "environment", "wanted", "said"),
    [
        ("object.a == request.name", Environment(), CONDITION, ""),
        ("params.a", Environment(), CONDITION, "undeclared reference to 'params'"),
        ("params.a", Environment(params=True), CONDITION, "must evaluate to bool but got dyn"),
        ("authorizer.path('/')", Environment(authorizer=False), CONDITION, "undeclared reference to 'authorizer'"),
        ("variables.a", Environment(variables=(("a", BOOL),)), CONDITION, ""),
        ("variables.b", Environment(variables=(("a", BOOL),)), CONDITION, "undefined field 'b'"),
        ("[1]", Environment(), (STRING, NULL), "must evaluate to one of [string null_type] but got list(int)"),
        ("duration('1h')", Environment(), (STRING,), "must evaluate to string but got google.protobuf.Duration"),
        ("[JSONPatch{op: 'add', path: '/a', value: object}]", Environment(patches=True), (PATCHES,), ""),
        ("1", Environment(), (), ""),
    ],
)  # fmt: skip
def test_expressions_compile_against_their_environment(
    text: str, environment: Environment, wanted: tuple[Type, ...], said: str
) -> None:
    found = refusal(compiled(text, environment), *wanted)

    assert said in found
    assert bool(said) == bool(found)


def test_variables_of_api_types_become_dynamic() -> None:
    kinds = [STRING, TIMESTAMP, listed(STRING), mapped(STRING, read_type("kubernetes.UserInfo")), read_type("net.IP")]

    assert [kept_type(kind) for kind in kinds] == [STRING, TIMESTAMP, listed(STRING), mapped(STRING, DYN), DYN]
