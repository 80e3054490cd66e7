"""Case 15: values and schemas of module folders (spec hook-protocol §3.3, §5.5), from the patches of hooks to the ConfigMap."""

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.formats.merge_patch import overlaid
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.results import CONFIG_VALUES_PATCH, VALUES_PATCH, read_values_patch
from wharfinger.hooks.running.values_patch import ValuesPatchError, apply_values_patch, compacted, reapplied
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.definition.modules_dir import read_modules_dirs
from wharfinger.packages.settings.cel_pool import CelLimits, CelPool, open_cel_pool
from wharfinger.packages.settings.values import (
    RenderContext,
    SettingsError,
    check_settings,
    check_values,
    check_values_rules,
    effective_settings,
    helm_values,
    hook_values,
    merged_values,
)
from wharfinger.runtime.controllers.config_map import read_config_map

CONTEXT = RenderContext("module-name", "system", "", "1.0.0", "sha256:0")


def module(folder: Path, settings: str = "", values: str = "", own: str = "moduleName: {}") -> Definition:
    """Write and read the module ``module-name`` with these schemas and this ``values.yaml``."""
    files = {"openapi/config-values.yaml": settings, "openapi/values.yaml": values}
    write(folder / "010-module-name", {name: text for name, text in files.items() if text} | {"values.yaml": own})
    return read_definition(folder / "010-module-name", name="010-module-name", version="1.0.0", in_modules_dir=True)


def add(path: str, value: JsonValue) -> JsonObject:
    return {"op": "add", "path": path, "value": value}


def remove(path: str) -> JsonObject:
    return {"op": "remove", "path": path}


# --- patches (§3.3) ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        '{"op":"add","path":"/m/a","value":1}{"op":"remove","path":"/m/b"}',
        '[{"op":"add","path":"/m/a","value":1},{"op":"remove","path":"/m/b"}]',
        '{"op":"add","path":"/m/a","value":1}\n\n[{"op":"remove","path":"/m/b"}]',
        '[{"op":"add","path":"/m/a","value":1}] []\n[{"op":"remove","path":"/m/b"}]\n',
    ],
)
def test_a_patch_is_a_stream_of_operations_and_lists(text: str) -> None:
    assert read_values_patch(text.encode(), hook="h", file=VALUES_PATCH) == (add("/m/a", 1), remove("/m/b"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"op":"replace","path":"/m/a","value":1}', "unsupported patch operation 'replace'"),
        ('{"op":"add","path":"/m/a"}', "'add' needs a value"),
        ('{"op":"add","path":"m","value":1}', "path must be a JSON pointer"),
        ('{"op":"put","path":"/m"}', "op must be one of"),
        ('["add"]', "expected an object"),
        ("op: add", "values patch"),
    ],
)
def test_an_invalid_patch_is_an_error(text: str, why: str) -> None:
    with pytest.raises(HookError, match=why):
        read_values_patch(text.encode(), hook="h", file=CONFIG_VALUES_PATCH)


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        (remove("/m/none"), "none"),
        (add("/m/none/below", 1), "none"),
        (add("/m/list/7", 1), "list/7"),
        (add("/other/a", 1), "is not below /m"),
        (add("/global/a", 1), "is not below /m"),
        (add("/otherEnabled", True), "is not below /m"),
        ({"op": "test", "path": "/m/a", "value": 2}, "test"),
        (remove("/m"), "must stay an object"),
    ],
)
def test_a_patch_outside_of_existing_paths_or_the_own_section_is_an_error(operation: JsonObject, why: str) -> None:
    with pytest.raises(ValuesPatchError, match=why):
        apply_values_patch({"m": {"a": 1, "list": []}}, [operation], root="m")


def test_a_global_hook_may_patch_enabled_flags() -> None:
    patch = [add("/global/a", 1), add("/moduleNameEnabled", True), add("/otherEnabled", "false")]
    assert apply_values_patch({"global": {}}, patch, root="global", flags=True) == {
        "global": {"a": 1},
        "moduleNameEnabled": True,
        "otherEnabled": "false",
    }
    with pytest.raises(ValuesPatchError, match="must be true or false"):
        apply_values_patch({"global": {}}, [add("/otherEnabled", "yes")], root="global", flags=True)


