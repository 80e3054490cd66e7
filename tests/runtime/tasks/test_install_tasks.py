"""The installation of packages of every kind, and the error messages for invalid packages."""

import dataclasses
import gzip
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, write
from tests.programs import ROOT
from tests.runtime.support.world import lose_repository, open_ground, open_world
from tests.runtime.tasks.test_hook_runs import bash, hooked
from wharfinger.formats.json.value import JsonObject, find_list, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.process.journal_file import JournalFile
from wharfinger.runtime.lifecycle.journal import Journal
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.tasks.install_tasks import DOWNLOAD


@pytest.mark.slow
async def test_invalid_packages_are_reported_and_affect_no_other_package(tmp_path: Path) -> None:
    """The status of each invalid package has one line that names the problem, and the valid package is Ready."""
    bad_hook = hooked(
        tmp_path / "badhook", {"a.sh": bash("configVersion: v1\nkubernetes: [{kid: Pod}]", "")}, name="badhook"
    )
    unknown = hooked(tmp_path / "lonely", {}, name="lonely")
    (unknown / "package.yaml").write_text(
        "apiVersion: v1\ntype: Application\nname: lonely\nversion: 1.0.0\n"
        "requirements: {modules: {mandatory: [{name: database, constraint: '>=1.0'}]}}\n"
    )
    broken = write(tmp_path / "broken", {"package.yaml": "apiVersion: v1\ntype: Application\nname: [broken\n"})
    strict = hooked(tmp_path / "strict", {}, name="strict")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.client.create(folder_repository(tmp_path, "local"))
        await world.push("web", "1.0.0")
        await world.push("damaged", "1.0.0")
        for folder, name in ((bad_hook, "badhook"), (unknown, "lonely"), (strict, "strict")):
            await world.push_folder(folder, name, "1.0.0")
        damage(tmp_path, "damaged")
        await world.create("prod", "good")
        await world.create("prod", "no-yaml", package=broken.name, repository="local")
        await world.create("prod", "no-chart", package="absent")
        await world.create("prod", "wrong-digest", package="damaged")
        await world.create("prod", "wrong-settings", package="strict", settings={"mode": 3, "mod": "x"})
        await world.create("prod", "wrong-hook", package="badhook")
        await world.create("prod", "no-dependency", package="lonely")
        expected = {
            "no-yaml": ("Failed", "FolderInvalid", ("package.yaml",)),
            "no-chart": ("Failed", "ArtifactNotFound", ("absent",)),
            "wrong-digest": ("Failed", "DigestMismatch", ("sha256:",)),
            "wrong-settings": ("Failed", "SettingsInvalid", ("mode", "mod")),
            "wrong-hook": ("Failed", "HookInvalid", ("hooks/a.sh", "kid")),
            "no-dependency": ("Pending", "DependencyNotEnabled", ("database",)),
        }
        for name, (state, reason, words) in expected.items():
            obj = await world.until("prod", name, has_reason(reason))
            assert find_str(obj, "status", "summary", "state") == state, name
            message = find_str(obj, "status", "summary", "message")
            assert all(word in message for word in words), message
            assert "\n" not in message
            assert find_str(obj, "status", "summary", "tip"), name
        await world.until_state("prod", "good", "Ready")


async def test_a_hook_without_execute_permission_is_a_warning(tmp_path: Path) -> None:
    """The package becomes Ready without this hook, and its status has a warning."""
    source = hooked(tmp_path / "web", {"a.sh": bash("configVersion: v1\nonStartup: 1", "")}, name="web")
    (source / "hooks" / "off.sh").write_text("#!/bin/sh\n")
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(source, "web", "1.0.0")
        await world.create("prod", "web")
        obj = await world.until_state("prod", "web", "Ready")
        (warning,) = find_list(obj, "status", "warnings")
        assert warning == "hooks/off.sh: no executable permissions, chmod +x is required to run this hook"


