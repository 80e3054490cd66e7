"""Votes of enabled scripts while a daemon process starts. A script may vote before the modules that its vote depends on are
loaded.

The script of the module ``scripted`` votes yes if the module ``dns`` is on and there is no file ``no``. While there is a file
``held``, a starting process waits before it loads ``dns``. While there is a file ``broken``, it cannot load ``dns``.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import write
from tests.runtime.controllers.test_installed_packages import until_true
from tests.runtime.support.dependents import modules, package, push
from tests.runtime.support.world import Ground, World, open_ground
from wharfinger.formats.json.value import find_str
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import REQUESTED
from wharfinger.runtime.status.reasons import Reason

pytestmark = pytest.mark.unmeasured

SCRIPT = """\
#!/usr/bin/env bash
cd "{folder}"
answer=false
if [ ! -e no ] && jq -e '.global.enabledModules | index("dns")' "$VALUES_PATH" >/dev/null; then answer=true; fi
echo "$answer" >>asked
echo "$answer" >"$MODULE_ENABLED_RESULT"
"""


def scripted(folder: Path) -> Path:
    """Write the module ``scripted`` in addon-operator's layout."""
    place = folder / "scripted-1.0.0"
    files = {
        "Chart.yaml": "apiVersion: v2\nname: scripted\nversion: 1.0.0\n",
        "values.yaml": "scripted: {}\n",
        "enabled": SCRIPT.format(folder=folder),
        "templates/out.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: of-scripted}\n",
    }
    write(place, files)
    (place / "enabled").chmod(0o755)
    return place


def asked(folder: Path) -> list[str]:
    """Return the votes of the script so far."""
    path = folder / "asked"
    return path.read_text().split() if path.exists() else []


async def of_scripted(world: World) -> str:
    """Return the uid of the ConfigMap of ``scripted``, or "" if the ConfigMap does not exist."""
    return find_str(await world.config_map(SYSTEM_NAMESPACE, "of-scripted"), "metadata", "uid")


def refused(world: World) -> bool:
    decided = world.runtime.scheduler.decision("scripted")
    return decided is not None and decided.reason == Reason.DISABLED_BY_SCRIPT


async def installed(ground: Ground, folder: Path) -> str:
    """Run a daemon that installs the Modules ``dns`` and ``scripted``, and stop it. Return the uid of the ConfigMap of
    ``scripted``.
    """
    config = f'cd "{folder}"\nwhile [ -e held ]; do sleep 0.02; done\n[ ! -e broken ]'
    async with ground.open_world() as world:
        await world.repository()
        await push(world, package(folder, "dns", config=config))
        await world.create_module("dns")
        await world.until_state("", "dns", "Ready")
        await push(world, scripted(folder))
        await world.create_module("scripted")
        await world.until_state("", "scripted", "Ready")
        assert asked(folder) == ["true"]
        return await of_scripted(world)


@asynccontextmanager
async def restarted_and_refused(ground: Ground, folder: Path, uid: str) -> AsyncIterator[World]:
    """Run the next daemon until the script has voted no, and check that this vote has not led to an uninstall."""
    async with ground.open_world() as world:
        await until_true(lambda: refused(world))
        await world.runtime.queues.wait_idle("scripted")
        assert asked(folder) == ["true", "false"]
        assert not world.runtime.scheduler.unwanted("scripted")
        assert await of_scripted(world) == uid
        yield world


@pytest.mark.slow
async def test_a_script_that_voted_no_early_votes_again_once_all_modules_are_loaded(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        uid = await installed(ground, tmp_path)
        for _ in range(2):
            (tmp_path / "held").touch()
            (tmp_path / "asked").write_text("true\n")
            async with restarted_and_refused(ground, tmp_path, uid) as world:
                (tmp_path / "held").unlink()
                await until_true(lambda: world.runtime.scheduler.enabled("scripted"))
                await world.until_state("", "scripted", "Ready")
                await world.until_state("", "dns", "Ready")
                assert asked(tmp_path) == ["true", "false", "true"]
                assert await of_scripted(world) == uid


@pytest.mark.slow
async def test_a_negative_vote_uninstalls_nothing_while_a_module_cannot_be_loaded(tmp_path: Path) -> None:
    """The enabled script of the installed Module ``scripted`` votes no while ``dns`` cannot be loaded. This vote must not
    uninstall ``scripted``, because it may change as soon as ``dns`` is loaded.
    """
    async with open_ground(tmp_path) as ground:
        uid = await installed(ground, tmp_path)
        (tmp_path / "broken").touch()
        async with restarted_and_refused(ground, tmp_path, uid) as world:
            await world.until("", "dns", lambda obj: "exit status 1" in find_str(obj, "status", "summary", "message"))
            await until_true(lambda: not world.runtime.packages.unreported.unknown)
            await world.runtime.queues.wait_idle("scripted")
            assert await of_scripted(world) == uid
            (tmp_path / "broken").unlink()
            await world.annotate("", "dns", REQUESTED, "now")
            await world.until_state("", "dns", "Ready")
            await until_true(lambda: world.runtime.scheduler.enabled("scripted"))
            await world.until_state("", "scripted", "Ready")
            assert await of_scripted(world) == uid


@pytest.mark.sampled
@pytest.mark.parametrize("how", ["votes no again", "dns is removed"])
async def test_a_negative_vote_uninstalls_the_module_once_all_modules_are_loaded(tmp_path: Path, how: str) -> None:
    """Only ``dns`` is not loaded at first. All Modules are loaded once ``dns`` is loaded, or once it is removed."""
    async with open_ground(tmp_path) as ground:
        uid = await installed(ground, tmp_path)
        (tmp_path / "held").touch()
        if how == "votes no again":
            (tmp_path / "no").touch()
        async with restarted_and_refused(ground, tmp_path, uid) as world:
            if how == "votes no again":
                (tmp_path / "held").unlink()
            else:
                await world.delete("", "dns")
                (tmp_path / "held").unlink()
                await world.until_gone("", "dns")
            await until_true(lambda: world.runtime.scheduler.unwanted("scripted"))
            await world.until_state("", "scripted", "Disabled")
            await world.runtime.queues.wait_idle("scripted")
            assert not await of_scripted(world)


@pytest.mark.slow
async def test_a_suspended_module_disabled_by_its_script_does_not_count_as_installed(tmp_path: Path) -> None:
    """The script of ``scripted`` disables it, and then a user suspends it. The module ``rival`` excludes ``scripted``.

    After a restart, the daemon enables ``rival``, although it does not run the scripts of suspended modules.
    """
    rival = "noneOf: [{name: both, modules: [{name: scripted}]}]"
    async with open_ground(tmp_path) as ground:
        await installed(ground, tmp_path)
        async with ground.open_world() as world:
            await world.until_state("", "scripted", "Ready")
            (tmp_path / "no").touch()
            await world.annotate("", "scripted", REQUESTED, "now")
            await world.until_state("", "scripted", "Disabled")
            await modules(world, tmp_path, rival=rival)
            await world.change("", "scripted", {"suspend": True})
            await world.until_state("", "scripted", "Suspended")
        async with ground.open_world() as world:
            await until_true(lambda: {"scripted", "dns", "rival"} <= world.runtime.instances.keys())
            for name in ("scripted", "dns", "rival"):
                await world.runtime.queues.wait_idle(name)
            await world.until_state("", "rival", "Ready")
            assert not world.runtime.scheduler.enabled("scripted")
            assert world.runtime.scheduler.enabled("rival")