@pytest.mark.parametrize(
    ("patches", "stored"),
    [
        ([[add("/m/a", 1)], [add("/m/a", 2)]], [add("/m/a", 2)]),
        ([[add("/m/a", {})], [add("/m/a/k", 1)]], [add("/m/a", {}), add("/m/a/k", 1)]),
        ([[add("/m/a", {}), add("/m/a/k", 1)], [remove("/m/a")]], [remove("/m/a")]),
        (
            [[add("/m/a", {}), add("/m/a/k", 1)], [remove("/m/a")], [add("/m/a", []), add("/m/a/0", "x")]],
            [add("/m/a", []), add("/m/a/0", "x")],
        ),
        ([[add("/m/b", 1), add("/m/a", 1)], [add("/m/c", 1)]], [add("/m/a", 1), add("/m/b", 1), add("/m/c", 1)]),
        (
            [[add("/m/a", [])], [add("/m/a/-", 1)], [add("/m/a/-", 2)]],
            [add("/m/a", []), add("/m/a/-", 1), add("/m/a/-", 2)],
        ),
    ],
)
def test_stored_patches_are_compacted(patches: list[list[JsonObject]], stored: list[JsonObject]) -> None:
    """For each path only the last operation is stored, except that each append to a list (``/-``) is stored. An operation
    replaces the stored operations on the paths below its own path. The result is sorted by path.
    """
    kept: tuple[JsonValue, ...] = ()
    values: JsonObject = {"m": {}}
    for patch in patches:
        kept = compacted(kept, patch, values)
        values = apply_values_patch(values, patch, root="m")
    assert list(kept) == stored
    assert reapplied({"m": {}}, kept) == values


def test_stored_patches_are_reapplied_leniently() -> None:
    kept = [add("/m/gone/below", 1), remove("/m/never"), add("/m/a", 1)]
    assert reapplied({"m": {"b": 2}}, kept) == {"m": {"a": 1, "b": 2}}


# --- layers (§5.5) -------------------------------------------------------------------------------------------------------


def test_layers_of_values_have_their_precedence(tmp_path: Path) -> None:
    definition = module(
        tmp_path,
        "type: object\nproperties:\n  "
        + "\n  ".join(f"{name}: {{type: string, default: config default}}" for name in "abcdef"),
        "x-extend: {schema: config-values.yaml}\nproperties:\n"
        "  g: {type: string, default: values default}\n  f: {type: string, default: values default}\n  h: {type: string}\n",
        own="moduleName: {b: module, c: module}",
    )
    write(tmp_path, {"values.yaml": "moduleName: {a: directory, b: directory}\nmoduleNameEnabled: true"})
    static = read_modules_dirs([tmp_path]).static["module-name"]
    definition = replace(definition, static_values=overlaid(static, definition.static_values))
    configured = read_config_map({"moduleName": "c: user\nd: user"}, ["module-name"]).modules["module-name"].settings
    values = merged_values(definition, configured)
    assert values == {
        "a": "directory",
        "b": "module",
        "c": "user",
        "d": "user",
        "e": "config default",
        "f": "config default",
        "g": "values default",
    }
    patched = reapplied({"moduleName": values}, [add("/moduleName/d", "hook"), add("/moduleName/h", "hook")])[
        "moduleName"
    ]
    assert isinstance(patched, dict)
    assert (patched["d"], patched["h"]) == ("hook", "hook")
    # The file of a hook's settings (CONFIG_VALUES_PATH) contains only the user's settings.
    assert hook_values(definition, {}, configured) == {"global": {}, "moduleName": {"c": "user", "d": "user"}}


def test_objects_are_merged_and_other_values_are_replaced(tmp_path: Path) -> None:
    definition = module(tmp_path, own="moduleName: {map: {a: 1, b: {c: 1}}, list: [1, 2], text: a}")
    values = merged_values(definition, {"map": {"b": {"d": 2}}, "list": [3], "text": None})
    assert values == {"map": {"a": 1, "b": {"c": 1, "d": 2}}, "list": [3], "text": None}


