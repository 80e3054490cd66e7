"""The order in which a daemon's runtime runs packages: which packages wait for a package that was interrupted, has failed or
was refused.

Hooks wait for files. While there is a file ``held``, the hook of ``base`` does not end. Attempt N of ``crit`` waits until the
file ``may-N`` exists.
"""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.controllers.test_installed_packages import until_true
from tests.runtime.support.dependents import application, mandatory, message, modules, package, push
from tests.runtime.support.notes import put
from tests.runtime.support.world import World, open_world
from tests.runtime.tasks.test_hook_runs import bash
from tests.runtime.tasks.test_install_tasks import has_reason
from tests.runtime.test_dependents import data
from wharfinger.formats.json.value import JsonObject, find_int, find_str
from wharfinger.queue.backoff import BackoffPolicy
from wharfinger.queue.events import MAIN_LANE
from wharfinger.runtime.core.packages import PATIENCE
from wharfinger.runtime.core.runtime import STALLED_RETRY
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import IGNORE_DEPENDENTS, REQUESTED
from wharfinger.runtime.scheduler_details import NodeSnapshot

pytestmark = pytest.mark.unmeasured

AT_ONCE = partial(BackoffPolicy, initial_s=0.001, max_s=0.01, jitter=0)
CRITICAL = "critical: true\nweight: {}\n"
IS_CYCLE = has_reason("DependencyCycle")


def saying(place: Path, more: str) -> Path:
    """Add lines to the ``package.yaml`` of a package."""
    path = place / "package.yaml"
    path.write_text(path.read_text() + more)
    return place


def doing(place: Path, body: str) -> Path:
    """Add a beforeHelm hook with this body to a package."""
    write(place, {"hooks/before.sh": bash("{configVersion: v1, beforeHelm: 1}", body)})
    (place / "hooks" / "before.sh").chmod(0o755)
    return place


def node(world: World, name: str) -> NodeSnapshot:
    """Return the snapshot of a package in the scheduler."""
    found = world.runtime.scheduler.snapshot(name)
    assert found is not None, f"{name} is no node"
    return found


def lacks(world: World, name: str) -> list[str]:
    """Return what a node is parked on, for example "package/crit" or "tier/20" (the nodes of order 20)."""
    return [f"{each.kind}/{each.name}" for each in node(world, name).lacks]


def graph(world: World) -> list[tuple[object, ...]]:
    """Return all decisions and dependencies, without the states of the runs."""
    nodes = world.runtime.scheduler.nodes()
    return [(each.name, each.version, each.order, each.dependencies, each.decision, each.reason) for each in nodes]


def attempts(world: World, name: str) -> int:
    """Return the number of attempts of the task at the head of the package's main lane."""
    tasks = world.runtime.queues.dump_one(name).tasks
    return next((task.attempt for task in tasks if task.lane == MAIN_LANE), 0)


async def of(world: World, name: str) -> str:
    """Return the uid of a Module's ConfigMap. It changes if the ConfigMap is deleted and created again."""
    return find_str(await world.config_map(SYSTEM_NAMESPACE, f"of-{name}"), "metadata", "uid")


def looked_at(world: World, name: str, holds: Callable[[JsonObject], bool]) -> Callable[[JsonObject], bool]:
    """Return a function that checks whether ``holds`` is true, and whether the newest generation of a Module was reconciled."""
    least = world.generations.get(("", name), 1)
    return lambda obj: holds(obj) and find_int(obj, "status", "observedGeneration") >= least


# --- failed packages --------------------------------------------------------------------------------------------------------


def failing(folder: Path) -> Path:
    """Write the module ``crit``. Attempt N waits for the file ``may-N``, and fails unless there is a file ``ok``."""
    body = (
        f'cd "{folder}"\nn=$(($(cat count 2>/dev/null || echo 0) + 1))\necho "$n" >count\n'
        'while [ ! -e "may-$n" ]; do sleep 0.02; done\n[ -e ok ]\n'
    )
    return saying(doing(package(folder, "crit"), body), CRITICAL.format(10))


async def attempted(world: World, folder: Path, number: int) -> None:
    """Wait until the attempt ``number`` to run the hook of ``crit`` has begun."""
    count = folder / "count"
    await until_true(
        lambda: attempts(world, "crit") == number and count.exists() and count.read_text() == f"{number}\n"
    )


