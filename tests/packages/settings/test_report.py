"""The report about settings, which has all problems and warnings together."""

from collections.abc import AsyncIterator

import pytest

from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.schemas.openapi_schema import Schema, compile_schema
from wharfinger.formats.schemas.validations import DECKHOUSE, KUBERNETES
from wharfinger.packages.settings import report as settings_report
from wharfinger.packages.settings.cel_pool import CelLimits, CelPool, open_cel_pool
from wharfinger.packages.settings.report import SettingsReport, report_on

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


async def test_problems_of_all_kinds_are_reported_together_and_sorted(rules: CelPool) -> None:
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
            "z[1]: is equal to item 0; each may occur only once",
        ],
        ["y: is deprecated: use z", "z: is deprecated"],
    )
    assert await reported(rules, schema, {"b": 1, "d": 2, "a": 1}, None) == (
        ["d: is not a known setting; known: b, a, c, z, y"],
        [],
    )


async def test_a_rule_that_cannot_be_evaluated_is_reported_with_its_place(rules: CelPool) -> None:
    schema: JsonObject = {"properties": {"a": {"additionalProperties": {KUBERNETES: [rule("self.nope > 1")]}}}}
    assert await reported(rules, schema, {"a": {"k": {}}}) == (
        [f"a.k: the rule properties.a.additionalProperties.{PLACE} could not be evaluated: no such key: nope"],
        [],
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("value", "problems"),
    [
        # The rule cannot be evaluated, but the schema already reports the cause.
        ({"a": {"n": "x"}}, ["a.n: expected an integer, found a string"]),
        ({"a": {}}, ["a.n: is required"]),
        ({"a": "x"}, ["a: expected an object, found a string"]),
        # A rule that can be evaluated is reported although the schema reports a problem as well.
        ({"a": {"n": 1, "o": 1}}, ["a: no", "a.o: expected a string, found an integer"]),
        # The problem that the schema reports is in another field.
        (
            {"a": {"n": 9}, "aa": 1},
            [
                f"a: the rule properties.a.{KUBERNETES}[1] could not be evaluated: no such key: x",
                "aa: expected a string, found an integer",
            ],
        ),
    ],
)
async def test_problems_that_follow_from_others_are_omitted(
    rules: CelPool, value: JsonObject, problems: list[str]
) -> None:
    inner: JsonObject = {
        "type": "object",
        "required": ["n"],
        "properties": {"n": {"type": "integer"}, "o": {"type": "string"}},
        KUBERNETES: [rule("self.n > 5"), rule("self.n < 5 || self.x")],
    }
    assert await reported(rules, {"properties": {"a": inner, "aa": {"type": "string"}}}, value) == (problems, [])


SECRET: JsonObject = {"type": "string", "writeOnly": True}
MADE = "'made: ' + self.host"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "told",
    [
        "self.key",
        "self.key.substring(0, 8)",
        "self.key.upperAscii()",
        "base64.encode(bytes(self.key))",
        "string(self.key.size())",
        "'was ' + oldSelf.key",
        "oldSelf.key.substring(1)",
    ],
)
async def test_computed_messages_that_contain_secrets_are_not_used(rules: CelPool, told: str) -> None:
    """A rule computes its message from a secret, or from the old value of a secret. Such a message is not used."""
    schema: JsonObject = {
        "properties": {"key": SECRET, "host": {"type": "string"}},
        KUBERNETES: [rule("self == oldSelf", "static", messageExpression=told)],
    }
    value: JsonObject = {"key": "topsecret", "host": "h"}
    assert await reported(rules, schema, value, {"key": "othersecret", "host": "h"}) == (["static"], [])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("value", "old", "said"),
    [
        ({}, {}, "made: h"),
        ({"key": "x"}, {}, "static"),
        ({}, {"key": "x"}, "static"),
        ({"list": [{"x": 1}]}, {}, "static"),
        ({"list": [False]}, {}, "static"),
        ({"auth": {"password": "x"}}, {}, "static"),
        ({}, {"deep": [[{"apiToken": 1}]]}, "static"),
        # Empty values and booleans do not count as secrets.
        (
            {"key": "", "list": [], "password": None},
            {"auth": {}, "resetPassword": True, "deep": [{"token": ""}]},
            "made: h",
        ),
    ],
)
async def test_rules_that_can_read_secrets_report_their_static_message(
    rules: CelPool, value: JsonObject, old: JsonObject, said: str
) -> None:
    schema: JsonObject = {
        "properties": {"key": SECRET, "list": {"writeOnly": True}, "auth": {"type": "object"}, "host": {}},
        KUBERNETES: [rule("self.host == 'x'", "static", messageExpression=MADE)],
    }
    assert await reported(rules, schema, {"host": "h", **value}, {"host": "h", **old}) == ([said], [])


