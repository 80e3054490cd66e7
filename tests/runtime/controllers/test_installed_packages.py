"""What a process finds that starts: packages that are to change, and others of which it does not know yet what they need."""

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
    """What is held is let go by an event, or never."""
    monkeypatch.setattr("wharfinger.runtime.controllers.controller.LOOK_S", 3600.0)


async def patch(ground: Ground, name: str, spec: JsonObject) -> None:
    """Change a Module while no daemon is there."""
    await ground.client.merge_patch(ObjectKey(MODULE, "", name), {"spec": spec})


async def until_true(holds: Callable[[], bool]) -> None:
    """Wait for what no resource says."""
    with trio.fail_after(300):
        while not holds():
            await trio.testing.wait_all_tasks_blocked(0.005)


def is_run(world: World, name: str) -> bool:
    """Whether this process has looked at what is applied of a package, and goes on with it."""
    instance = world.runtime.instances.get(name)
    return instance is not None and instance.applied.verified


@pytest.mark.slow
async def test_a_removal_that_was_held_stays_held_and_the_package_goes_on(tmp_path: Path) -> None:
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
async def test_a_version_that_was_refused_stays_refused_and_rests_as_its_settings_are_not_known(tmp_path: Path) -> None:
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
async def test_what_was_changed_while_no_one_was_there_is_judged_once_all_is_known(tmp_path: Path, change: str) -> None:
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
async def test_what_no_one_minds_is_done_though_it_was_changed_while_no_one_was_there(tmp_path: Path) -> None:
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
    """What makes hooks wait to be let go when they are asked what they want."""
    return f'if [ -p "{folder}/{name}" ]; then read -r _ <"{folder}/{name}"; fi'


@pytest.mark.slow
async def test_nothing_is_removed_while_it_is_not_known_who_needs_it(tmp_path: Path) -> None:
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
                assert message(waits).endswith("prod.shop not loaded yet")  # beside others, as it was the first look
                # It was ready, and stays so at a restart: what it waits for is said as what it reconciles.
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
async def test_what_is_not_known_yet_is_named_as_it_becomes_known(tmp_path: Path) -> None:
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
                await world.until("", "database", lambda obj: message(obj).endswith(": east, west not loaded yet"))
                os.write(gates["west"], b"go\n" * 8)
                await world.until("", "database", lambda obj: message(obj).endswith(": east not loaded yet"))
                os.write(gates["east"], b"go\n" * 8)
                await world.until("", "database", WOULD_BREAK)
        finally:
            for gate in gates.values():
                os.close(gate)


@pytest.mark.slow
async def test_a_suspension_in_the_same_edit_as_what_is_refused_is_adopted(tmp_path: Path) -> None:
    """It breaks nobody; also by a process that finds both."""
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
@pytest.mark.sampled
@pytest.mark.parametrize("unknown", ["folder", "settings"])
async def test_what_rests_though_its_removal_is_refused_has_run_for_whatever_needs_it(
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
        kept = [each.message for each in caplog.records if "its installed version is kept, but not run" in each.message]
        why = "its resource has, or may have, other changes beside the held change"
        assert kept == [f"database: its installed version is kept, but not run: {why}"]


@pytest.mark.slow
async def test_a_package_that_cannot_be_loaded_holds_no_one_and_protects_no_one(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await database_and_shop(world, tmp_path)
        record = ObjectKey(SECRET, "prod", "wharfinger.app.shop")
        await ground.client.merge_patch(record, {"data": {"state.json": "bm90IEpTT04="}})
        await ground.client.delete(ObjectKey(MODULE, "", "database"))
        async with ground.open_world() as world:
            await world.until_gone("", "database")
            await world.until("prod", "shop", has_reason("StateFailed"))


async def test_what_can_be_read_no_more_is_removed_all_the_same(tmp_path: Path) -> None:
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
async def test_a_removal_that_had_begun_goes_on_and_what_it_needs_waits_for_it(tmp_path: Path) -> None:
    """Also where others need it by now: half of it is gone."""
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
async def test_a_resource_that_cannot_be_acted_on_protects_what_is_installed_for_it(tmp_path: Path, why: str) -> None:
    """What it requires is on the disk; and it goes on once it can."""
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
async def test_a_module_that_is_to_move_protects_from_where_it_is(tmp_path: Path) -> None:
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
async def test_a_dependent_that_is_suspended_is_known_as_soon_as_it_is_read(tmp_path: Path) -> None:
    """Reading it changes nothing in its status; what waited for it to be known is judged all the same."""
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
async def test_a_package_is_known_although_the_record_of_its_release_cannot_be_read(tmp_path: Path) -> None:
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
        await installed.record.delete()  # the package is removed, and created again
        assert (await states.record(world.client, AppId("prod", "shop"))).state == PackageState()
