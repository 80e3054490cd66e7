"""The whole check of settings: conversion, schema with rules, and the resulting values."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.packages.support.real_jq import RealJq
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.errors import ConversionError
from wharfinger.packages.settings.cel_pool import open_cel_pool
from wharfinger.packages.settings.check import SettingsChecker

RENAME = ".replicas = .count | del(.count)"
FILES = {
    "package.yaml": "{}",
    "values.yaml": "{size: small}",
    "openapi/settings.yaml": """
x-config-version: 2
type: object
required: [replicas]
properties:
  replicas: {type: integer, minimum: 1}
  host: {type: string, default: localhost}
  class: {type: string, x-deckhouse-immutable: true}
  old: {type: string, deprecated: true}
x-deckhouse-validations:
  - {expression: "self.replicas < 10 || self.host != 'localhost'", message: many replicas need a host}
""",
    "openapi/values.yaml": """
x-extend: {schema: settings.yaml}
type: object
properties: {size: {type: string, enum: [small, big]}, most: {type: integer}}
x-deckhouse-validations:
  - {expression: "!has(self.most) || self.replicas <= self.most", message: more than most}
""",
    "openapi/conversions/v2.yaml": f"version: 2\nconversions: [{RENAME}]\n",
}


@pytest.fixture
def definition(tmp_path: Path) -> Definition:
    return read_definition(write(tmp_path / "web", FILES), name="web", version="1.0.0")


@asynccontextmanager
async def checker(jq: RealJq | None = None) -> AsyncIterator[SettingsChecker]:
    async with open_cel_pool(None, workers=1) as rules:
        yield SettingsChecker(jq or RealJq(), rules)


def texts(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem) for problem in problems]


async def test_valid_settings_pass_the_check(definition: Definition) -> None:
    async with checker() as one:
        found = await one.check(definition, {"replicas": 2})
        assert (found.problems, found.warnings, found.settings) == ((), (), {"replicas": 2, "host": "localhost"})
        assert (await one.check(definition, {"count": 2}, 1)).settings == found.settings
        warned = await one.check(definition, {"replicas": 2, "old": "x"})
        assert warned.problems == ()
        assert [warning.path for warning in warned.warnings] == ["old"], "one warning for settings and values"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("settings", "version", "says"),
    [
        ({"replicas": 0}, 0, ["replicas: "]),
        ({"replicas": 10}, 0, ["many replicas need a host"]),
        ({"count": 2}, 0, ["", "replicas: "]),
        ({"count": 0}, 1, ["replicas: "]),
        ({"replicas": 1}, 3, ["spec.settingsVersion: 3 is not a version"]),
        ({"replicas": 1, "most": 0}, 0, [""]),
    ],
)
async def test_problems_of_invalid_settings_are_returned(
    definition: Definition, settings: JsonObject, version: int, says: list[str]
) -> None:
    async with checker() as one:
        found = await one.check(definition, settings, version)
    assert len(found.problems) == len(says), found
    for problem, text in zip(sorted(texts(found.problems)), sorted(says), strict=True):
        assert text in problem


async def test_all_problems_and_warnings_are_returned_together(definition: Definition) -> None:
    async with checker() as one:
        found = await one.check(definition, {"replicas": 11, "typo": 1, "old": "x"})
    assert len(found.problems) == 2
    assert [warning.path for warning in found.warnings] == ["old"]


async def test_values_are_checked_only_if_the_settings_are_valid(definition: Definition) -> None:
    wrong = replace(definition, static_values={"size": "middle", "most": 1})
    async with checker() as one:
        found = await one.check(wrong, {"replicas": 2})
        assert len(found.problems) == 2
        assert all(each.message.endswith("(in the values)") for each in found.problems)
        assert len((await one.check(wrong, {"replicas": 0})).problems) == 1
        huge = replace(definition, static_values={"size": "x" * (5 * 1024 * 1024)})
        assert "over the limit" in str((await one.check(huge, {"replicas": 2})).problems[0])


async def test_transition_rules_compare_with_the_previous_settings(definition: Definition) -> None:
    async with checker() as one:
        first = await one.check(definition, {"replicas": 1, "class": "a"}, old=None)
        same = await one.check(definition, {"replicas": 1, "class": "a"}, old={"replicas": 9, "class": "a"})
        other = await one.check(definition, {"replicas": 1, "class": "b"}, old={"replicas": 9, "class": "a"})
    assert first.problems == same.problems == ()
    assert [problem.path for problem in other.problems] == ["class"]


async def test_a_dead_worker_raises_a_transient_error(definition: Definition) -> None:
    async with checker(RealJq(dying={RENAME})) as one:
        with pytest.raises(ConversionError, match="its worker died") as caught:
            await one.check(definition, {"count": 2}, 1)
    assert caught.value.transient
