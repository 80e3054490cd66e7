"""Rounds (beforeAll hooks, packages, afterAll hooks) that are interrupted by a restart, by failing hooks, or by changes of the
Module ``global`` itself.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.runtime.support.converging import Notes, add, hook, write_hooks
from tests.runtime.support.objects import module
from tests.runtime.support.world import Ground, World, one_error, open_ground, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import JsonObject, find_int, find_object, find_str
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import ENABLED_BY_DEFAULT

pytestmark = pytest.mark.unmeasured

MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: of-NAME}
data: {colour: '{{ .Values.global.colour }}'}
"""
RED: JsonObject = {"settings": {"colour": "red"}}
AROUND = '"beforeAll": 1', '"afterAll": 1'


def config(*bindings: str) -> str:
    return f'{{"configVersion": "v1", {", ".join(bindings)}}}'


def global_hooks(folder: Path, package: str = "global-hooks", **hooks: str) -> None:
    write_hooks(folder / "modules" / package, {f"hooks/{name}.sh": text for name, text in hooks.items()})


def a_module(folder: Path, name: str, does: dict[str, str] | None = None, **files: str) -> None:
    """Write a module with a ConfigMap and a hook. The hook runs before the ConfigMap is applied, and after it is deleted."""
    own = hook(folder, name, config('"beforeHelm": 1', '"afterDeleteHelm": 1'), does or {})
    texts = {"templates/map.yaml": MAP.replace("NAME", name), "openapi/values.yaml": "type: object\n"}
    write_hooks(folder / "modules" / name, texts | {"hooks/own.sh": own} | files)


async def begin(world: World, *names: str) -> Notes:
    await world.local_repository(world.folder / "modules")
    await world.create_module("global", package="global-hooks", version="0.0.0")
    for name in names:
        await world.create_module(name, version="0.0.0")
    return Notes(world, world.folder / "notes")


async def create_switched_off(world: World, name: str) -> None:
    """Create a Module that is off by default."""
    obj = module(name, version="0.0.0")
    find_object(obj, "metadata")["annotations"] = {ENABLED_BY_DEFAULT: "false"}
    await world.client.create(obj)


async def colour(world: World, name: str) -> str:
    return find_str(await world.config_map(SYSTEM_NAMESPACE, f"of-{name}"), "data", "colour")


@asynccontextmanager
async def restarting(folder: Path) -> AsyncIterator[Ground]:
    with one_error():
        async with open_ground(folder) as ground:
            yield ground


@pytest.mark.slow
async def test_a_restart_makes_one_round(tmp_path: Path) -> None:
    """All packages start in the round after the restart. A Module that only a global hook enables stays on until this hook has
    run again.
    """
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND), {"beforeAll": add("/gammaEnabled", "true")}))
    a_module(tmp_path, "alpha")
    a_module(tmp_path, "gamma")
    async with restarting(tmp_path) as ground:
        async with ground.open_world() as world:
            notes = await begin(world)
            await notes.tell("all beforeAll -", "all afterAll -")
            await world.create_module("alpha", version="0.0.0")
            await create_switched_off(world, "gamma")
            await world.until_state("", "alpha", "Ready")
            await world.until_state("", "gamma", "Ready")
            await notes.rest()
            notes.path.unlink()
        async with ground.open_world() as world:
            notes = Notes(world, tmp_path / "notes")
            await notes.tell(
                "all beforeAll -", "alpha beforeHelm -", "all afterAll -", "gamma beforeHelm -", apart="gamma"
            )


@pytest.mark.slow
async def test_a_module_no_longer_enabled_is_removed_after_a_restart(tmp_path: Path) -> None:
    """After a restart, the installed Module stays until the global hooks have run. None of them enables it, so it is removed."""
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND)))
    a_module(tmp_path, "gamma")
    async with restarting(tmp_path) as ground:
        async with ground.open_world() as world:
            notes = await begin(world, "gamma")
            await notes.tell("all beforeAll -", "gamma beforeHelm -", "all afterAll -")
        await world.annotate("", "gamma", ENABLED_BY_DEFAULT, "false")
        async with ground.open_world() as world:
            notes = Notes(world, tmp_path / "notes")
            await world.until_state("", "gamma", "Disabled")
            await notes.until(3)
            await notes.rest()
            assert "gamma afterDeleteHelm -" in notes.lines()
            assert notes.lines()[-1] == "all afterAll -"


