"""Explanations of why a package is off. They name other versions, found in a real registry, with which it would be on."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
import trio
from trio.testing import MockClock

from tests.runtime.support.stuck import push
from tests.runtime.support.world import World, open_world
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.formats.json.value import JsonObject, find
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.inspection import version_advice
from wharfinger.runtime.inspection.version_advice import KEPT_S, MAX_KEPT, MAX_WAIT_S, VersionAdvice
from wharfinger.runtime.repositories.repository_controller import open_repositories
from wharfinger.runtime.resources.resources import APPLICATION, PACKAGE_REPOSITORY
from wharfinger.runtime.scheduler.state import Graph
from wharfinger.runtime.scheduler.version_search import SearchResult
from wharfinger.runtime.scheduler_details import ExplanationSnapshot


async def push_shop(world: World, version: str, constraint: str) -> None:
    """Push a package that needs the Application ``database``."""
    needs = f"}}, applications: {{mandatory: [{{name: database, constraint: '{constraint}'}}]"
    await push(world, "shop", version=version, more=needs)


def looked_up(world: World) -> list[str]:
    """Return the recorded downloads without the checks whether a repository answers, because such a check may run at any time."""
    return [each for each in world.downloads if not each.endswith("checked-by-wharfinger")]


async def advised(world: World, name: str, *, ready: bool = False) -> ExplanationSnapshot:
    def find_object(key: ObjectKey) -> JsonObject | None:
        return (world.applications if key.resource == APPLICATION else world.modules).get(key)

    users = (world.applications, world.modules)
    async with (
        open_informer(world.client, PACKAGE_REPOSITORY) as informer,
        open_repositories(
            world.client, informer, users, world.runtime.tools.open_source, world.runtime.now, lambda _: None
        ) as repositories,
    ):
        advice = VersionAdvice(world.runtime, repositories, find_object)
        first = await advice.add_to(ExplanationSnapshot(name, ready=ready, causes=(), remedy="change something"))
        downloads = looked_up(world)
        assert (
            await advice.add_to(ExplanationSnapshot(name, ready=ready, causes=(), remedy="change something")) == first
        )
        assert looked_up(world) == downloads  # the found versions are cached
        return first


@pytest.mark.slow
async def test_versions_of_packages_that_are_not_followed_are_looked_up(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        for version in ("1.0.0", "2.0.0"):
            await push(world, "db", version=version)
        await push_shop(world, "1.0.0", ">=2")
        await world.repository()
        await world.create("prod", "database", package="db")
        await world.create("prod", "shop", package="shop")
        await world.until_state("prod", "database", "Ready")
        await world.until("prod", "shop", lambda obj: find(obj, "status", "summary", "state") == "Pending")
        told = await advised(world, "prod.shop")
        assert told.remedy == "change something; these versions would work: prod.database 2.0.0 (now 1.0.0)"
        assert (await advised(world, "prod.database")).remedy == "change something"
        assert (await advised(world, "gone.gone")).remedy == "change something"


@pytest.mark.slow
async def test_updates_that_are_only_possible_together_are_advised(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await push(world, "db")
        await push_shop(world, "1.0.0", ">=1")
        await world.repository()
        await world.create("prod", "database", package="db")
        await world.until_state("prod", "database", "Ready")
        await push_shop(world, "2.0.0", ">=2")
        await push(world, "db", version="2.0.0")
        follows: JsonObject = {"packageVersion": None, "versionRange": "<2"}
        await world.create("prod", "shop", package="shop", more=follows)
        await world.until_state("prod", "shop", "Ready")
        await world.change("prod", "shop", {"versionRange": ">=1"})
        await world.until("prod", "shop", lambda obj: find(obj, "status", "update", "reason") == "NotPossible")
        told = await advised(world, "prod.shop", ready=True)
        assert told.also == (
            "prod.shop: these versions would work: prod.database 2.0.0 (now 1.0.0), prod.shop 2.0.0 (now 1.0.0)",
        )
        assert (await advised(world, "prod.database", ready=True)).also == ()


async def test_advice_is_cached_until_the_scheduler_changes(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[str] = []

    async def search(_graph: Graph, name: str, *_others: object) -> SearchResult:
        searched.append(name)
        if name == "slow.slow":
            await trio.sleep(MAX_WAIT_S * 2)
        return SearchResult((), complete=True, tried=(name,))

    monkeypatch.setattr(version_advice, "search_versions", search)
    scheduler = SimpleNamespace(graph=Graph())
    advice = VersionAdvice(cast("Runtime", SimpleNamespace(scheduler=scheduler)), None, lambda _key: None)

    async def remedy(name: str) -> str:
        return (await advice.add_to(ExplanationSnapshot(name, ready=False, causes=()))).remedy

    for _ in range(3):
        assert await remedy("a.a") == "no known versions of a.a would work together"
        assert await remedy("slow.slow") == ""
    assert searched == ["a.a", "slow.slow"]
    scheduler.graph = Graph()
    await remedy("a.a")
    await trio.sleep(KEPT_S)
    await remedy("a.a")
    assert searched[2:] == ["a.a", "a.a"]
    for number in range(2 * MAX_KEPT):
        await remedy(f"a.p{number}")
    assert len(advice.kept) == MAX_KEPT
