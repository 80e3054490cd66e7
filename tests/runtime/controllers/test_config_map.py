"""The ConfigMap of settings: its keys, the texts under them, and its rejection as a whole because of one mistake."""

import random
from collections import Counter

import pytest

from tests.scale import scaled
from wharfinger.formats.json.value import JsonValue
from wharfinger.runtime.controllers.config_map import ConfigMapSettings, ModuleSettings, read_config_map
from wharfinger.runtime.resources.resources import NO_RECONCILIATION

KNOWN = ("sysctl-tuner", "2-module-name", "l2-load-balancer", "web")


def read(data: dict[str, JsonValue]) -> ConfigMapSettings:
    return read_config_map(data, KNOWN)


def test_all_keys_of_the_config_map_are_read() -> None:
    found = read(
        {
            "global": "domain: example.com\n",
            "sysctlTuner": "sleep: 300\nnodes: [a]\n",
            "sysctlTunerEnabled": "true",
            "sysctlTunerMaintenance": "NoResourceReconciliation\n",
            "2ModuleNameEnabled": " false\n",
            "l2LoadBalancer": "{}",
            "web": "# nothing yet\n",
        }
    )
    assert found == ConfigMapSettings(
        {"domain": "example.com"},
        {
            "2-module-name": ModuleSettings({}, enabled=False),
            "l2-load-balancer": ModuleSettings(),
            "sysctl-tuner": ModuleSettings({"sleep": 300, "nodes": ["a"]}, True, NO_RECONCILIATION),
            "web": ModuleSettings(),
        },
    )


def test_an_empty_config_map_has_no_settings() -> None:
    assert read({}) == ConfigMapSettings()


def test_keys_of_unknown_modules_are_only_warnings() -> None:
    found = read({"web": "a: 1", "wepEnabled": "true", "otherMaintenance": ""})
    assert found.modules == {"web": ModuleSettings({"a": 1})}
    assert found.problems == ()
    assert found.warnings == ("other: there is no module other", "wep: there is no module wep")


@pytest.mark.parametrize(
    ("key", "text", "problem"),
    [
        ("sysctl-tuner", "a: 1", "sysctl-tuner: expected a module's name in camelCase (sysctlTuner for the module"),
        ("SysctlTuner", "a: 1", "SysctlTuner: module '-sysctl-tuner': expected a name in kebab-case"),
        ("sysctl_tuner", "a: 1", "sysctl_tuner: module 'sysctl_tuner': expected a name in kebab-case"),
        ("Enabled", "true", "Enabled: module '': expected a name in kebab-case"),
        ("_example", "", "_example: module '_example'"),
        ("web", "a: [", "web: its text: line 2, column 1"),
        ("web", "text", "web: expected an object with settings, found a string"),
        ("web", "- a: 1", "web: expected an object with settings, found a list"),
        ("global", "3", "global: expected an object with settings, found an integer"),
        ("webEnabled", "yes", 'webEnabled: expected "true" or "false", found \'yes\''),
        ("webEnabled", "", 'webEnabled: expected "true" or "false", found \'\''),
        ("webMaintenance", "On", "webMaintenance: expected NoResourceReconciliation, found 'On'"),
        ("globalEnabled", "false", "globalEnabled: the global settings cannot be switched on or off"),
    ],
)
def test_one_mistake_rejects_the_whole_config_map(key: str, text: str, problem: str) -> None:
    found = read({"sysctlTunerEnabled": "true", key: text})
    assert (found.modules, found.global_settings) == ({}, {})
    assert len(found.problems) == 1
    assert found.problems[0].startswith(problem)


def test_all_mistakes_are_reported() -> None:
    found = read({"web": "1", "b-c": "", "webEnabled": "1", "ok": "", "wrong": 3})
    assert [problem.partition(":")[0] for problem in found.problems] == ["b-c", "web", "webEnabled", "wrong"]


_KEYS = ("global", "web", "sysctlTuner", "l2LoadBalancer", "stranger", "Web", "web-b", "_a", "", "a" * 70, "webB_", "ä")
_SUFFIXES = ("", "", "", "Enabled", "Maintenance", "EnabledMaintenance")
_GOOD: tuple[JsonValue, ...] = ("true", "false", "", "a: 1", "a: {b: [1]}", "{}", NO_RECONCILIATION, " true\n")
_BAD: tuple[JsonValue, ...] = (
    "- 1",
    "a: [",
    "&a [*a]",
    "\0",
    "a: 1\na: 2",
    "!!binary x",
    3,
    None,
    [],
    {},
    "\ud800",
    "on",
)


def test_any_config_map_is_applied_as_a_whole_or_not_at_all() -> None:
    """Check 100,000 random ConfigMaps under `make test-full`, and otherwise 800."""
    dice, outcomes = random.Random(1), Counter[bool]()  # noqa: S311 - no secret
    for _ in range(scaled(100_000, 800)):
        texts = _GOOD if dice.random() < 0.7 else (*_GOOD, *_BAD)
        keys = _KEYS[: dice.choice((3, 5, len(_KEYS)))]
        count = dice.randrange(4)
        data = {dice.choice(keys) + dice.choice(_SUFFIXES): _mutated(dice, dice.choice(texts)) for _ in range(count)}
        found = read(data)
        assert not (found.problems and (found.modules or found.global_settings or found.warnings))
        assert found.modules.keys() <= set(KNOWN)
        outcomes[bool(found.problems)] += 1
    assert min(outcomes.values()) > sum(outcomes.values()) // 20


def _mutated(dice: random.Random, text: JsonValue) -> JsonValue:
    """Return the text, sometimes with one character added, removed or replaced."""
    if not isinstance(text, str) or dice.random() < 0.9:
        return text
    at = dice.randrange(len(text) + 1)
    return text[:at] + dice.choice(("", "[", ":", "\n", "a", "\t", "{", "'", "&", "*")) + text[at + dice.randrange(2) :]
