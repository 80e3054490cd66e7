"""The guard's own bookkeeping: whom it looks at again, how often, and that this ends."""

from pathlib import Path

import pytest
import trio
import trio.testing

from tests.runtime.dependents import any_of, application, mandatory, modules
from tests.runtime.test_dependents import WOULD_BREAK
from tests.runtime.world import open_world
from wharfinger.runtime.scheduler import Broken, Node, Scheduler


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
        with trio.fail_after(30):
            await trio.testing.wait_all_tasks_blocked(0.1)
        await world.delete("", "east")
        await world.until_gone("", "ceph")
        await world.delete("", "west")
        await world.until("", "nfs", lambda obj: "would break prod.shop" in str(obj["status"]))


async def test_a_chain_that_goes_at_once_is_judged_a_few_times_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each waits only for those that build on it, and is looked at for their sake, not for all that build on those."""
    asked: list[str] = []

    class Counting(Scheduler):
        def would_break(self, name: str, node: Node | None) -> tuple[Broken, ...]:
            asked.append(name)
            return super().would_break(name, node)

    monkeypatch.setattr("wharfinger.runtime.runtime.Scheduler", Counting)
    names = [f"link{number:02}" for number in range(12)]
    async with open_world(tmp_path) as world:
        await world.repository()
        for below, name in zip(["", *names], names, strict=False):
            await modules(world, tmp_path, **{name: mandatory(below) if below else ""})
        for name in names:
            await world.delete("", name)
        for name in names:
            await world.until_gone("", name)
    print(len(asked))
    assert len(asked) <= 8 * len(names)