def test_templates_and_hooks_see_the_same_values(tmp_path: Path) -> None:
    definition = module(tmp_path, own="a: 1\nb: {c: 2}")  # without the module's name as a key
    shape: JsonObject = {"global": {"x": 1}, "moduleName": {"a": 1, "b": {"c": 2}}}
    values = merged_values(definition, {})
    assert hook_values(definition, {"x": 1}, values) == shape
    assert helm_values(definition, CONTEXT, {"x": 1}, {}, values) == shape


# --- schemas (§5.5) ------------------------------------------------------------------------------------------------------

CLOSED = """
type: object
required: [name]
properties:
  name: {type: string}
  paramArray:
    type: array
    items:
      type: object
      properties: {size: {type: integer}}
  inner:
    type: object
    properties: {deep: {type: object, properties: {a: {type: string}}}}
  open:
    type: object
    additionalProperties: true
    properties: {below: {type: object, properties: {a: {type: string}}}}
"""


def refused(definition: Definition, settings: JsonObject) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        effective_settings(definition, settings)
    return [str(problem).partition(";")[0] for problem in caught.value.problems]


def test_objects_are_closed_unless_their_schema_opens_them(tmp_path: Path) -> None:
    """A closed object refuses unknown fields. Objects in properties and items are closed, too. If a schema sets
    additionalProperties, its object and all objects inside it accept unknown fields. All problems are reported.
    """
    definition = module(tmp_path, CLOSED)
    fine: JsonObject = {
        "name": "a",
        "paramArray": [{"size": 1}],
        "inner": {"deep": {"a": "b"}},
        "open": {"any": 1, "below": {"any": 1}},
    }
    assert effective_settings(definition, fine) == fine
    assert refused(definition, {"name": "a", "paramArrayy": []}) == ["paramArrayy: is not a known setting"]
    assert refused(definition, {"paramArray": [{"size": 1}, {"sise": 1}], "inner": {"deep": {"b": 1}}, "x": 1}) == [
        "name: is required",
        "paramArray[1].sise: is not a known setting",
        "inner.deep.b: is not a known setting",
        "x: is not a known setting",
    ]


def test_the_values_schema_may_extend_the_settings_schema(tmp_path: Path) -> None:
    definition = module(
        tmp_path,
        "type: object\ntitle: T\ndescription: D\nx-mine: 1\nrequired: [name]\ndefinitions: {size: {type: integer}}\n"
        "properties: {name: {type: string}}\npatternProperties: {'^p': {type: integer}}\n",
        "x-extend: {schema: config-values.yaml}\nrequired: [found]\n"
        "properties: {found: {type: string}, size: {$ref: '#/definitions/size'}}\n",
    )
    schema = definition.values_schema
    assert schema is not None
    assert [schema.document.get(key) for key in ("title", "description", "x-mine")] == ["T", "D", 1]
    check_values(definition, {"name": "a", "found": "b", "size": 1, "p1": 2})
    with pytest.raises(SettingsError) as caught:
        check_values(definition, {"size": "a", "p1": "b", "q1": 1})
    told = [str(problem).partition(":")[0] for problem in caught.value.problems]
    assert sorted(told) == ["found", "name", "p1", "q1", "size"]
    # The opposite direction does not work: values that hooks set are not settings.
    assert refused(definition, {"name": "a", "found": "b"}) == ["found: is not a known setting"]


@pytest.mark.parametrize(
    ("required", "told"), [("line", ["inner.line"]), ("[line, other]", ["inner.line", "inner.other"])]
)
def test_fields_may_be_required_only_for_helm(required: str, told: list[str], tmp_path: Path) -> None:
    definition = module(
        tmp_path,
        "",
        f"type: object\nproperties:\n  inner:\n    type: object\n    x-required-for-helm: {required}\n"
        "    properties: {line: {type: string}, other: {type: string}}\n",
    )
    check_values(definition, {"inner": {}})
    check_values(definition, {})
    with pytest.raises(SettingsError) as caught:
        helm_values(definition, CONTEXT, {}, {}, {"inner": {}})
    assert [str(problem) for problem in caught.value.problems] == [f"{each}: is required" for each in told]
    helm_values(definition, CONTEXT, {}, {}, {"inner": {"line": "a", "other": "b"}})


