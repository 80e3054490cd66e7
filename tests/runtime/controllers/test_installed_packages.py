"""A daemon that starts while changes of packages are pending, and that does not know the requirements of all packages yet."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.support.dependents import application, mandatory, message, modules, package, push, went
from tests.runtime.support.world import Ground, World, lose_repository, open_ground
from tests.runtime.tasks.test_install_tasks import has_reason
from tests.runtime.test_controller_modules import movable
from tests.runtime.test_dependents import WAITS, WOULD_BREAK, data, database_and_shop
from wharfinger.cluster.records.release import ReleaseRecordError
from wharfinger.formats.json.value import JsonObject, JsonValue, find, find_int, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.installed_packages import read_installed
from wharfinger.runtime.lifecycle.package_state import PackageState
from wharfinger.runtime.resources.identity import AppId
from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS, MODULE, SECRET


@pytest.fixture(autouse=True)
def no_net(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disable the timer after which held changes are checked again, so that only an event can release a held change."""
    monkeypatch.setattr("wharfinger.runtime.controllers.controller.LOOK_S", 3600.0)


async def patch(ground: Ground, name: str, spec: JsonObject) -> None:
    """Change a Module while no daemon runs."""
    await ground.client.merge_patch(ObjectKey(MODULE, "", name), {"spec": spec})


async def until_true(holds: Callable[[], bool]) -> None:
    """Wait for a condition that no resource reports."""
    with trio.fail_after(300):
        while not holds():
            await trio.testing.wait_all_tasks_blocked(0.005)