async def test_a_failed_load_clears_warnings_of_the_earlier_version(tmp_path: Path) -> None:
    """If the old warnings stayed, `wharfinger why` would show them as if they had caused the failure."""
    source = hooked(tmp_path / "web", {"a.sh": bash("configVersion: v1\nonStartup: 1", "")}, name="web")
    (source / "hooks" / "off.sh").write_text("#!/bin/sh\n")
    broken = bash("configVersion: v1\nkubernetes: [{kid: Pod}]", "")
    newer = hooked(tmp_path / "newer" / "web", {"a.sh": broken}, name="web")
    definition = newer / "package.yaml"
    definition.write_text(definition.read_text().replace("1.0.0", "2.0.0"))
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(source, "web", "1.0.0")
        await world.push_folder(newer, "web", "2.0.0")
        await world.create("prod", "web")
        assert find_list(await world.until_state("prod", "web", "Ready"), "status", "warnings")
        await world.change("prod", "web", {"packageVersion": "2.0.0"})
        obj = await world.until("prod", "web", has_reason("HookInvalid"))
        assert find_list(obj, "status", "warnings") == []
        package = world.runtime.dump_by_name("prod.web")
        assert package is not None
        assert package.warnings == ()


def folder_repository(folder: Path, name: str = "default") -> JsonObject:
    """Return a PackageRepository for a folder."""
    return {
        "apiVersion": "wharfinger.dev/v1alpha1",
        "kind": "PackageRepository",
        "metadata": {"name": name},
        "spec": {"folder": {"path": str(folder)}},
    }


def has_reason(reason: str) -> Callable[[JsonObject], bool]:
    """Return a check that the condition Ready has this reason."""
    return lambda obj: reasoned(obj) == reason


def reasoned(obj: JsonObject) -> str:
    """Return the reason of the condition Ready."""
    ready = next((one for one in find_list(obj, "status", "conditions") if find_str(one, "type") == "Ready"), {})
    return find_str(ready, "reason")


def damage(folder: Path, package: str) -> None:
    """Change the last byte of each layer that contains the name of this package, in the registry's folder."""
    damaged = 0
    for blob in folder.glob("registry/**/blobs/sha256/*/*/data"):
        data = blob.read_bytes()
        if data[:2] == b"\x1f\x8b" and package.encode() in gzip.decompress(data):
            blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
            damaged += 1
    assert damaged, "no layer of that package found"


@pytest.mark.slow
async def test_a_module_in_the_layout_of_addon_operator_is_installed_and_removed(tmp_path: Path) -> None:
    """The example module has an enabled script, a Python hook that patches values, and objects in other namespaces."""
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(ROOT / "examples" / "namespace-defaults", "namespace-defaults", "1.0.0")
        await world.create_module("namespace-defaults", spec={"settings": {"quota": {"pods": 7}}})
        await world.until_state("", "namespace-defaults", "Ready")
        quota = await world.client.resource_type("v1", "ResourceQuota")
        namespace: JsonObject = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": "team-a", "labels": {"namespace-defaults/managed": "true"}},
        }
        await world.client.create(namespace)
        made = await world.until_object(
            ObjectKey(quota, "team-a", "namespace-defaults"),
            lambda obj: find_str(obj, "spec", "hard", "pods") == "7",
        )
        assert find_str(made, "metadata", "annotations", "meta.helm.sh/release-namespace") == SYSTEM_NAMESPACE
        await world.change("", "namespace-defaults", {"enabled": False})
        disabled = await world.until_state("", "namespace-defaults", "Disabled")
        assert "currentVersion" not in str(disabled["status"])
        await world.until_no_object(ObjectKey(quota, "team-a", "namespace-defaults"))
        await world.change("", "namespace-defaults", {"enabled": True})
        await world.until_state("", "namespace-defaults", "Ready")
        await world.until_object(ObjectKey(quota, "team-a", "namespace-defaults"), lambda _obj: True)
        await world.delete("", "namespace-defaults")
        await world.until_gone("", "namespace-defaults")
        await world.until_no_object(ObjectKey(quota, "team-a", "namespace-defaults"))