@pytest.mark.slow
async def test_a_module_not_yet_run_with_new_global_values_runs_after_a_restart(tmp_path: Path) -> None:
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND)))
    files = {"package.yaml": "apiVersion: v2\nname: alpha\ntype: Module\nversion: 0.0.0\n"}
    a_module(tmp_path, "alpha", {"beforeHelm": f"[ ! -e {tmp_path}/broken ]"}, **files)
    async with restarting(tmp_path) as ground:
        async with ground.open_world() as world:
            notes = await begin(world, "alpha")
            await notes.tell("all beforeAll -", "alpha beforeHelm -", "all afterAll -")
            (tmp_path / "broken").touch()
            await world.change("", "global", RED)
            await notes.until(2)
        assert notes.lines()[:2] == ["all beforeAll red", "alpha beforeHelm red"]
        (tmp_path / "broken").unlink()
        notes.path.unlink()
        async with ground.open_world() as world:
            notes = Notes(world, tmp_path / "notes")
            await notes.tell("all beforeAll red", "alpha beforeHelm red", "all afterAll red")
            assert await colour(world, "alpha") == "red"


@pytest.mark.slow
async def test_a_module_switched_within_a_round_causes_no_further_round(tmp_path: Path) -> None:
    """The set of enabled Modules is evaluated only after the beforeAll hooks, so one round is enough."""
    flag = f'[ "$colour" != red ] || {add("/gammaEnabled", "true")}'
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND), {"beforeAll": flag}))
    a_module(tmp_path, "gamma")
    async with open_world(tmp_path) as world:
        notes = await begin(world)
        await create_switched_off(world, "gamma")
        await notes.tell("all beforeAll -", "all afterAll -")
        await world.until_state("", "gamma", "Disabled")
        await world.change("", "global", RED)
        await notes.tell("all beforeAll red", "gamma beforeHelm red", "all afterAll red")


@pytest.mark.slow
async def test_endless_switching_by_afterall_hooks_is_reported(tmp_path: Path) -> None:
    flips = (
        f"n=$(cat {tmp_path}/n 2>/dev/null || true); echo x$n >{tmp_path}/n; {add('/gammaEnabled', '$((${#n} % 2))')}"
    )
    flips = flips.replace("$((${#n} % 2))", "$([ $((${#n} % 2)) == 0 ] && echo true || echo false)")
    global_hooks(tmp_path, all=hook(tmp_path, "all", config('"afterAll": 1'), {"afterAll": flips}))
    async with open_world(tmp_path) as world:
        notes = await begin(world)
        await world.until("", "global", has_reason("ValuesLoop"))
        await notes.tell(*["all afterAll -"] * 6)


@pytest.mark.slow
async def test_a_suspended_module_does_not_end_a_round_early(tmp_path: Path) -> None:
    """A suspended Module has nothing to do in a round. The round still waits for the other Modules."""
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND)))
    a_module(tmp_path, "alpha")
    a_module(tmp_path, "zeta")
    async with open_world(tmp_path) as world:
        notes = await begin(world, "alpha", "zeta")
        await world.until_state("", "alpha", "Ready")
        await world.until_state("", "zeta", "Ready")
        await notes.rest()
        await world.change("", "alpha", {"suspend": True})
        await world.until_state("", "alpha", "Suspended")
        await notes.rest()
        notes.path.unlink()
        await world.change("", "global", RED)
        await notes.tell("all beforeAll red", "zeta beforeHelm red", "all afterAll red")


@asynccontextmanager
async def failing_at_the_end(folder: Path) -> AsyncIterator[Notes]:
    """Open a world (`tests/runtime/support/world.py`) with a Module ``global`` whose afterAll hook always fails.

    Wait until the failure is reported, and yield the notes of the hooks.
    """
    global_hooks(folder, all=hook(folder, "all", config(*AROUND), {"afterAll": "false"}))
    async with open_world(folder) as world:
        notes = await begin(world)
        await world.until("", "global", has_reason("EventHookFailed"))
        yield notes


@pytest.mark.slow
async def test_another_package_replaces_a_failing_afterall_hook(tmp_path: Path) -> None:
    """The Module ``global`` gets another package, whose hooks succeed. The new package is installed although the old hook
    fails.
    """
    global_hooks(tmp_path, "mended", all=hook(tmp_path, "mended", config(*AROUND)))
    async with failing_at_the_end(tmp_path) as notes:
        await notes.world.change("", "global", {"packageName": "mended"})
        await notes.world.until_state("", "global", "Ready")
        await notes.rest()
        assert notes.lines()[-2:] == ["mended beforeAll -", "mended afterAll -"]