@pytest.mark.slow
async def test_a_tier_waits_for_retries_until_the_package_counts_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``crit`` fails, ``next`` depends on it, and ``shop`` has a higher order than both. ``shop`` runs as soon as ``crit``
    counts as failed, and ``next`` as soon as ``crit`` succeeds.
    """
    monkeypatch.setattr("wharfinger.runtime.core.service.BackoffPolicy", AT_ONCE)
    async with open_world(tmp_path) as world:
        await world.repository()
        await push(world, failing(tmp_path))
        await push(world, saying(package(tmp_path, "next", mandatory("crit")), CRITICAL.format(20)))
        await push(world, package(tmp_path, "shop"))
        for name in ("crit", "next"):
            await world.create_module(name)
        await until_true(lambda: world.runtime.scheduler.decision("next") is not None)
        for number in range(1, PATIENCE):
            await attempted(world, tmp_path, number)
            (tmp_path / f"may-{number}").touch()
        await attempted(world, tmp_path, PATIENCE)
        await world.create("prod", "shop", package="shop")
        await until_true(lambda: world.runtime.scheduler.node("prod.shop") is not None)
        assert not node(world, "crit").failed
        assert (node(world, "prod.shop").state, lacks(world, "prod.shop")) == ("idle", ["tier/20"])
        (tmp_path / f"may-{PATIENCE}").touch()
        await world.until_state("prod", "shop", "Ready")
        assert node(world, "crit").failed
        assert (node(world, "next").state, lacks(world, "next")) == ("idle", ["package/crit"])
        (tmp_path / "ok").touch()
        (tmp_path / f"may-{PATIENCE + 1}").touch()
        for name in ("crit", "next"):
            await world.until_state("", name, "Ready")


async def test_a_permanent_failure_does_not_hold_its_tier(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await push(world, saying(package(tmp_path, "crit"), CRITICAL.format(10)))
        await push(world, package(tmp_path, "shop"))
        await world.create_module("crit", spec={"settings": {"mode": 3}})
        failed = await world.until_state("", "crit", "Failed")
        assert "mode" in message(failed)
        assert node(world, "crit").failed
        assert attempts(world, "crit") < PATIENCE
        await world.create("prod", "shop", package="shop")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_run_ordered_during_a_parked_update_does_not_hold_its_tier(tmp_path: Path) -> None:
    """The update of ``crit`` has failed permanently. A subscription then causes another run of ``crit``, but packages of higher
    orders do not wait for this run.
    """
    more = CRITICAL.format(10) + "subscriptions: [conf]\n"
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, conf="")
        await push(world, saying(package(tmp_path, "crit"), more))
        await world.create_module("crit")
        await world.until_state("", "crit", "Ready")
        broken = saying(package(tmp_path, "crit", version="2.0.0"), more)
        write(broken, {"hooks/broken.sh": "#!/bin/sh\necho configVersion: v9\n"})
        (broken / "hooks" / "broken.sh").chmod(0o755)
        await push(world, broken)
        await world.change("", "crit", {"packageVersion": "2.0.0"})
        await world.until_state("", "crit", "Degraded")
        before = node(world, "crit").run
        await world.change("", "conf", {"settings": {"mode": "new"}})
        await until_true(lambda: node(world, "crit").run > before)
        assert node(world, "crit").failed
        await application(world, tmp_path, "shop", "")
        # The failure of the former version does not hold back a good version.
        await push(world, saying(package(tmp_path, "crit", version="2.0.1"), more))
        await world.change("", "crit", {"packageVersion": "2.0.1"})
        await world.until_state("", "crit", "Ready")
        assert await data(world, "crit") == ("2.0.1", "none")
        assert not node(world, "crit").failed


# --- suspended packages -----------------------------------------------------------------------------------------------------


async def base_that_runs(world: World, folder: Path) -> None:
    """Push two packages: ``base``, whose hook does not end while there is a file ``held``, and ``shop``, which needs ``base``.
    Create only ``base``, and suspend it.
    """
    body = f'cd "{folder}"\n[ -e held ] || exit 0\necho >reached\nwhile [ -e held ]; do sleep 0.02; done'
    await world.repository()
    await push(world, doing(package(folder, "base"), body))
    await push(world, package(folder, "shop", mandatory("base")))
    await world.create_module("base", spec={"suspend": True})
    await world.until_state("", "base", "Suspended")


async def reached(folder: Path) -> None:
    await until_true((folder / "reached").exists)


@pytest.mark.slow
async def test_a_package_suspended_during_a_run_still_satisfies_dependents(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await base_that_runs(world, tmp_path)
        await world.change("", "base", {"suspend": False})
        await world.until_state("", "base", "Ready")
        (tmp_path / "held").touch()
        await world.change("", "base", {"settings": {"mode": "new"}})
        await reached(tmp_path)
        assert node(world, "base").state == "scheduled"
        await world.create("prod", "shop", package="shop")
        await until_true(lambda: world.runtime.scheduler.node("prod.shop") is not None)
        assert lacks(world, "prod.shop") == ["package/base"]
        await world.change("", "base", {"suspend": True})
        await world.until_state("prod", "shop", "Ready")
        assert (tmp_path / "held").exists()
        assert await data(world, "base") == ("1.0.0", "none")
        await world.until_state("", "base", "Suspended")
        (tmp_path / "held").unlink()
        await world.change("", "base", {"suspend": False})
        await world.until_state("", "base", "Ready")
        assert await data(world, "base") == ("1.0.0", "new")
        await world.until_state("prod", "shop", "Ready")


@pytest.mark.slow
async def test_a_package_suspended_during_its_first_run_satisfies_no_dependent(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await base_that_runs(world, tmp_path)
        (tmp_path / "held").touch()
        await world.change("", "base", {"suspend": False})
        await reached(tmp_path)
        await world.change("", "base", {"suspend": True})
        await world.until_state("", "base", "Suspended")
        await world.create("prod", "shop", package="shop")
        await until_true(lambda: world.runtime.scheduler.node("prod.shop") is not None)
        assert node(world, "base").failed
        assert (node(world, "prod.shop").state, lacks(world, "prod.shop")) == ("idle", ["package/base"])
        (tmp_path / "held").unlink()
        await world.change("", "base", {"suspend": False})
        await world.until_state("prod", "shop", "Ready")


# --- a Disable that was missed ---------------------------------------------------------------------------------------------


async def off(world: World, name: str) -> None:
    """Disable a Module, even if other packages need it."""
    await world.annotate("", name, IGNORE_DEPENDENTS, "true")
    await world.change("", name, {"enabled": False})
    await world.until_state("", name, "Disabled")


async def missed(world: World, *, enabled: bool) -> None:
    """Set ``spec.enabled`` of the Module ``mid`` while it is suspended, and wait until the scheduler knows the change."""
    await world.change("", "mid", {"enabled": enabled})
    await world.until("", "mid", looked_at(world, "mid", bool))
    await until_true(lambda: world.runtime.scheduler.unwanted("mid") is not enabled)


@pytest.mark.slow
async def test_a_package_resumed_without_its_dependency_is_not_deleted(tmp_path: Path) -> None:
    """``mid`` is disabled and enabled again while it is suspended and its dependency ``base`` is off. When it is resumed, it
    waits for ``base``, and is not uninstalled.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, base="", mid=mandatory("base"))
        uid = await of(world, "mid")
        await world.change("", "mid", {"suspend": True})
        await world.until_state("", "mid", "Suspended")
        await off(world, "base")
        await missed(world, enabled=False)
        assert world.runtime.instances["mid"].node.missed_disable is not None
        await missed(world, enabled=True)
        await world.change("", "mid", {"suspend": False})
        await world.until("", "mid", looked_at(world, "mid", has_reason("DependencyNotEnabled")))
        await world.runtime.queues.wait_idle("mid")
        assert await of(world, "mid") == uid
        await world.change("", "base", {"enabled": True})
        await world.until_state("", "mid", "Ready")
        assert await of(world, "mid") == uid