def test_defaults_are_filled_into_partial_objects_and_other_defaults(tmp_path: Path) -> None:
    definition = module(
        tmp_path,
        """
type: object
properties:
  given:
    type: object
    properties:
      a: {type: integer, default: 1}
      b: {type: integer, default: 2}
  made:
    type: object
    default: {}
    properties:
      inner: {type: object, default: {x: 1}, properties: {x: {type: integer}, z: {type: integer, default: 2}}}
  list:
    type: array
    items: {type: object, properties: {size: {type: integer, default: 3}}}
  absent:
    type: object
    properties: {a: {type: integer, default: 1}}
""",
    )
    assert effective_settings(definition, {"given": {"b": 5}, "list": [{}, {"size": 1}]}) == {
        "given": {"a": 1, "b": 5},
        "made": {"inner": {"x": 1, "z": 2}},
        "list": [{"size": 3}, {"size": 1}],
    }


# --- rules in CEL (§5.5) -------------------------------------------------------------------------------------------------

RULES = """
type: object
x-deckhouse-validations:
  - {expression: "self.replicas >= self.least", message: fewer than the least}
properties:
  replicas: {type: integer, default: 1}
  least: {type: integer, default: 1}
  size:
    type: integer
    x-deckhouse-validations: [{expression: "self >= oldSelf", message: cannot shrink}]
  inner:
    type: object
    x-deckhouse-validations: [{expression: "!has(self.a) || self.a != 'bad'", message: a is bad}]
    properties: {a: {type: string}}
"""


@pytest.fixture
async def rules() -> AsyncIterator[CelPool]:
    async with open_cel_pool(None, workers=1, limits=CelLimits(seconds=60)) as pool:
        yield pool


async def test_rules_are_checked_at_any_level(tmp_path: Path, rules: CelPool) -> None:
    definition = module(tmp_path, RULES, "x-extend: {schema: config-values.yaml}\ntype: object\n")

    async def told(settings: JsonObject, old: JsonObject | None = None) -> list[str]:
        return [str(problem) for problem in (await check_settings(definition, settings, old, rules)).problems]

    assert await told({"replicas": 3, "least": 2, "inner": {"a": "good"}}) == []
    assert await told({"least": 2, "inner": {"a": "bad"}}) == ["fewer than the least", "inner: a is bad"]
    # A rule about the old value does not apply to a first setting.
    assert await told({"size": 1}) == []
    assert await told({"size": 1}, {}) == []
    assert await told({"size": 1}, {"size": 2}) == ["size: cannot shrink"]
    assert await told({"size": 2}, {"size": 2}) == []
    report = await check_values_rules(definition, {"replicas": 1, "least": 2}, None, rules)
    assert [str(problem) for problem in report.problems] == ["fewer than the least"]


# --- the ConfigMap (§5.5) ------------------------------------------------------------------------------------------------


def test_the_config_map_is_applied_as_a_whole_or_not_at_all() -> None:
    known = ["module-name", "other"]
    data = {
        "global": json.dumps({"domain": "a"}),
        "moduleName": "sleep: 600\nmap:\n  a: [1, 2]\n",
        "moduleNameEnabled": "true",
        "otherEnabled": "false",
        "otherMaintenance": "NoResourceReconciliation",
    }
    found = read_config_map(data, known)
    assert (found.problems, found.global_settings) == ((), {"domain": "a"})
    assert found.modules["module-name"].settings == {"sleep": 600, "map": {"a": [1, 2]}}
    assert [found.modules[name].enabled for name in known] == [True, False]
    assert found.modules["other"].maintenance == "NoResourceReconciliation"
    for key in ("module-name", "Module", "module_name"):
        wrong = read_config_map({**data, key: "a: 1"}, known)
        assert (len(wrong.problems), wrong.modules, wrong.global_settings) == (1, {}, {})
    scalar = read_config_map({"moduleName": "text"}, known)
    assert scalar.problems == ("moduleName: expected an object with settings, found a string",)