@pytest.mark.sampled
@pytest.mark.parametrize(("spec", "state"), [({"suspend": True}, "Suspended"), ({"enabled": False}, "Disabled")])
async def test_global_hooks_are_stopped_although_one_fails(spec: JsonObject, state: str, tmp_path: Path) -> None:
    async with failing_at_the_end(tmp_path) as notes:
        await notes.world.change("", "global", spec)
        await notes.world.until_state("", "global", state)
        await notes.rest()


async def test_global_hooks_are_removed_although_one_fails(tmp_path: Path) -> None:
    async with failing_at_the_end(tmp_path) as notes:
        await notes.world.delete("", "global")
        await notes.world.until_gone("", "global")
        await notes.rest()


@pytest.mark.slow
async def test_a_failing_afterall_hook_yields_to_newer_settings(tmp_path: Path) -> None:
    """The hook fails with the old settings. New settings arrive while it runs, so it is next run with these."""
    waits = f'until [ -e {tmp_path}/go ]; do sleep 0.01; done; [ "$colour" == red ]'
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND), {"afterAll": waits}))
    a_module(tmp_path, "alpha")
    async with open_world(tmp_path) as world:
        notes = await begin(world, "alpha")
        await notes.until(3)
        await world.change("", "global", RED)
        wanted = world.generations["", "global"]
        await world.until("", "global", lambda obj: find_int(obj, "status", "observedGeneration") == wanted)
        (tmp_path / "go").touch()
        await notes.tell(
            "all beforeAll -",
            "alpha beforeHelm -",
            "all afterAll -",
            "all beforeAll red",
            "alpha beforeHelm red",
            "all afterAll red",
        )


@pytest.mark.slow
async def test_afterall_hooks_waiting_for_an_uninstall_yield_to_newer_settings(tmp_path: Path) -> None:
    """The afterAll hooks wait for an uninstall, which may take long. New settings start a new round without this wait."""
    waits = f"until [ -e {tmp_path}/go ]; do sleep 0.01; done"
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND)))
    a_module(tmp_path, "gamma", {"afterDeleteHelm": waits})
    async with open_world(tmp_path) as world:
        notes = await begin(world, "gamma")
        await notes.tell("all beforeAll -", "gamma beforeHelm -", "all afterAll -")
        await world.change("", "gamma", {"enabled": False})
        await notes.until(2)
        await world.change("", "global", RED)
        await notes.until(3)
        assert notes.lines()[-1] == "all beforeAll red"
        (tmp_path / "go").touch()
        await notes.tell(
            "all beforeAll -", "all beforeAll red", "all afterAll red", "gamma afterDeleteHelm -", apart="gamma"
        )


@pytest.mark.slow
async def test_removing_the_global_module_removes_its_enabled_flags(tmp_path: Path) -> None:
    """If only a flag of a global hook has enabled a Module, the Module is uninstalled. Other Modules stay.

    A new Module ``global`` begins without flags.
    """
    global_hooks(tmp_path, all=hook(tmp_path, "all", config(*AROUND), {"beforeAll": add("/gammaEnabled", "true")}))
    a_module(tmp_path, "alpha")
    a_module(tmp_path, "gamma")
    async with open_world(tmp_path) as world:
        notes = await begin(world, "alpha")
        await create_switched_off(world, "gamma")
        await world.until_state("", "gamma", "Ready")
        await world.until_state("", "alpha", "Ready")
        await notes.rest()
        notes.path.unlink()
        await world.delete("", "global")
        await world.until_gone("", "global")
        await world.until_state("", "gamma", "Disabled")
        await notes.tell("gamma afterDeleteHelm -")
        await world.until_state("", "alpha", "Ready")
        await world.create_module("global", package="global-hooks", version="0.0.0")
        await notes.tell("all beforeAll -", "alpha beforeHelm -", "all afterAll -", "gamma beforeHelm -", apart="gamma")


async def test_disabled_global_hooks_delay_no_module(tmp_path: Path) -> None:
    global_hooks(tmp_path, all="#!/bin/sh\necho 'configVersion: v1'\n")
    a_module(tmp_path, "alpha")
    async with open_world(tmp_path) as world:
        await begin(world, "alpha")
        await world.until("", "global", has_reason("HookInvalid"))
        await world.change("", "global", {"enabled": False})
        await world.until_state("", "alpha", "Ready")
