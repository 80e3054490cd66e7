"""Settings that are merged from their layers, and the secret parts that must be hidden."""

import base64

import pytest

from tests.runtime.support.objects import application
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import CONFIG_MAP, SECRET, PackageSpec, read_application
from wharfinger.runtime.resources.settings import (
    ResolvedSettings,
    SettingsSourceError,
    carried_over,
    resolve_settings,
    texts_at,
)

PASSWORD = ObjectKey(SECRET, "prod", "database")
DEFAULTS = ObjectKey(CONFIG_MAP, "prod", "defaults")


def spec(sources: list[JsonValue], settings: JsonObject | None = None) -> PackageSpec:
    obj = application("prod", "web", settings=settings)
    body = obj["spec"]
    assert isinstance(body, dict)
    body["settingsFrom"] = sources
    return read_application(obj)


def secret(**data: str) -> JsonObject:
    return {"data": {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}}


def test_later_layers_override_earlier_ones_and_the_spec_all() -> None:
    wanted = spec(
        [
            {"kind": "ConfigMap", "name": "defaults"},
            {"kind": "Secret", "name": "database", "key": "password", "path": "database.password"},
        ],
        {"replicas": 3},
    )
    settings = "replicas: 1\nhost: a.example\ndatabase: {name: shop, password: none}\n"
    resolved = resolve_settings(
        wanted, {DEFAULTS: {"data": {"settings.yaml": settings}}, PASSWORD: secret(password="hunter22")}
    )
    assert resolved.settings == {
        "replicas": 3,
        "host": "a.example",
        "database": {"name": "shop", "password": "hunter22"},
    }
    assert resolved.secrets == ("hunter22",)
    assert resolved.hidden == {("database", "password")}
    assert resolved.subject == "settings"
    assert "hunter22" not in repr(resolved).replace(repr(resolved.settings), "")


def test_all_values_of_a_secret_document_are_hidden() -> None:
    text = "token: abcdef\nlist: [ghijkl, {deep: mnopqr}]\nport: 5432\nshort: ab\n"
    resolved = resolve_settings(
        spec([{"kind": "Secret", "name": "database"}]), {PASSWORD: secret(**{"settings.yaml": text})}
    )
    assert resolved.secrets == ("5.432e+03", "5432", "abcdef", "ghijkl", "mnopqr")
    assert resolved.hidden == {("token",), ("list",), ("port",), ("short",)}


@pytest.mark.parametrize(
    ("obj", "message"),
    [
        (None, "Secret prod/database does not exist"),
        ({"data": {}}, "has no key 'settings.yaml'"),
        (
            secret(**{"settings.yaml": "a: 1\nb: [hunter22"}),
            r"settings\.yaml: line 3, column 1: cannot be read as YAML",
        ),
        (secret(**{"settings.yaml": "a: *hunter22"}), r"settings\.yaml: line 1, column 4: cannot be read as YAML"),
        (secret(**{"settings.yaml": "[hunter22]"}), r"settings\.yaml: expected an object of settings, found a list$"),
        ({"data": {"settings.yaml": "?"}}, r"settings\.yaml: expected base64"),
    ],
)
def test_missing_and_invalid_sources_are_reported_without_content(obj: JsonObject | None, message: str) -> None:
    with pytest.raises(SettingsSourceError, match=message) as caught:
        resolve_settings(spec([{"kind": "Secret", "name": "database"}]), {PASSWORD: obj})
    assert "spec.settingsFrom[0]" in str(caught.value)
    assert "hunter22" not in str(caught.value)


@pytest.mark.parametrize("text", ["a: [", "[1]", "a: 1\na: 2"])
def test_an_invalid_config_map_is_reported_with_its_key_once(text: str) -> None:
    with pytest.raises(SettingsSourceError) as caught:
        resolve_settings(
            spec([{"kind": "ConfigMap", "name": "defaults"}]), {DEFAULTS: {"data": {"settings.yaml": text + " "}}}
        )
    assert str(caught.value).count("settings.yaml:") == 1