@pytest.mark.slow
async def test_a_disable_during_a_suspension_is_cancelled_by_an_enable(tmp_path: Path) -> None:
    """While ``mid`` is suspended, it is disabled and enabled again. So it must not be uninstalled when it is resumed. The
    change that resumes it also requests a new version, which is pushed only after ``base`` was disabled.
    """
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, base="", mid=mandatory("base"))
        uid = await of(world, "mid")
        await world.change("", "mid", {"suspend": True})
        await world.until_state("", "mid", "Suspended")
        await missed(world, enabled=False)
        await missed(world, enabled=True)
        await world.change("", "mid", {"suspend": False, "packageVersion": "1.1.0"})
        await world.until("", "mid", looked_at(world, "mid", has_reason("ArtifactNotFound")))
        await off(world, "base")
        await push(world, package(tmp_path, "mid", mandatory("base"), version="1.1.0"))
        await world.annotate("", "mid", REQUESTED, "now")
        await until_true(lambda: node(world, "mid").version == "1.1.0")
        await world.until("", "mid", has_reason("DependencyNotEnabled"))
        await world.runtime.queues.wait_idle("mid")
        assert await of(world, "mid") == uid
        await world.change("", "base", {"enabled": True})
        await world.until_state("", "mid", "Ready")
        assert await data(world, "mid") == ("1.1.0", "none")
        assert await of(world, "mid") == uid


