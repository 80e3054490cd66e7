"""Settings and values of packages, checked by the validation rules of their schemas."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.settings.cel_pool import CelLimits, CelPool, open_cel_pool
from wharfinger.packages.settings.values import (
    MAX_SHOWN,
    check_package_rules,
    check_settings,
    check_values_rules,
    effective_settings,
)

SETTINGS = """
type: object
x-kubernetes-validations:
- {rule: "self.min <= self.max", messageExpression: "'min is ' + string(self.min) + ', max only ' + string(self.max)"}
properties:
  min: {type: integer, default: 1}
  max: {type: integer, default: 5}
  size: {type: integer, x-kubernetes-validations: [{rule: "self >= oldSelf", message: cannot shrink}]}
  storageClass: {type: string, default: standard, x-deckhouse-immutable: true}
  legacy: {type: boolean, default: false, deprecated: true}
  sets:
    type: array
    items:
      type: object
      x-deckhouse-validations: [{expression: "self.name != 'admin'", message: "admin is taken"}]
      properties: {name: {type: string}}
"""
VALUES = """
type: object
x-extend: {schema: settings.yaml}
properties:
  internal:
    type: object
    x-deckhouse-validations: [{expression: "self.ready", message: "not ready"}]
    properties: {ready: {type: boolean}}
"""


def package(folder: Path, settings: str, values: str = "") -> Definition:
    files = {"package.yaml": "{type: Application, name: shop}", "openapi/settings.yaml": settings}
    if values:
        files["openapi/values.yaml"] = values
    return read_definition(write(folder, files), name="shop", version="1.2.3")


@pytest.fixture
def shop(tmp_path: Path) -> Definition:
    return package(tmp_path / "shop", SETTINGS, VALUES)


@pytest.fixture
async def rules() -> AsyncIterator[CelPool]:
    async with open_cel_pool(None, workers=1, limits=CelLimits(seconds=60)) as pool:
        yield pool


async def told(
    definition: Definition, settings: JsonObject, old: JsonObject | None, rules: CelPool
) -> tuple[list[str], list[str]]:
    report = await check_settings(definition, settings, old, rules)
    return [str(problem) for problem in report.problems], [str(warning) for warning in report.warnings]


async def test_valid_rules_of_a_package_compile(shop: Definition, rules: CelPool) -> None:
    await check_package_rules(shop, rules)
    await check_package_rules(replace(shop, settings_schema=None), rules)


async def test_settings_are_checked_by_schema_and_rules(shop: Definition, rules: CelPool) -> None:
    report = await check_settings(shop, {"size": 3}, None, rules)
    assert (report.problems, report.warnings) == ((), ())
    assert report.settings == effective_settings(shop, {"size": 3})
    assert await told(shop, {"max": 0, "sets": [{"name": "a"}, {"name": "admin"}], "min": "x"}, None, rules) == (
        ["min: expected an integer, found a string", "sets[1]: admin is taken"],
        [],
    )
    assert await told(shop, {"max": 0, "legacy": True}, None, rules) == (
        ["min is 1, max only 0"],
        ["legacy: is deprecated"],
    )


async def test_transition_rules_compare_effective_settings(shop: Definition, rules: CelPool) -> None:
    """Defaults are applied to the old and to the new settings before the rules compare them."""
    assert await told(shop, {"size": 2, "storageClass": "fast"}, {"size": 3}, rules) == (
        ["size: cannot shrink", "storageClass: cannot be changed once it is set"],
        [],
    )
    assert await told(shop, {"size": 3, "storageClass": "standard"}, {"size": 3}, rules) == ([], [])
    assert await told(shop, {"size": 2}, None, rules) == ([], [])
    assert await told(shop, {}, {"size": 2, "storageClass": "fast"}, rules) == (
        ["storageClass: cannot be changed once it is set"],
        [],
    )


async def test_values_are_checked_by_rules(shop: Definition, rules: CelPool) -> None:
    bad: JsonObject = {"internal": {"ready": False}, "min": 3, "max": 2, "storageClass": "a"}
    report = await check_values_rules(shop, bad, {"storageClass": "b"}, rules)
    assert [str(problem) for problem in report.problems] == [
        "min is 3, max only 2",
        "internal: not ready",
        "storageClass: cannot be changed once it is set",
    ]
    good: JsonObject = {"internal": {"ready": True}, "min": 1, "max": 2, "legacy": False}
    report = await check_values_rules(shop, good, None, rules)
    assert (report.problems, report.warnings) == ((), ())
    report = await check_values_rules(replace(shop, values_schema=None), bad, None, rules)
    assert (report.problems, report.settings) == ((), bad)


async def test_packages_without_a_schema_evaluate_no_rules(tmp_path: Path, shop: Definition, rules: CelPool) -> None:
    plain = read_definition(chart(tmp_path / "plain"), name="web", version="1.2.3")
    assert (await check_settings(plain, {"a": 1}, None, rules)).settings == {"a": 1}
    problems, _ = await told(replace(shop, settings_schema=None), {"a": 1}, None, rules)
    assert problems == ["package shop has no settings schema, so it accepts no settings; remove the settings"]
    assert rules.statistics().requests == 0


async def test_oversized_settings_are_refused(shop: Definition, rules: CelPool) -> None:
    problems, _ = await told(shop, {"sets": [{"name": "x" * 5_000_000}]}, None, rules)
    assert problems[0].endswith("is over the limit of 4194304")


async def test_a_package_with_invalid_rules_is_refused(tmp_path: Path, rules: CelPool) -> None:
    definition = package(
        tmp_path,
        "properties: {a: {type: string, x-kubernetes-validations: [{rule: 'self > 1'}]}}",
        "properties: {b: {x-deckhouse-validations: [{expression: 'self.', message: m}]}}",
    )
    with pytest.raises(ArtifactError) as caught:
        await check_package_rules(definition, rules)
    message = str(caught.value)
    assert message.startswith(
        "package shop: settings schema: properties.a.x-kubernetes-validations[0]: does not compile: 1:6: found no"
    )
    assert "; values schema: properties.b.x-deckhouse-validations[0]: does not compile: 1:" in message


async def test_a_long_list_of_invalid_rules_is_truncated(tmp_path: Path, rules: CelPool) -> None:
    listed = ", ".join(["{expression: '" + "nope + " * 20 + "1', message: m}"] * (MAX_SHOWN + 2))
    definition = package(tmp_path, "x-deckhouse-validations: [" + listed + "]")
    with pytest.raises(ArtifactError, match="and 2 more"):
        await check_package_rules(definition, rules)


@pytest.mark.parametrize(
    ("settings", "values", "why"),
    [
        (
            "x-kubernetes-validations: 1",
            "",
            "openapi/settings.yaml: x-kubernetes-validations: expected a list of rules",
        ),
        (
            "properties: {a: {x-deckhouse-validations: [{expression: a}]}}",
            "",
            r"openapi/settings.yaml: properties.a.x-d.*message: is req",
        ),
        ("type: object", "anyOf: [{x-deckhouse-validations: []}]", "openapi/values.yaml: anyOf: has"),
        ("x-kubernetes-list-type: bag", "", "openapi/settings.yaml: x-kubernetes-list-type"),
    ],
)
def test_malformed_rules_are_refused_when_the_package_is_read(
    tmp_path: Path, settings: str, values: str, why: str
) -> None:
    with pytest.raises(ArtifactError, match=why):
        package(tmp_path, settings, values)
