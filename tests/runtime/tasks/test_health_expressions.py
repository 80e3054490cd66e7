"""Health rules of packages (CEL expressions), evaluated in the real CEL workers."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from wharfinger.cluster.health.rules import HealthRule, judged
from wharfinger.cluster.watch.readiness import Current, Failed, InProgress
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.runtime.resources.release_policy import ReleasePolicyError
from wharfinger.runtime.status.failures import classify
from wharfinger.runtime.tasks.health_expressions import HealthExpressionError, HealthExpressions, check_health_rules

RULE = HealthRule(
    "example.com/v1",
    "Backup",
    "status.phase == 'Done' && status.copies >= spec.copies",
    in_progress="status.phase in ['Running', 'Queued']",
    failed="has(status.error)",
)


@pytest.fixture
async def expressions() -> AsyncIterator[HealthExpressions]:
    async with open_cel_pool(None) as pool:
        yield HealthExpressions(pool)


def backup(**status: str | int) -> JsonObject:
    return {
        "apiVersion": "example.com/v1",
        "kind": "Backup",
        "metadata": {"name": "nightly", "namespace": "prod"},
        "spec": {"copies": 2},
        "status": {**status},
    }


async def test_the_first_true_expression_decides(expressions: HealthExpressions) -> None:
    assert await judged(RULE, backup(phase="Done", copies=2), expressions) == Current()
    assert isinstance(await judged(RULE, backup(phase="Done", copies=1), expressions), InProgress)
    assert isinstance(await judged(RULE, backup(phase="Running", error="x"), expressions), InProgress)
    assert isinstance(await judged(RULE, backup(phase="Broken", error="disk full"), expressions), Failed)
    assert isinstance(await judged(RULE, backup(), expressions), InProgress)


@pytest.mark.parametrize("expression", ["self.status.phase", "self.", "1 +", "", "self.nothing.at.all", "'text'"])
async def test_an_expression_without_a_result_is_an_error(expressions: HealthExpressions, expression: str) -> None:
    with pytest.raises(HealthExpressionError) as caught:
        await expressions.evaluate(expression, backup())
    assert str(caught.value)
    assert not caught.value.transient


async def test_a_hostile_expression_is_ended(expressions: HealthExpressions) -> None:
    numbers = "[0,1,2,3,4,5,6,7,8,9]"
    nested = "true"
    for depth in range(9):
        nested = f"{numbers}.all(x{depth}, {nested})"
    with pytest.raises(HealthExpressionError):
        await expressions.evaluate(nested, backup())


async def test_an_invalid_expression_is_refused_with_its_field() -> None:
    async with open_cel_pool(None) as pool:
        await check_health_rules([RULE], pool)
        broken = replace(RULE, current="status.phase ==")
        with pytest.raises(ReleasePolicyError, match=r"spec\.healthChecks of Backup: current: ") as caught:
            await check_health_rules([RULE, broken], pool)
        assert classify(caught.value).reason == "SpecInvalid"
