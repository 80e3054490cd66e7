"""The Modules and PackageRepositories that are derived from module folders, and the check whether existing objects differ."""

from dataclasses import replace
from pathlib import Path

import pytest

from wharfinger.formats.json.value import JsonObject, find, find_object
from wharfinger.packages.definition.modules_dir import FoundModule
from wharfinger.packages.errors import ArtifactError
from wharfinger.runtime.controllers.config_map import ModuleSettings
from wharfinger.runtime.controllers.managed_modules import (
    CONTENT,
    GLOBAL_HOOKS,
    MANAGED_BY,
    NO_VERSION,
    PROBLEM,
    deviates,
    is_managed,
    module_object,
    repository_name,
    repository_object,
    wanted_global,
    wanted_module,
)
from wharfinger.runtime.resources.repositories import read_repository
from wharfinger.runtime.resources.resources import ENABLED_BY_DEFAULT, NO_RECONCILIATION, REQUESTED, read_module
from wharfinger.runtime.resources.static_values import MAX_STATIC, STATIC_VALUES, read_static_values

FOUND = FoundModule("web", 2, "002-web", Path("/modules"))


WANTED = wanted_module(FOUND, "1.2.3", "sha256:1", ModuleSettings(), {"a": 1}, enabled=True)


def annotations(obj: JsonObject) -> JsonObject:
    return find_object(obj, "metadata", "annotations")


def test_a_module_folder_becomes_a_module() -> None:
    obj = module_object(WANTED, None)
    assert find(obj, "metadata", "name") == "web"
    assert is_managed(obj)
    assert find(obj, "spec") == {
        "packageName": "002-web",
        "packageVersion": "1.2.3",
        "packageRepositoryName": repository_name(Path("/modules")),
        "settings": {},
    }
    said = annotations(obj)
    assert said[CONTENT] == said[REQUESTED]
    assert (said[ENABLED_BY_DEFAULT], said.get(GLOBAL_HOOKS), said.get(PROBLEM)) == ("true", None, None)
    assert read_static_values(obj) == {"a": 1}
    spec = read_module(obj)
    assert (spec.package, spec.version, spec.settings) == ("002-web", "1.2.3", {})


def test_a_module_has_the_settings_of_the_config_map() -> None:
    settings = ModuleSettings({"b": 2}, enabled=False, maintenance=NO_RECONCILIATION)
    obj = module_object(replace(WANTED, settings=settings, enabled_by_default=False), None)
    spec = find_object(obj, "spec")
    assert (spec["settings"], spec["enabled"], spec["maintenance"]) == ({"b": 2}, False, NO_RECONCILIATION)
    assert annotations(obj)[ENABLED_BY_DEFAULT] == "false"
    assert read_module(obj).enabled is False


def test_a_folder_without_a_version_gets_a_default_version() -> None:
    assert wanted_module(FOUND, "", "", ModuleSettings(), {}, enabled=False).version == NO_VERSION


def test_global_hooks_become_the_module_global() -> None:
    found = wanted_global(Path("/global-hooks"), "sha256:2", {"domain": "a"}, {"b": 1}, "x" * 2000)
    obj = module_object(found, None)
    assert find(obj, "metadata", "name") == "global"
    said = annotations(obj)
    assert (said[GLOBAL_HOOKS], said.get(ENABLED_BY_DEFAULT)) == ("true", None)
    assert said[PROBLEM] == "x" * 1024
    assert read_static_values(obj) == {"b": 1}
    spec = read_module(obj)
    assert (spec.package, spec.enabled, spec.settings) == ("global-hooks", True, {"domain": "a"})
    assert spec.repository == repository_name(Path("/global-hooks"))


def test_a_modules_directory_becomes_a_repository_with_a_unique_name() -> None:
    obj = repository_object(Path("/modules"))
    assert is_managed(obj)
    assert str(read_repository(obj, [Path("/modules")]).source) == "FolderSource(path=PosixPath('/modules'))"
    names = {repository_name(Path(path)) for path in ("/modules", "/modules2", "/other")}
    assert len(names) == 3
    assert repository_name(Path("/modules")) in names


def test_changed_content_requests_a_reconciliation() -> None:
    live = module_object(WANTED, None)
    assert module_object(WANTED, live) == live
    for changed in (replace(WANTED, content="sha256:2"), replace(WANTED, static={"a": 2})):
        after = annotations(module_object(changed, live))
        assert after[REQUESTED] != annotations(live)[REQUESTED]
    for same in (replace(WANTED, settings=ModuleSettings({"a": 2})), replace(WANTED, enabled_by_default=False)):
        assert annotations(module_object(same, live))[REQUESTED] == annotations(live)[REQUESTED]


def test_a_users_request_is_retained_until_the_content_changes() -> None:
    live = module_object(WANTED, None)
    annotations(live)[REQUESTED] = "now"
    assert annotations(module_object(WANTED, live))[REQUESTED] == "now"
    assert annotations(module_object(replace(WANTED, content="sha256:2"), live))[REQUESTED] != "now"


def test_too_large_static_values_are_an_error() -> None:
    with pytest.raises(
        ArtifactError,
        match=r"module web: expected at most \d+ bytes of static values .* put them into the module's own",
    ):
        module_object(replace(WANTED, static={"a": "x" * MAX_STATIC}), None)


def test_foreign_resources_are_not_managed() -> None:
    assert not is_managed({"metadata": {"name": "web"}})
    assert not is_managed({"metadata": {"labels": {MANAGED_BY: "somebody"}}})


def test_only_differences_in_managed_fields_are_deviations() -> None:
    applied = module_object(WANTED, None)
    theirs: JsonObject = {
        **applied,
        "metadata": {**find_object(applied, "metadata"), "uid": "1", "finalizers": ["a"]},
        "spec": {**find_object(applied, "spec"), "suspend": True, "namespace": "x"},
        "status": {"a": 1},
    }
    annotations(theirs)["mine"] = "1"
    assert not deviates(theirs, applied)
    for path, key in (
        ("spec", "packageVersion"),
        ("spec", "settings"),
        ("metadata", "labels"),
        ("metadata", "annotations"),
    ):
        live: JsonObject = {**theirs, path: {**find_object(theirs, path), key: {}}}
        assert deviates(live, applied) is (key != "settings")
        live = {**theirs, path: {**find_object(theirs, path), key: {"b": 1}}}
        assert deviates(live, applied)
    assert annotations(applied)[STATIC_VALUES] == '{"a":1}'
