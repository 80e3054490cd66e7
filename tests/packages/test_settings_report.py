"""Everything that is wrong with a value, and what is only worth knowing, in one report."""

from collections.abc import AsyncIterator

import pytest

from wharfinger.formats.json_value import JsonObject, JsonValue
from wharfinger.formats.openapi_schema import Schema, compile_schema
from wharfinger.formats.schema_validations import DECKHOUSE, KUBERNETES
from wharfinger.packages.cel_pool import CelLimits, CelPool, open_cel_pool
from wharfinger.packages.settings_report import MAX_SECRETS, SettingsReport, report_on

PLACE = f"{KUBERNETES}[0]"


@pytest.fixture
async def rules() -> AsyncIterator[CelPool]:
    async with open_cel_pool(None, workers=1, limits=CelLimits(seconds=60)) as pool:
        yield pool


def rule(text: str, message: str = "no", **more: JsonValue) -> JsonObject:
    return {"rule": text, "message": message, **more}


async def reported(
    rules: CelPool, document: JsonObject, value: JsonObject, old: JsonObject | None = None
) -> tuple[list[str], list[str]]:
    report = await report_on(compile_schema(document, what="s"), value, value, old, rules)
    assert report.settings is value
    return [str(problem) for problem in report.problems], [str(warning) for warning in report.warnings]


async def test_problems_of_all_kinds_are_told_together_and_sorted(rules: CelPool) -> None:
    schema: JsonObject = {
        "properties": {
            "b": {"type": "integer", "maximum": 5, KUBERNETES: [rule("self < 3", "is not small")]},
            "a": {"x-deckhouse-immutable": True},
            "c": {"items": {DECKHOUSE: [{"expression": "self != ''", "message": "must not be empty"}]}},
            "z": {"type": "array", "x-kubernetes-list-type": "set", "deprecated": True},
            "y": {"x-deprecated": "use z"},
        },
        KUBERNETES: [rule("self.b < self.d", "b is less than d"), rule("self.b != 9", "nine")],
        "additionalProperties": False,
    }
    value: JsonObject = {"b": 9, "a": 2, "c": ["", "x"], "z": [1, 1], "y": 1, "d": 1}
    assert await reported(rules, schema, value, {"a": 1}) == (
        [
            "b is less than d",
            "nine",
            "a: cannot be changed once it is set",
            "b: is not small",
            "b: must be at most 5, found 9",
            "c[0]: must not be empty",
            "d: is not a known setting; known: b, a, c, z, y",
            "z[1]: is equal to item 0; each may be there once",
        ],
        ["y: is deprecated: use z", "z: is deprecated"],
    )
    assert await reported(rules, schema, {"b": 1, "d": 2, "a": 1}, None) == (
        ["d: is not a known setting; known: b, a, c, z, y"],
        [],
    )


async def test_a_rule_that_cannot_be_evaluated_names_itself_and_the_place(rules: CelPool) -> None:
    schema: JsonObject = {"properties": {"a": {"additionalProperties": {KUBERNETES: [rule("self.nope > 1")]}}}}
    assert await reported(rules, schema, {"a": {"k": {}}}) == (
        [f"a.k: the rule properties.a.additionalProperties.{PLACE} could not be evaluated: no such key: nope"],
        [],
    )


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        # The rule has no answer for the reason that the schema gives already.
        ({"a": {"n": "x"}}, ["a.n: expected an integer, found a string"]),
        ({"a": {}}, ["a.n: is required"]),
        ({"a": "x"}, ["a: expected an object, found a string"]),
        # A rule that has an answer is told.
        ({"a": {"n": 1, "o": 1}}, ["a: no", "a.o: expected a string, found an integer"]),
        # The schema finds fault elsewhere.
        (
            {"a": {"n": 9}, "aa": 1},
            [
                f"a: the rule properties.a.{KUBERNETES}[1] could not be evaluated: no such key: x",
                "aa: expected a string, found an integer",
            ],
        ),
    ],
)
async def test_what_follows_from_another_problem_is_left_out(
    rules: CelPool, value: JsonObject, problems: list[str]
) -> None:
    inner: JsonObject = {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer"}, "o": {"type": "string"}},
        KUBERNETES: [rule("self.n > 5"), rule("self.n < 5 || self.x")],
    }
    assert await reported(rules, {"properties": {"a": inner, "aa": {"type": "string"}}}, value) == (problems, [])


async def test_a_message_that_is_made_never_quotes_a_secret(rules: CelPool) -> None:
    schema: JsonObject = {
        "properties": {
            "key": {"type": "string", "writeOnly": True},
            "list": {"writeOnly": True},
            "auth": {"properties": {"password": {"type": "string"}}},
            "host": {"type": "string"},
        },
        KUBERNETES: [rule("false", "static", messageExpression="self.host + ' is refused: ' + string(self.which)")],
    }
    value: JsonObject = {
        "key": "topsecret",
        "list": [{"x": "hidden"}, 12345, True, None],
        "auth": {"password": "swordfish"},
        "host": "h",
    }
    for which in ("topsecret", "hidden", "12345", "swordfish"):
        assert await reported(rules, schema, {**value, "which": which}) == (["static"], [])
    assert await reported(rules, schema, {**value, "which": "other"}) == (["h is refused: other"], [])
    told: JsonObject = {"properties": {"a": {KUBERNETES: [rule("false", "m", messageExpression="'x' + self")]}}}
    assert await reported(rules, told, {"a": "1", "password": 10**400}) == (["a: x1"], [])
    many: JsonObject = {"list": [f"secret{number}" for number in range(MAX_SECRETS)]}
    assert await reported(rules, schema, {**value, **many, "which": "other"}) == (["static"], [])


async def test_a_message_that_cannot_be_made_is_a_warning(rules: CelPool) -> None:
    schema: JsonObject = {
        "properties": {"a": {KUBERNETES: [rule("self > 5", "too small", messageExpression="self.nope")]}}
    }
    assert await reported(rules, schema, {"a": 1}) == (
        ["a: too small"],
        [f"a: the messageExpression of properties.a.{PLACE} gave no message"],
    )


async def test_a_value_without_a_form_in_json(rules: CelPool) -> None:
    problems, _ = await reported(rules, {KUBERNETES: [rule("true")]}, {"a": "\ud800"})
    assert len(problems) == 1
    assert "surrogate" in problems[0]


async def test_rules_that_cost_too_much_are_a_problem() -> None:
    async with open_cel_pool(None, workers=1, limits=CelLimits(seconds=1)) as pool:
        schema: JsonObject = {KUBERNETES: [rule("self.l.map(x, x + 1).size() > 0")] * 500}
        (problem,), warnings = await reported(pool, schema, {"l": list(range(2_000))})
        assert problem.startswith(f"the rule {KUBERNETES}[")
        assert problem.endswith("could not be evaluated within 1 s, all rules together; make them cheaper")
        assert warnings == []


async def test_no_rules_no_worker(rules: CelPool) -> None:
    schema: Schema = compile_schema({"properties": {"a": {"type": "integer"}}}, what="s")
    assert await report_on(schema, {"a": 1}, {"a": 1}, None, rules) == SettingsReport((), (), {"a": 1})
    assert rules.statistics().requests == 0
