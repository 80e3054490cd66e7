"""The guard's own bookkeeping: whom it looks at again, how often, and that this ends."""

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
async def test_looks_that_change_nothing_end(tmp_path: Path) -> None:
    """Two that are held for the same package, and named by it, do not keep each other awake."""
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
async def test_a_chain_that_goes_at_once_is_judged_a_few_times_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits only for those that build on it, and is looked at for their sake, not for all that build on those."""
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
async def test_what_the_bundle_says_no_to_is_not_off_for_the_lack_of_a_word_while_others_need_it(
    tmp_path: Path,
) -> None:
    """Also after a restart; one that the bundle has on goes on, as it ever did."""
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
