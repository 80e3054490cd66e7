"""The resources that stand for modules directories."""

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


def test_a_module() -> None:
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


def test_what_the_config_map_says_of_it() -> None:
    settings = ModuleSettings({"b": 2}, enabled=False, maintenance=NO_RECONCILIATION)
    obj = module_object(replace(WANTED, settings=settings, enabled_by_default=False), None)
    spec = find_object(obj, "spec")
    assert (spec["settings"], spec["enabled"], spec["maintenance"]) == ({"b": 2}, False, NO_RECONCILIATION)
    assert annotations(obj)[ENABLED_BY_DEFAULT] == "false"
    assert read_module(obj).enabled is False


def test_a_folder_without_a_version_is_asked_for_by_one() -> None:
    assert wanted_module(FOUND, "", "", ModuleSettings(), {}, enabled=False).version == NO_VERSION


def test_the_module_global() -> None:
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


def test_a_repository() -> None:
    obj = repository_object(Path("/modules"))
    assert is_managed(obj)
    assert str(read_repository(obj, [Path("/modules")]).source) == "FolderSource(path=PosixPath('/modules'))"
    names = {repository_name(Path(path)) for path in ("/modules", "/modules2", "/other")}
    assert len(names) == 3
    assert repository_name(Path("/modules")) in names


def test_other_content_asks_for_the_module_to_be_applied_anew() -> None:
    live = module_object(WANTED, None)
    assert module_object(WANTED, live) == live
    for changed in (replace(WANTED, content="sha256:2"), replace(WANTED, static={"a": 2})):
        after = annotations(module_object(changed, live))
        assert after[REQUESTED] != annotations(live)[REQUESTED]
    for same in (replace(WANTED, settings=ModuleSettings({"a": 2})), replace(WANTED, enabled_by_default=False)):
        assert annotations(module_object(same, live))[REQUESTED] == annotations(live)[REQUESTED]


def test_what_a_user_asked_for_stays_asked_for() -> None:
    live = module_object(WANTED, None)
    annotations(live)[REQUESTED] = "now"
    assert annotations(module_object(WANTED, live))[REQUESTED] == "now"
    assert annotations(module_object(replace(WANTED, content="sha256:2"), live))[REQUESTED] != "now"


def test_static_values_that_are_too_large() -> None:
    with pytest.raises(
        ArtifactError,
        match=r"module web: expected at most \d+ bytes of static values .* put them into the module's own",
    ):
        module_object(replace(WANTED, static={"a": "x" * MAX_STATIC}), None)


def test_whose_it_is() -> None:
    assert not is_managed({"metadata": {"name": "web"}})
    assert not is_managed({"metadata": {"labels": {MANAGED_BY: "somebody"}}})


def test_what_counts_as_a_deviation() -> None:
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
