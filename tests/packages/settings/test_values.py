"""The layers of values, and the resulting values for users, hooks and templates."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from wharfinger.formats.json.value import MAX_DEPTH, JsonObject, JsonValue, find
from wharfinger.formats.schemas.problem import Problem
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.definition.module_folder import camel_name
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.errors import PackageError
from wharfinger.packages.settings.values import (
    MAX_MESSAGE,
    MAX_SHOWN,
    RenderContext,
    SettingsError,
    check_values,
    effective_settings,
    helm_values,
    hook_values,
    merged_values,
)

SETTINGS = """
type: object
properties:
  replicas: {type: integer, default: 2, minimum: 1}
  host: {type: string}
  image: {type: string, default: settings-default}
  password: {type: string, writeOnly: true, minLength: 8}
  limits:
    type: object
    default: {cpu: 1}
    properties: {cpu: {type: integer}, memory: {type: integer}}
  sets:
    type: array
    items:
      type: object
      properties: {name: {type: string}, port: {type: integer, default: 80}}
"""
VALUES = """
x-extend: {schema: settings.yaml}
x-required-for-helm: internal
type: object
properties:
  internal:
    type: object
    default: {}
    properties: {ready: {type: boolean, default: false}, token: {type: string}}
  static: {type: string, default: values-default}
  flavour: {type: string, default: values-default}
  list: {type: array, items: {type: integer}}