async def test_a_package_disabled_during_a_suspension_is_deleted_on_resumption(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.repository()
        await modules(world, tmp_path, mid="")
        await world.change("", "mid", {"suspend": True})
        await world.until_state("", "mid", "Suspended")
        await missed(world, enabled=False)
        assert await of(world, "mid")
        await world.change("", "mid", {"suspend": False})
        await world.until_state("", "mid", "Disabled")
        assert not await of(world, "mid")


# --- refused cycles ---------------------------------------------------------------------------------------------------------


async def chain(world: World, folder: Path) -> list[tuple[object, ...]]:
    """Install ``base``, ``mid`` (needs ``base``) and ``shop`` (needs ``mid``). Return the graph of the scheduler."""
    await world.repository()
    await modules(world, folder, base="", mid=mandatory("base"))
    await application(world, folder, "shop", mandatory("mid"))
    return graph(world)


async def serves(world: World, before: list[tuple[object, ...]]) -> None:
    """Check that the graph is unchanged, and that dependents of ``base`` still run."""
    assert graph(world) == before
    for namespace, name in (("", "mid"), ("prod", "shop")):
        await world.change(namespace, name, {"settings": {"mode": world.runtime.instances["base"].desired.version}})
        await world.until_state(namespace, name, "Ready")
    assert graph(world) == before


@pytest.mark.slow
async def test_a_spec_that_closes_a_cycle_leaves_the_graph_unchanged(
    tmp_path: Path,
) -> None:
    async with open_world(tmp_path) as world:
        before = await chain(world, tmp_path)
        await world.change("", "base", {"dependsOn": [{"kind": "Module", "name": "mid"}]})
        await world.until("", "base", looked_at(world, "base", IS_CYCLE))
        assert graph(world) == before
        base = world.runtime.instances["base"]
        assert base.desired.begun is not None
        loaded = base.files.definition
        put(base, desired={"begun": base.desired.begun - STALLED_RETRY - timedelta(seconds=1)})
        world.runtime.retry_stalled("base")
        await until_true(lambda: base.files.definition is not loaded and base.node.refused is not None)
        await world.until("", "base", IS_CYCLE)
        await serves(world, before)
        await world.change("", "base", {"dependsOn": None})
        await world.until_state("", "base", "Ready")
        assert graph(world) == before


@pytest.mark.slow
async def test_a_version_that_closes_a_cycle_leaves_the_graph_unchanged(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        before = await chain(world, tmp_path)
        await push(world, package(tmp_path, "base", mandatory("mid"), version="2.0.0"))
        await world.change("", "base", {"packageVersion": "2.0.0"})
        told = await world.until("", "base", looked_at(world, "base", IS_CYCLE))
        assert find_str(told, "status", "currentVersion", "version") == "1.0.0"
        await serves(world, before)
        assert await data(world, "base") == ("1.0.0", "none")
        with trio.fail_after(300):
            await world.runtime.queues.wait_idle("base")
        await world.change("", "base", {"packageVersion": "1.0.0"})
        await world.until_state("", "base", "Ready")
        assert graph(world) == before
