"""Health rules: their format, and their results with the real evaluator."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.scale import scaled
from wharfinger.cluster.health.rules import (
    MAX_EXPRESSION,
    MAX_RULES,
    HealthRule,
    HealthRuleError,
    bound,
    judged,
    read_health_rules,
    rule_for,
)
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress, Readiness
from wharfinger.formats.cel.engine import CelError, compile_expression
from wharfinger.formats.errors import FormatError, ProgramError
from wharfinger.formats.json.value import JsonObject, JsonValue

RULE = HealthRule(
    "example.test/v1",
    "Backup",
    "status.phase == 'Done'",
    in_progress="status.phase == 'Running'",
    failed="has(status.error) || metadata.name == 'bad'",
)
WRITTEN: JsonObject = {
    "apiVersion": "example.test/v1",
    "kind": "Backup",
    "current": " status.phase == 'Done'\n",
    "inProgress": "status.phase == 'Running'",
    "failed": "has(status.error) || metadata.name == 'bad'",
}


class CelHere:
    """A CEL evaluator that runs in this process and raises the same errors as the pool of worker processes."""

    def __init__(self) -> None:
        self.transient = False

    async def evaluate(self, expression: str, obj: JsonObject) -> bool:
        try:
            if self.transient:
                raise PassingProgramError
            return compile_expression(expression, self_type="", result="bool").evaluate(obj, None) is True
        except CelError as error:
            raise ProgramError(str(error)) from error


class PassingProgramError(ProgramError):
    transient = True


def backup(name: str = "a", **status: JsonValue) -> JsonObject:
    return {
        "apiVersion": "example.test/v1",
        "kind": "Backup",
        "metadata": {"name": name, "generation": 2},
        **({"status": {**status}} if status else {}),
    }


def test_rules_in_the_format_of_flux_are_read() -> None:
    assert read_health_rules([WRITTEN], "spec.health") == (RULE,)
    short: JsonObject = {"apiVersion": "v1", "kind": "A", "current": "true"}
    assert read_health_rules([short], "x") == (HealthRule("v1", "A", "true"),)
    assert read_health_rules(None, "x") == read_health_rules([], "x") == ()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({}, "x: expected a list of rules, found an object"),
        ([5], r"x\[0\]: expected an object"),
        (
            [{**WRITTEN, "degraded": "true"}],
            r"x\[0\]: expected one of apiVersion, current, failed, inProgress, kind, found 'degraded'",
        ),
        ([{**WRITTEN, "kind": ""}], r"x\[0\].kind: required"),
        ([{**WRITTEN, "current": "  "}], r"x\[0\].current: required"),
        ([{**WRITTEN, "failed": 5}], "failed: expected a string"),
        ([{**WRITTEN, "failed": "a" * (MAX_EXPRESSION + 1)}], r"x\[0\].failed: over the limit"),
        ([WRITTEN, WRITTEN], r"x\[1\]: found two rules for Backup of example.test/v1"),
        ([WRITTEN] * (MAX_RULES + 1), "over the limit of 100"),
    ],
)
def test_invalid_rules_are_refused(value: JsonValue, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read_health_rules(value, "x")


def test_a_rule_applies_to_one_kind_of_one_version() -> None:
    assert rule_for([RULE], "example.test/v1", "Backup") is RULE
    assert rule_for([RULE], "example.test/v2", "Backup") is None
    assert rule_for([RULE], "example.test/v1", "Restore") is None


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        (backup(phase="Done"), Current()),
        (backup(phase="Running"), InProgress("in progress according to its health rule")),
        (backup(phase="Running", error="x"), InProgress("in progress according to its health rule")),
        (backup(phase="Done", error="x"), Failed("failed according to its health rule")),
        (backup("bad"), Failed("failed according to its health rule")),
        (backup(phase="Waiting"), InProgress("not ready according to its health rule")),
        (backup(), InProgress("its health rule cannot be evaluated: no such key: phase")),
        (backup(phase="Done", observedGeneration=1), InProgress("generation 2 is not observed yet")),
        (backup(phase="Done", observedGeneration=2), Current()),
    ],
)
async def test_a_rule_determines_the_state_of_an_object(obj: JsonObject, expected: Readiness) -> None:
    assert await judged(RULE, obj, CelHere()) == expected


async def test_deletion_takes_precedence_over_any_rule() -> None:
    obj = backup(phase="Done")
    obj["metadata"] = {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}
    assert await judged(RULE, obj, CelHere()) == InProgress("being deleted")


async def test_the_message_of_the_ready_condition_is_used() -> None:
    ready: JsonValue = [{"type": "Ready", "status": "False", "reason": "NoSpace", "message": "the disk is full"}]
    assert await judged(RULE, backup(phase="Waiting", conditions=ready), CelHere()) == InProgress(
        "NoSpace: the disk is full"
    )
    assert await judged(RULE, backup(error="x", conditions=ready), CelHere()) == Failed("NoSpace: the disk is full")


@pytest.mark.parametrize("rule", [RULE, HealthRule("v1", "A", "true"), HealthRule("v1", "A", "true", failed="true")])
async def test_an_error_unrelated_to_the_rule_is_raised(rule: HealthRule) -> None:
    expressions = CelHere()
    expressions.transient = True
    with pytest.raises(ProgramError):
        await judged(rule, backup(phase="Done"), expressions)


async def test_an_object_with_an_invalid_rule_is_never_current() -> None:
    state = await judged(HealthRule("v1", "A", "status.("), backup(phase="Done"), CelHere())
    assert isinstance(state, InProgress)
    assert "its health rule cannot be evaluated" in state.message


@pytest.mark.parametrize("name", ["metadata", "spec", "status"])
async def test_missing_parts_of_an_object_are_empty(name: str) -> None:
    assert await CelHere().evaluate(bound(f"!has({name}.a)"), {})
    assert await CelHere().evaluate(bound(f"{name}.a == 1 && self.{name}.a == 1"), {name: {"a": 1}})


@settings(max_examples=scaled(5_000, 150), deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=4)
            | st.dictionaries(st.sampled_from(["apiVersion", "kind", "current", "failed", "inProgress", "x"]), inner)
        ),
        max_leaves=12,
    )
)
def test_malformed_rules_raise_only_the_declared_error(value: JsonValue) -> None:
    try:
        rules = read_health_rules(value, "x")
    except FormatError as error:
        assert isinstance(error, HealthRuleError) or str(error)
    else:
        assert all(rule.current for rule in rules)