def is_run(world: World, name: str) -> bool:
    """Return whether this process has verified the applied objects of a package."""
    instance = world.runtime.instances.get(name)
    return instance is not None and instance.applied.verified


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_held_removal_stays_held_after_a_restart_and_the_package_runs(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await world.delete("", "database")
            await world.until("", "database", WOULD_BREAK)
        async with ground.open_world() as world:
            await until_true(lambda: is_run(world, "database") and is_run(world, "prod.shop"))
            await world.until("", "database", WOULD_BREAK)
            assert await data(world, "database") == ("1.0.0", "none")
            downloads = len(world.downloads)
            assert downloads == 2
            await world.delete("prod", "shop")
            await world.until_gone("", "database")
            assert went(tmp_path) == ["going-shop", "gone-shop", "going-database", "gone-database"]


@pytest.mark.slow
async def test_a_refused_version_stays_refused_after_a_restart(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await push(world, package(tmp_path, "database", version="2.0.0"))
            await world.change("", "database", {"packageVersion": "2.0.0", "settings": {"mode": "new"}})
            await world.until("", "database", WOULD_BREAK)
        async with ground.open_world() as world:
            await until_true(lambda: is_run(world, "prod.shop"))
            held = await world.until("", "database", WOULD_BREAK)
            assert find_str(held, "status", "currentVersion", "version") == "1.0.0"
            assert await data(world, "database") == ("1.0.0", "none")
            assert not is_run(world, "database")
            await push(world, package(tmp_path, "shop", version="2.0.0"))
            await world.change("prod", "shop", {"packageVersion": "2.0.0"})
            await world.until_state("", "database", "Ready")
            assert await data(world, "database") == ("2.0.0", "new")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("change", ["version", "disable"])
async def test_changes_made_while_no_daemon_ran_are_checked_once_all_packages_are_loaded(
    tmp_path: Path, change: str
) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await push(world, package(tmp_path, "database", version="2.0.0"))
        await patch(ground, "database", {"packageVersion": "2.0.0"} if change == "version" else {"enabled": False})
        async with ground.open_world() as world:
            held = await world.until("", "database", WOULD_BREAK)
            assert "would break prod.shop" in message(held)
            await world.until_state("prod", "shop", "Ready")
            await until_true(lambda: is_run(world, "database"))
            assert await data(world, "database") == ("1.0.0", "none")
            assert find_int(held, "status", "observedGeneration") == find_int(held, "metadata", "generation")
            await world.annotate("", "database", IGNORE_DEPENDENTS, "true")
            if change == "version":
                await world.until_state("", "database", "Ready")
            else:
                await world.until_state("", "database", "Disabled")
            await world.until_state("prod", "shop", "Suspended")


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_compatible_change_made_while_no_daemon_ran_is_applied(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await push(world, package(tmp_path, "database", version="1.5.0"))
        await patch(ground, "database", {"packageVersion": "1.5.0", "settings": {"mode": "new"}})
        async with ground.open_world() as world:
            await world.until("", "database", lambda obj: "1.5.0" in find_str(obj, "status", "summary", "message"))
            await world.until_state("", "database", "Ready")
            await world.until_state("prod", "shop", "Ready")
            assert await data(world, "database") == ("1.5.0", "new")


def held_up(folder: Path, name: str = "held") -> str:
    """Return shell code for the beginning of a hook. If the named pipe ``name`` exists, the hook waits for a line in it."""
    return f'if [ -p "{folder}/{name}" ]; then read -r _ <"{folder}/{name}"; fi'


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_removal_waits_until_all_dependents_are_loaded(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await modules(world, tmp_path, database="", other="")
            await push(world, package(tmp_path, "shop", mandatory("database"), config=held_up(tmp_path)))
            await world.create("prod", "shop", package="shop")
            await world.until_state("prod", "shop", "Ready")
            await push(world, package(tmp_path, "other", version="2.0.0"))
        os.mkfifo(tmp_path / "held")
        gate = os.open(tmp_path / "held", os.O_RDWR | os.O_NONBLOCK)
        try:
            await ground.client.delete(ObjectKey(MODULE, "", "database"))
            await patch(ground, "other", {"packageVersion": "2.0.0"})
            async with ground.open_world() as world:
                waits = await world.until("", "database", WAITS)
                assert message(waits).startswith("the removal waits until the requirements of all packages are known: ")
                # The first check may also name other packages.
                assert message(waits).endswith(("prod.shop is not loaded yet", "prod.shop are not loaded yet"))
                # The package was ready, and keeps that status at a restart. The reason is reported in the condition Reconciling.
                waits = await world.until(
                    "",
                    "other",
                    lambda obj: find(world.condition(obj, "Reconciling"), "reason") == "WaitingForDependents",
                )
                assert find_str(waits, "status", "summary", "state") == "Updating"
                assert find_str(world.condition(waits, "Stalled"), "status") == "False"
                assert find_int(waits, "status", "observedGeneration") < find_int(waits, "metadata", "generation")
                assert went(tmp_path) == []
                os.write(gate, b"go\n" * 8)
                await world.until("", "database", WOULD_BREAK)
                await world.until("", "other", lambda obj: "version 2.0.0 is installed" in message(obj))
                await world.delete("prod", "shop")
                await world.until_gone("", "database")
        finally:
            os.close(gate)


@pytest.mark.slow
async def test_packages_not_loaded_yet_are_listed_until_they_are_loaded(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await modules(world, tmp_path, database="")
            for name in ("east", "west"):
                await push(world, package(tmp_path, name, mandatory("database"), config=held_up(tmp_path, name)))
                await world.create_module(name)
                await world.until_state("", name, "Ready")
        gates = {}
        for name in ("east", "west"):
            os.mkfifo(tmp_path / name)
            gates[name] = os.open(tmp_path / name, os.O_RDWR | os.O_NONBLOCK)
        await ground.client.delete(ObjectKey(MODULE, "", "database"))
        try:
            async with ground.open_world() as world:
                await world.until("", "database", lambda obj: message(obj).endswith(": east, west are not loaded yet"))
                os.write(gates["west"], b"go\n" * 8)
                await world.until("", "database", lambda obj: message(obj).endswith(": east is not loaded yet"))
                os.write(gates["east"], b"go\n" * 8)
                await world.until("", "database", WOULD_BREAK)
        finally:
            for gate in gates.values():
                os.close(gate)


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_suspension_together_with_a_refused_change_is_adopted(tmp_path: Path) -> None:
    """One change suspends and disables the package. The suspension breaks no dependent, so it takes effect, but the disable is
    held. A daemon that finds both changes at its start does the same.
    """
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await world.change("", "database", {"enabled": False, "suspend": True})
            await world.until("", "database", WOULD_BREAK)
            assert world.runtime.lifecycle.is_suspended("database")
            assert world.runtime.scheduler.enabled("prod.shop")
        async with ground.open_world() as world:
            await until_true(lambda: is_run(world, "prod.shop") and "database" in world.runtime.instances)
            await world.until("", "database", WOULD_BREAK)
            assert world.runtime.lifecycle.is_suspended("database")
            assert world.runtime.scheduler.enabled("database")
            assert await data(world, "database") == ("1.0.0", "none")
            await world.delete("prod", "shop")
            await world.until_gone("prod", "shop")
            await world.change("", "database", {"suspend": False})
            await world.until_state("", "database", "Disabled")


@pytest.mark.slow
@pytest.mark.unmeasured
@pytest.mark.sampled
@pytest.mark.parametrize("unknown", ["folder", "settings"])
async def test_a_package_with_a_held_removal_satisfies_dependents_even_if_it_cannot_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, unknown: str
) -> None:
    caplog.set_level("INFO")
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            if unknown == "folder":
                await world.local_repository(tmp_path / "packages")
                (tmp_path / "packages").mkdir()
                package(tmp_path, "database").rename(tmp_path / "packages" / "database")
                package(tmp_path, "shop", mandatory("database")).rename(tmp_path / "packages" / "shop")
                await world.create_module("database")
                await world.create("prod", "shop", package="shop")
                await world.until_state("prod", "shop", "Ready")
                await world.until_state("", "database", "Ready")
            else:
                await database_and_shop(world, tmp_path)
            await world.delete("", "database")
            await world.until("", "database", WOULD_BREAK)
        if unknown == "settings":
            await patch(ground, "database", {"settings": {"mode": "new"}})
        async with ground.open_world() as world:
            await until_true(lambda: is_run(world, "prod.shop"))
            await world.until_state("prod", "shop", "Ready")
            assert not is_run(world, "database")
            assert await data(world, "database") == ("1.0.0", "none")
            for name in ("first", "second"):
                await world.annotate("", "database", name, "look")
                with trio.fail_after(300):
                    await trio.testing.wait_all_tasks_blocked(0.1)
        kept = [each.message for each in caplog.records if "stays installed, but does not run" in each.message]
        why = "its resource has, or may have, other changes besides the held change"
        assert kept == [f"database: the package stays installed, but does not run: {why}"]


@pytest.mark.slow
async def test_a_package_with_an_unreadable_state_holds_no_removal(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
        record = ObjectKey(SECRET, "prod", "wharfinger.app.shop")
        await ground.client.merge_patch(record, {"data": {"state.json": "bm90IEpTT04="}})
        await ground.client.delete(ObjectKey(MODULE, "", "database"))
        async with ground.open_world() as world:
            await world.until_gone("", "database")
            await world.until("prod", "shop", has_reason("StateFailed"))


async def test_a_package_with_an_unreadable_state_can_be_removed(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await modules(world, tmp_path, database="")
        record = ObjectKey(SECRET, "wharfinger-system", "wharfinger.module.database")
        await ground.client.merge_patch(record, {"data": {"state.json": "bm90IEpTT04="}})
        await ground.client.delete(ObjectKey(MODULE, "", "database"))
        async with ground.open_world() as world:
            await world.until_gone("", "database")
            assert await data(world, "database") == ("", "")


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_begun_removal_continues_after_a_restart_before_its_dependencies(tmp_path: Path) -> None:
    """The removal continues although another package needs this package, because parts of the package may already be deleted."""
    stuck = f'[ "${{1:-}}" = --config ] || [ -e "{tmp_path}/go" ] || exit 1'
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await modules(world, tmp_path, ground="")
            await push(world, package(tmp_path, "house", mandatory("ground"), config=stuck))
            await world.create_module("house")
            await world.until_state("", "house", "Ready")
            await application(world, tmp_path, "shop", mandatory("house"))
            await world.delete("", "house")
            await world.until("", "house", WOULD_BREAK)
            await world.annotate("", "house", IGNORE_DEPENDENTS, "true")
            await world.until("", "house", has_reason("PackageHookFailed"))
            await world.annotate("", "house", IGNORE_DEPENDENTS, "false")
            await world.delete("", "ground")
            await world.until("", "ground", WAITS)
        async with ground.open_world() as world:
            await world.until_runtime(lambda: world.runtime.status("ground") is not None)
            waits = await world.until("", "ground", lambda obj: "waits for house" in message(obj))
            assert WAITS(waits)
            await world.until("", "house", has_reason("PackageHookFailed"))
            (tmp_path / "go").touch()
            await world.annotate("", "house", "wharfinger.dev/skip-delete-hooks", "yes")
            await world.until_gone("", "house")
            await world.until_gone("", "ground")
            await world.until_state("prod", "shop", "Suspended")


@pytest.mark.slow
@pytest.mark.sampled
@pytest.mark.parametrize("why", ["SettingsSourceMissing", "SpecInvalid", "RepositoryNotFound"])
async def test_a_package_with_an_unusable_resource_still_holds_removals(tmp_path: Path, why: str) -> None:
    """The daemon reads the requirements of the package from the disk, so it does not need the resource for them. It reconciles
    the package again as soon as the resource is usable.
    """
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await world.secret("later", mode="new")
            sources: list[JsonValue] = [{"kind": "Secret", "name": "missing"}]
            if why == "SpecInvalid":
                sources = [{"kind": "Secret", "name": "later", "key": "mode", "path": "not..one"}]
            if why == "RepositoryNotFound":
                await lose_repository(world.client)
            else:
                await world.change("prod", "shop", {"settingsFrom": sources})
            await world.until("prod", "shop", has_reason(why))
            await world.delete("", "database")
            await world.until("", "database", WOULD_BREAK)
        async with ground.open_world() as world:
            await until_true(lambda: {"database", "prod.shop"} <= world.runtime.instances.keys())
            with trio.fail_after(300):
                await trio.testing.wait_all_tasks_blocked(0.1)
            await world.until("", "database", WOULD_BREAK)
            await world.until("prod", "shop", has_reason(why))
            assert world.runtime.scheduler.enabled("prod.shop")
            assert await data(world, "database") == ("1.0.0", "none")
            assert went(tmp_path) == []
            if why == "RepositoryNotFound":
                await world.repository()
            else:
                await world.change("prod", "shop", {"settingsFrom": None})
            await world.until_state("prod", "shop", "Ready")
            assert is_run(world, "prod.shop")
            await world.delete("prod", "shop")
            await world.until_gone("", "database")


@pytest.mark.slow
async def test_a_module_with_a_new_namespace_still_holds_removals(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await modules(world, tmp_path, ground="", house=mandatory("ground"))
            await world.delete("", "ground")
            await world.until("", "ground", WOULD_BREAK)
            await movable(world)
        await patch(ground, "house", {"namespace": "elsewhere"})
        async with ground.open_world() as world:
            await world.until("", "house", has_reason("SpecInvalid"))
            await until_true(lambda: "ground" in world.runtime.instances)
            with trio.fail_after(300):
                await trio.testing.wait_all_tasks_blocked(0.1)
            await world.until("", "ground", WOULD_BREAK)
            assert world.runtime.scheduler.enabled("house")


@pytest.mark.slow
async def test_a_suspended_dependent_is_known_as_soon_as_it_is_read(tmp_path: Path) -> None:
    """Reading the dependent does not change its status, but packages that wait for its requirements are checked again."""
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
            await world.change("prod", "shop", {"suspend": True})
            await world.until_state("prod", "shop", "Suspended")
        await ground.client.delete(ObjectKey(MODULE, "", "database"))
        async with ground.open_world() as world:
            held = await world.until("", "database", WOULD_BREAK)
            assert "would break prod.shop" in message(held)
            assert await data(world, "database") == ("1.0.0", "none")


@pytest.mark.slow
async def test_a_package_is_loaded_despite_an_unreadable_release_record(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground, ground.open_world() as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Ready")
        record = ObjectKey(SECRET, "prod", "sh.helm.release.v1.shop.v1")
        await world.client.merge_patch(
            record, {"data": {"release": "bm8="}, "metadata": {"labels": {"status": "failed"}}}
        )
        history = world.runtime.tools.releases.history

        async def unreadable() -> None:
            with trio.fail_after(60):
                while True:
                    await history("shop", "prod")
                    await trio.testing.wait_all_tasks_blocked(0.005)

        with pytest.raises(ReleaseRecordError):
            await unreadable()
        states = world.runtime.tools.states
        await states.read(world.client, {"prod.shop"})
        installed = await read_installed(world.runtime, AppId("prod", "shop"), obj)
        assert installed is not None
        assert (installed.state.version, installed.node.name) == ("1.0.0", "prod.shop")
        await installed.record.delete()  # as if the package were removed and created again
        assert (await states.record(world.client, AppId("prod", "shop"))).state == PackageState()