async def test_rules_without_access_to_secrets_may_compute_their_message(rules: CelPool) -> None:
    made = rule("false", "static", messageExpression=MADE, fieldPath=".host")
    users: JsonObject = {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["host"],
        "items": {"properties": {"host": {}}, KUBERNETES: [made]},
    }
    document: JsonObject = {
        "properties": {
            "plain": {"properties": {"host": {}}, KUBERNETES: [made]},
            "auth": {"properties": {"host": {}}, KUBERNETES: [made]},
            "key": {
                "writeOnly": True,
                "properties": {"host": {KUBERNETES: [rule("false", "s", messageExpression="self")]}},
            },
            "users": users,
        }
    }
    value: JsonObject = {
        "plain": {"host": "h"},
        "auth": {"host": "h"},
        "key": {"host": "h"},
        "users": [{"host": "h"}, {"host": "i"}],
    }
    plain = ["auth.host: static", "key.host: s", "plain.host: made: h"]
    shown = [*plain, "users[0].host: made: h", "users[1].host: made: i"]
    assert await reported(rules, document, value, value) == (shown, [])
    # The previous item may have been at another place in the list.
    old: JsonObject = {"users": [{"host": "other"}, {"host": "g"}, {"host": "h", "password": "x"}]}
    hidden = [*plain, "users[0].host: static", "users[1].host: static"]
    assert await reported(rules, document, value, old) == (hidden, [])


async def test_secrets_in_all_items_and_in_both_values_are_considered(rules: CelPool) -> None:
    made = rule("false", "static", messageExpression=MADE)
    inner: JsonObject = {"properties": {"b": {"properties": {"host": {}}, KUBERNETES: [made]}}}
    seen: JsonObject = {"b": {"host": "h"}}
    beside: JsonObject = {**seen, "token": "x"}
    within: JsonObject = {"b": {"host": "h", "token": "x"}}
    document: JsonObject = {"properties": {"a": inner}}
    assert await reported(rules, document, {"a": beside}, {"a": beside}) == (["a.b: made: h"], [])
    assert await reported(rules, document, {"a": beside}, {"a": within}) == (["a.b: static"], [])
    items: JsonObject = {"properties": {"l": {"items": inner}}}
    assert await reported(rules, items, {"l": [beside, seen]}) == (["l[0].b: made: h", "l[1].b: made: h"], [])
    assert await reported(rules, items, {"l": [beside, within]}) == (["l[0].b: static", "l[1].b: static"], [])


async def test_too_many_secrets_disable_all_computed_messages(rules: CelPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings_report, "MAX_SECRETS", 2)
    schema: JsonObject = {
        "properties": {
            "keys": {"additionalProperties": SECRET},
            "plain": {"properties": {"host": {}}, KUBERNETES: [rule("false", "static", messageExpression=MADE)]},
        }
    }
    few: JsonObject = {"keys": {"a": "1", "b": "2"}, "plain": {"host": "h"}}
    assert await reported(rules, schema, few) == (["plain: made: h"], [])
    many: JsonObject = {"keys": {"a": "1", "b": "2", "c": "3"}, "plain": {"host": "h"}}
    assert await reported(rules, schema, many) == (["plain: static"], [])


async def test_texts_of_a_schema_are_made_printable(rules: CelPool) -> None:
    schema: JsonObject = {
        "properties": {"a": {"x-deprecated": "use\x1b[2J b"}},
        KUBERNETES: [rule("false", messageExpression="'\\u0000\\u001b[31m' + 'red\\u202e'")],
        DECKHOUSE: [{"expression": "false", "message": "two\nlines\x07"}],
    }
    problems, warnings = await reported(rules, schema, {"a": 1})
    assert problems == ["  [31mred ", "two lines "]
    assert len(warnings) == 1
    assert all(text.isprintable() for text in (*problems, *warnings))


async def test_a_message_that_cannot_be_computed_is_a_warning(rules: CelPool) -> None:
    schema: JsonObject = {
        "properties": {"a": {KUBERNETES: [rule("self > 5", "too small", messageExpression="self.nope")]}}
    }
    assert await reported(rules, schema, {"a": 1}) == (
        ["a: too small"],
        [f"a: the messageExpression of properties.a.{PLACE} gave no message"],
    )


async def test_a_value_that_cannot_be_encoded_as_json_is_a_problem(rules: CelPool) -> None:
    problems, _ = await reported(rules, {KUBERNETES: [rule("true")]}, {"a": "\ud800"})
    assert len(problems) == 1
    assert "surrogate" in problems[0]


@pytest.mark.slow
async def test_rules_that_exceed_the_cpu_limit_are_a_problem() -> None:
    async with open_cel_pool(None, workers=1, limits=CelLimits(cpu_seconds=1, seconds=60)) as pool:
        schema: JsonObject = {KUBERNETES: [rule("self.l.map(x, x + 1).size() > 0")] * 500}
        (problem,), warnings = await reported(pool, schema, {"l": list(range(2_000))})
        assert problem.startswith(f"the rule {KUBERNETES}[")
        assert problem.endswith("could not be evaluated within 1 s of CPU time, all rules together; make them cheaper")
        assert warnings == []


async def test_a_schema_without_rules_needs_no_worker(rules: CelPool) -> None:
    schema: Schema = compile_schema({"properties": {"a": {"type": "integer"}}}, what="s")
    assert await report_on(schema, {"a": 1}, {"a": 1}, None, rules) == SettingsReport((), (), {"a": 1})
    assert rules.statistics().requests == 0