"""
STATIC = "{static: values-file, list: [1, 2], image: values-file}"
CONTEXT = RenderContext("shop", "prod", "registry.example/packages", "v1.2.3", "sha256:" + "a" * 64)
DIGEST = "sha256:" + "5" * 64
GLOBAL: JsonObject = {"zone": "a", "deep": {"x": 1}}


@pytest.fixture
def application(tmp_path: Path) -> Definition:
    files = {
        "package.yaml": "{type: Application, name: web-shop}",
        "values.yaml": STATIC,
        "openapi/settings.yaml": SETTINGS,
        "openapi/values.yaml": VALUES,
        "images_digests.json": f'{{"web": "{DIGEST}"}}',
    }
    return read_definition(write(tmp_path / "app", files), name="web-shop", version="1.2.3")


@pytest.fixture
def module(application: Definition) -> Definition:
    return replace(application, type=PackageType.MODULE)


@pytest.fixture
def folder(tmp_path: Path) -> Definition:
    files = {"hooks/a": "", "values.yaml": "sysctlTuner: {sleep: 600, opts: {a: 1}}"}
    return read_definition(write(tmp_path / "folder", files), name="sysctl-tuner", version="1.0.0")


@pytest.fixture
def plain(tmp_path: Path) -> Definition:
    return read_definition(chart(tmp_path / "plain", files={"values.yaml": "text: a"}), name="web", version="1.2.3")


def test_effective_settings_include_only_defaults_of_the_settings_schema(application: Definition) -> None:
    given_settings: JsonObject = {"host": "h", "sets": [{"name": "a"}], "limits": {"memory": 1}}
    assert effective_settings(application, given_settings) == {
        "replicas": 2,
        "image": "settings-default",
        "host": "h",
        "sets": [{"name": "a", "port": 80}],
        "limits": {"memory": 1},
    }
    assert given_settings == {"host": "h", "sets": [{"name": "a"}], "limits": {"memory": 1}}


def test_all_problems_are_reported_in_one_line(application: Definition) -> None:
    with pytest.raises(SettingsError) as caught:
        effective_settings(application, {"replicas": 0, "hosst": "h"})
    assert isinstance(caught.value, PackageError)
    assert not caught.value.transient
    message = str(caught.value)
    assert message.startswith("spec.settings: 2 problems: ")
    assert {problem.path for problem in caught.value.problems} == {"replicas", "hosst"}
    assert "\n" not in message


def test_a_single_problem_is_reported_without_a_count(application: Definition) -> None:
    with pytest.raises(SettingsError, match=r"^spec\.settings: sets\[1\]\.port: ") as caught:
        effective_settings(application, {"sets": [{}, {"port": "x"}]})
    assert len(caught.value.problems) == 1


def test_many_and_long_problems_are_truncated() -> None:
    error = SettingsError([Problem(f"p{number}", "x\n" * 500) for number in range(MAX_SHOWN + 3)])
    assert len(error.problems) == MAX_SHOWN + 3
    assert str(error).endswith("…; and 3 more")
    assert len(str(error)) < (MAX_SHOWN + 1) * (MAX_MESSAGE + 2)
    assert "\n" not in str(error)


def test_write_only_values_are_not_printed(application: Definition) -> None:
    bads: list[JsonValue] = ["hunter2", ["hunter2"], {"a": "hunter2"}]
    for bad in bads:
        with pytest.raises(SettingsError, match="password") as caught:
            effective_settings(application, {"password": bad})
        assert "hunter2" not in str(caught.value)


def test_a_package_without_a_settings_schema_accepts_no_settings(
    folder: Definition, plain: Definition, tmp_path: Path
) -> None:
    settings: JsonObject = {"anything": 1}
    assert effective_settings(folder, settings) == settings
    assert effective_settings(plain, settings) == settings
    package = read_definition(write(tmp_path / "p", {"package.yaml": "{}"}), name="web", version="")
    assert effective_settings(package, {}) == {}
    with pytest.raises(
        SettingsError, match=r"^spec\.settings: package web has no settings schema.* remove the settings$"
    ):
        effective_settings(package, settings)


def test_values_are_merged_in_layers(application: Definition) -> None:
    values = merged_values(application, {"list": [3], "limits": {"memory": 5}, "sets": [{"name": "a"}]})
    assert values == {
        "static": "values-file",
        "image": "values-file",
        "replicas": 2,
        "list": [3],
        "limits": {"cpu": 1, "memory": 5},
        "sets": [{"name": "a", "port": 80}],
        "internal": {"ready": False},
        "flavour": "values-default",
    }
    assert merged_values(application, {"static": "user", "image": None})["static"] == "user"
    check_values(application, values)
    assert application.static_values == {"static": "values-file", "list": [1, 2], "image": "values-file"}


def test_packages_without_schemas_have_no_defaults(folder: Definition) -> None:
    assert merged_values(folder, {"opts": {"b": [1]}, "sleep": None}) == {"sleep": None, "opts": {"a": 1, "b": [1]}}
    check_values(folder, {"any": "thing"})


def test_values_are_checked_against_the_values_schema(application: Definition) -> None:
    with pytest.raises(SettingsError, match=r"^values: 2 problems: ") as caught:
        check_values(application, {"internal": {"ready": "no"}, "unknown": 1})
    assert sorted(problem.path for problem in caught.value.problems) == ["internal.ready", "unknown"]


def test_hooks_see_global_values_and_their_section(folder: Definition) -> None:
    assert hook_values(folder, GLOBAL, {"sleep": 1}) == {"global": GLOBAL, "sysctlTuner": {"sleep": 1}}
    assert camel_name("sysctl-tuner") == folder.camel


def test_templates_of_a_chart_see_only_its_settings(plain: Definition) -> None:
    assert helm_values(plain, CONTEXT, GLOBAL, {"text": "b"}, {"ignored": 1}) == {"text": "b"}
    assert merged_values(plain, {"text": "b"}) == {"text": "b"}


def test_templates_of_a_module_folder_see_global_values_and_their_section(folder: Definition) -> None:
    seen = helm_values(folder, CONTEXT, GLOBAL, {"sleep": 5}, {"sleep": 5, "opts": {}})
    assert seen == {"global": GLOBAL, "sysctlTuner": {"sleep": 5, "opts": {}}}


def test_templates_of_an_application_see_values_platform_and_context(application: Definition) -> None:
    settings = effective_settings(application, {"host": "h"})
    values = merged_values(application, {"host": "h"})
    seen = helm_values(application, CONTEXT, GLOBAL, settings, values)
    assert seen["host"] == "h"
    assert seen["global"] == seen["Platform"] == GLOBAL
    assert seen["Application"] == {
        "Instance": {"Name": "shop", "Namespace": "prod"},
        "Package": {
            "Name": "web-shop",
            "Version": "v1.2.3",
            "Digest": CONTEXT.digest,
            "Images": {"web": f"registry.example/packages/web-shop@{DIGEST}"},
            "Registry": {"Address": "registry.example/packages"},
        },
        "Settings": settings,
    }
    assert "webShop" not in seen
    assert "Module" not in seen
    without = helm_values(application, replace(CONTEXT, registry=""), GLOBAL, settings, values)
    assert find(without, "Application", "Package", "Images", "web") == f"web-shop@{DIGEST}"


def test_templates_of_a_module_see_values_platform_and_context(module: Definition) -> None:
    values = merged_values(module, {"host": "h"})
    seen = helm_values(module, CONTEXT, GLOBAL, {}, values)
    assert seen["webShop"] == values
    assert seen["host"] == "h"
    assert seen["global"] == GLOBAL
    assert "Application" not in seen
    assert seen["Module"] == {
        "Package": {
            "Name": "web-shop",
            "Version": "v1.2.3",
            "Digest": CONTEXT.digest,
            "Digests": {"web": DIGEST},
            "Registry": {"Address": "registry.example/packages"},
        }
    }


def test_values_required_for_helm_are_checked(application: Definition) -> None:
    with pytest.raises(SettingsError, match=r"^values for the templates: .*internal"):
        helm_values(application, CONTEXT, GLOBAL, {}, {"host": "h"})


def test_package_globals_are_merged_and_reserved_roots_are_refused(tmp_path: Path) -> None:
    package = read_definition(write(tmp_path, {"package.yaml": "type: Application"}), name="web", version="")
    seen = helm_values(package, CONTEXT, GLOBAL, {}, {"global": {"zone": "b", "deep": {"y": 2}}})
    assert seen["global"] == {"zone": "b", "deep": {"x": 1, "y": 2}}
    assert seen["Platform"] == GLOBAL
    with pytest.raises(
        SettingsError, match=r"^values for the templates: 2 problems: Application: this name.*; Platform: "
    ):
        helm_values(package, CONTEXT, GLOBAL, {}, {"Platform": 1, "Application": 1, "host": "h"})


def nested(depth: int) -> JsonObject:
    value: JsonObject = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def test_oversized_defaults_are_refused(application: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wharfinger.formats.schemas.values.MAX_NODES", 3)
    with pytest.raises(SettingsError, match=r"^spec\.settings: .*more than 3 parts"):
        effective_settings(application, {"sets": [{}, {}, {}]})
    with pytest.raises(SettingsError, match=r"^values: .*more than 3 parts"):
        merged_values(application, {})


def test_depth_and_size_of_values_are_limited(folder: Definition, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = replace(folder, static_values=nested(MAX_DEPTH + 5))
    with pytest.raises(SettingsError, match="nested deeper than"):
        merged_values(deep, nested(MAX_DEPTH + 5))
    with pytest.raises(SettingsError, match=r"^spec\.settings: "):
        effective_settings(folder, nested(100_000))
    monkeypatch.setattr("wharfinger.packages.settings.values.MAX_VALUES", 50)
    with pytest.raises(SettingsError, match=r"^spec\.settings: \d+ bytes is over the limit of 50"):
        effective_settings(folder, {"a": "x" * 50})
    with pytest.raises(SettingsError, match=r"^values: \d+ bytes is over the limit"):
        merged_values(replace(folder, static_values={"a": "x" * 50}), {})