def test_a_binary_secret_cannot_be_a_setting() -> None:
    with pytest.raises(SettingsSourceError, match="not text"):
        resolve_settings(
            spec([{"kind": "Secret", "name": "database", "key": "k", "path": "a"}]), {PASSWORD: {"data": {"k": "/w=="}}}
        )


@pytest.mark.parametrize("obj", [None, {"data": {"other": "x"}}])
def test_an_optional_source_may_be_missing(obj: JsonObject | None) -> None:
    wanted = spec([{"kind": "ConfigMap", "name": "defaults", "optional": True}], {"a": 1})
    assert resolve_settings(wanted, {DEFAULTS: obj}).settings == {"a": 1}


def test_settings_without_secrets_are_named_as_the_field_of_the_resource() -> None:
    assert ResolvedSettings({"a": 1}).subject == "spec.settings"


def test_an_empty_document_gives_empty_settings() -> None:
    wanted = spec([{"kind": "ConfigMap", "name": "defaults"}])
    assert resolve_settings(wanted, {DEFAULTS: {"data": {"settings.yaml": ""}}}).settings == {}


def test_absent_and_empty_settings_are_the_same() -> None:
    assert resolve_settings(spec([]), {}).checksum == ResolvedSettings({}).checksum


def test_too_deeply_nested_settings_are_refused() -> None:
    entry: JsonObject = {"kind": "ConfigMap", "name": "defaults", "key": "k", "path": ".".join("a" * 250)}
    with pytest.raises(SettingsSourceError, match=r"spec\.settingsFrom\[1\]"):
        resolve_settings(spec([entry, entry]), {DEFAULTS: {"data": {"k": "x"}}})


def test_texts_are_found_at_paths() -> None:
    value: JsonObject = {"a": {"b": "secret-1", "c": ["secret-2", 3]}, "d": "xy"}
    assert texts_at(value, [("a",), ("d",), ("missing",)]) == {"secret-1", "secret-2"}


def test_settings_have_the_version_of_the_spec() -> None:
    obj = application("prod", "web", settings={"a": 1})
    assert resolve_settings(read_application(obj), {}).version == 0
    body = obj["spec"]
    assert isinstance(body, dict)
    body["settingsVersion"] = 3
    assert resolve_settings(read_application(obj), {}).version == 3


HIDING = ResolvedSettings(
    {"db": {"login": "a:hunter22", "host": "x"}, "pin": "73", "mode": "fast", "ports": [1, 2]},
    ("a:hunter22",),
    frozenset({("db", "login"), ("pin",)}),
    1,
)


@pytest.mark.parametrize(
    ("settings", "hidden", "found"),
    [
        (HIDING.settings, {("db", "login"), ("pin",)}, set[str]()),
        ({"mode": "fast", "pin": "73", "ports": [1, 2]}, {("pin",)}, set[str]()),
        ({"mode": "73", "ports": [2, 1]}, {("mode",), ("ports",)}, set[str]()),
        ({"db": {"host": "x", "password": "hunter22"}}, {("db", "password")}, {"hunter22"}),
        ({"db": "a:hunter22@x", "mode": "fast"}, {("db",)}, {"a:hunter22@x"}),
        ({"base": {"by": {"hunter22": 98765}}}, {("base",)}, {"98765", "9.8765e+04"}),
        ({"ports": [{"of": "hunter22"}]}, {("ports",)}, {"hunter22"}),
        ({}, set[tuple[str, ...]](), set[str]()),
    ],
)
def test_a_conversion_hides_values_that_may_come_from_secrets(
    settings: JsonObject, hidden: set[tuple[str, ...]], found: set[str]
) -> None:
    """All values that the conversion changed are hidden. Other values are hidden only if they were hidden before."""
    after = carried_over(HIDING, settings, 2)
    assert (after.settings, after.version) == (settings, 2)
    assert after.hidden == hidden
    assert set(after.secrets) == found | {"a:hunter22"}


def test_a_conversion_of_settings_without_secrets_hides_nothing() -> None:
    assert carried_over(ResolvedSettings({"a": "first"}), {"b": "first"}, 2) == ResolvedSettings(
        {"b": "first"}, version=2
    )
