"""The reports of decisions about packages after a start: no report is wrong, and each decision is reported in the end."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from tests.runtime.controllers.test_installed_packages import held_up, until_true
from tests.runtime.support.dependents import any_of, mandatory, message, modules, package, push
from tests.runtime.support.world import Ground, World, open_ground
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.formats.json.value import find_str


@asynccontextmanager
async def restarted(ground: Ground, folder: Path, **needs: str) -> AsyncIterator[tuple[World, int, list[str]]]:
    """Open a daemon that finds the Module ``ground`` and the Modules in ``needs`` installed. It cannot load ``ground`` before
    the test writes to a named pipe.

    Yields the world, the descriptor of the pipe, and a list of all reported statuses, each as its state and message.
    """
    async with ground.open_world() as world:
        await world.repository()
        config = f'{held_up(folder)}\n[ ! -e "{folder}/bad" ] || exit 1'
        await push(world, package(folder, "ground", config=config))
        await world.create_module("ground")
        await world.until_state("", "ground", "Ready")
        await modules(world, folder, **needs)
    os.mkfifo(folder / "held")
    gate = os.open(folder / "held", os.O_RDWR | os.O_NONBLOCK)
    try:
        async with ground.open_world() as world, trio.open_nursery() as nursery:
            said: list[str] = []

            async def watch() -> None:
                with world.modules.changes() as changes:
                    while True:
                        objects = world.modules.objects().values()
                        said.extend(f"{find_str(obj, 'status', 'summary', 'state')}: {message(obj)}" for obj in objects)
                        await changes.wait()

            nursery.start_soon(watch)
            decision = world.runtime.scheduler.decision
            await until_true(lambda: all(decision(name) is not None for name in needs))
            assert not any(world.runtime.scheduler.enabled(name) for name in needs)
            for name in needs:
                await world.until("", name, lambda obj: find_str(obj, "status", "summary", "state") == "Updating")
            yield world, gate, said
            nursery.cancel_scope.cancel()
    finally:
        os.close(gate)


@pytest.mark.slow
async def test_packages_whose_dependency_is_being_loaded_are_not_suspended(tmp_path: Path) -> None:
    needs = {"house": mandatory("ground"), "roof": mandatory("house"), "tent": any_of("ground", "absent")}
    async with open_ground(tmp_path) as ground, restarted(ground, tmp_path, **needs) as (world, gate, said):
        os.write(gate, b"go\n" * 8)
        for name in needs:
            await world.until_state("", name, "Ready")
        assert not [each for each in said if each.startswith("Suspended")]


@pytest.mark.slow
async def test_packages_whose_dependency_cannot_be_loaded_are_suspended(tmp_path: Path) -> None:
    """Check that each of the packages becomes Suspended, even ``ham`` and ``eggs``, which could satisfy each other's any-of
    groups.
    """
    needs = {"house": mandatory("ground"), "roof": mandatory("house"), "ham": any_of("ground", "eggs")}
    needs["eggs"] = any_of("ground", "ham")
    async with open_ground(tmp_path) as ground, restarted(ground, tmp_path, **needs) as (world, gate, said):
        assert not [each for each in said if each.startswith("Suspended")]
        (tmp_path / "bad").touch()
        os.write(gate, b"go\n" * 8)
        await world.until("", "ground", has_reason("PackageHookFailed"))
        for name in needs:
            await world.until_state("", name, "Suspended")


@pytest.mark.slow
async def test_a_package_whose_dependency_is_not_installed_is_suspended_at_once(tmp_path: Path) -> None:
    async with open_ground(tmp_path) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await modules(world, tmp_path, ground="", house=mandatory("ground"))
            await world.annotate("", "ground", "wharfinger.dev/ignore-dependents", "true")
            await world.delete("", "ground")
            await world.until_gone("", "ground")
        async with ground.open_world() as world:
            await world.until(
                "",
                "house",
                lambda obj: "not installed" in message(obj) and not world.runtime.packages.unreported.unknown,
            )
            await world.until_state("", "house", "Suspended")