async def test_a_negative_vote_of_an_enabled_script_disables_the_module(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        script = tmp_path / "module"
        write(
            script, {"values.yaml": "scripted: {}\n", "Chart.yaml": "apiVersion: v2\nname: scripted\nversion: 1.0.0\n"}
        )
        (script / "enabled").write_text(
            '#!/usr/bin/env bash\njq -r ".scripted.wanted == \\"yes\\"" "$VALUES_PATH" >"$MODULE_ENABLED_RESULT"\n'
            'echo "not wanted yet" >"$MODULE_ENABLED_REASON"\n'
        )
        (script / "enabled").chmod(0o755)
        await world.push_folder(script, "scripted", "1.0.0")
        await world.create_module("scripted", spec={"settings": {"wanted": "no"}})
        off = await world.until_state("", "scripted", "Disabled")
        assert find_str(off, "status", "summary", "message") == "not wanted yet"
        await world.change("", "scripted", {"settings": {"wanted": "yes"}})
        await world.until_state("", "scripted", "Ready")


async def test_packages_of_the_wrong_kind_are_refused_with_the_correct_kind(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(ROOT / "examples" / "reloader", "reloader", "1.0.0")
        await world.create_module("reloader")
        failed = await world.until_state("", "reloader", "Failed")
        assert "use a resource of kind Application" in find_str(failed, "status", "summary", "message")


async def test_a_package_of_a_folder_is_installed(tmp_path: Path) -> None:
    chart(tmp_path / "packages" / "web", "web", "1.0.0")
    async with open_world(tmp_path) as world:
        await world.client.create(folder_repository(tmp_path / "packages"))
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        await lose_repository(world.client)
        await world.until("prod", "shop", lambda obj: reasoned(obj) == "RepositoryNotFound")


async def test_a_folder_corrected_while_the_daemon_was_stopped_is_read_again(tmp_path: Path) -> None:
    """The folder is read again, although the journal says that the download of the package is complete."""
    folder = tmp_path / "packages" / "hooked"
    hooked(folder, {"a.sh": bash("{configVersion: v7}", ":")})
    async with open_ground(tmp_path) as ground:
        with closing(JournalFile(tmp_path / "journal.db")) as file:
            async with dataclasses.replace(ground, journal=Journal(file)).open_world() as world:
                await world.client.create(folder_repository(tmp_path / "packages"))
                await world.create("prod", "app", package="hooked")
                await world.until("prod", "app", has_reason("HookInvalid"))
            hooked(folder, {"a.sh": bash("{configVersion: v1, onStartup: 1}", ":")})
            left = Journal(file)
            assert DOWNLOAD in {step for entry in left.entries() for step in entry.completed}
            async with dataclasses.replace(ground, journal=left).open_world() as world:
                await world.until_state("prod", "app", "Ready")


async def test_a_module_and_an_application_cannot_share_a_release(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push("web", "1.0.0")
        await world.create_module("web", spec={"namespace": "prod"})
        await world.until_state("", "web", "Ready")
        await world.create("prod", "web")
        refused = await world.until("prod", "web", lambda obj: reasoned(obj) == "SpecInvalid")
        assert "Module web already has the release web" in find_str(refused, "status", "summary", "message")
        await world.until_state("", "web", "Ready")


async def test_a_package_installed_under_the_name_of_its_dependency_is_refused(tmp_path: Path) -> None:
    lonely = hooked(tmp_path / "lonely", {}, name="lonely")
    (lonely / "package.yaml").write_text(
        "type: Application\nname: lonely\nversion: 1.0.0\nrequirements: {applications: {mandatory: [{name: db}]}}\n"
    )
    async with open_world(tmp_path) as world:
        await world.repository()
        await world.push_folder(lonely, "lonely", "1.0.0")
        await world.create("prod", "db", package="lonely")
        refused = await world.until("prod", "db", has_reason("SpecInvalid"))
        assert "install it under another name" in find_str(refused, "status", "summary", "message")
