"""The guard of dependents (`wharfinger.runtime.controllers.guard`) holds changes that would break dependents. The tests check
which packages it checks again, how often it does so, and that these checks end.
"""

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.support.dependents import any_of, application, mandatory, message, modules, package, push
from tests.runtime.support.world import open_ground, open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from tests.runtime.test_bundles import BUNDLE, EDITION, PART_OF_IT, open_bundled, publish
from tests.runtime.test_dependents import WOULD_BREAK
from wharfinger.runtime.scheduler.graph import Node
from wharfinger.runtime.scheduler.scheduler import Broken, Scheduler


@pytest.mark.slow
async def test_checks_that_change_nothing_end(tmp_path: Path) -> None:
    """Two packages are held because of the same dependent. A check of one of them must not cause checks of the other for ever."""
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, ceph="", nfs="")
        await application(world, tmp_path, "shop", any_of("ceph", "nfs"))
        await modules(world, tmp_path, east=mandatory("ceph"), west=mandatory("nfs"))
        await world.delete("", "ceph")
        await world.delete("", "nfs")
        await world.until("", "ceph", WOULD_BREAK)
        await world.until("", "nfs", WOULD_BREAK)
        with trio.fail_after(300):
            await trio.testing.wait_all_tasks_blocked(0.1)
        await world.delete("", "east")
        await world.until_gone("", "ceph")
        await world.delete("", "west")
        await world.until("", "nfs", lambda obj: "would break prod.shop" in str(obj["status"]))


@pytest.mark.slow
@pytest.mark.unmeasured
async def test_a_chain_of_removals_needs_few_checks_for_each_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each package waits only for its direct dependents, and is checked only when they change."""
    asked: list[str] = []

    ask = Scheduler.would_break

    def counted(scheduler: Scheduler, name: str, node: Node | None) -> tuple[Broken, ...]:
        asked.append(name)
        return ask(scheduler, name, node)

    monkeypatch.setattr(Scheduler, "would_break", counted)
    names = [f"link{number:02}" for number in range(16)]
    async with open_world(tmp_path) as world:
        await world.repository()
        for below, name in zip(["", *names], names, strict=False):
            await modules(world, tmp_path, **{name: mandatory(below) if below else ""})
        for name in names:
            await world.delete("", name)
        for name in names:
            await world.until_gone("", name)
    assert len(asked) <= 8 * len(names)


@pytest.mark.slow
async def test_a_module_off_by_default_stays_on_while_dependents_need_it(
    tmp_path: Path,
) -> None:
    """``database`` is off by default, but stays on while the Application needs it, even after a restart. ``inside`` is on
    anyway, because the bundle contains it.
    """
    async with open_ground(tmp_path) as ground:
        async with open_bundled(ground, EDITION, BUNDLE) as world:
            await world.repository()
            await publish(world, "inside", PART_OF_IT)
            await push(world, package(tmp_path, "database"))
            for name in ("inside", "database"):
                await world.create_module(name, spec={"enabled": True})
                await world.until_state("", name, "Ready")
            await application(world, tmp_path, "shop", "mandatory: [{name: inside}, {name: database}]")
            for name in ("inside", "database"):
                await world.change("", name, {"enabled": None})
            held = await world.until("", "database", WOULD_BREAK)
            assert message(held).startswith("being off by default (spec.enabled is not set) would break prod.shop (")
            await world.until_state("", "inside", "Ready")
            assert world.runtime.scheduler.enabled("prod.shop")
        async with open_bundled(ground, EDITION, BUNDLE) as world:
            with trio.fail_after(300):
                while not all(
                    name in world.runtime.instances and world.runtime.instances[name].applied.verified
                    for name in ("database", "inside", "prod.shop")
                ):
                    await trio.testing.wait_all_tasks_blocked(0.005)
            await world.until("", "database", WOULD_BREAK)
            assert world.runtime.scheduler.enabled("prod.shop")
            await world.delete("prod", "shop")
            await world.until("", "database", has_reason("DisabledByDefault"))
