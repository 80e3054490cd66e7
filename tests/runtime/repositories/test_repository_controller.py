"""Inputs and limits of the controller of repositories. Whole scenarios are in tests/runtime/test_versions.py."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest
import trio

from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_world
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.errors import RegistryError
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.sources.source import Source
from wharfinger.runtime.repositories.repository_controller import (
    DEFAULT_INTERVAL,
    IN_USE_FINALIZER,
    open_repositories,
    read_interval,
)
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY, finalizers_of

REPOSITORY = ObjectKey(PACKAGE_REPOSITORY, "", "default")


def test_scan_intervals_are_parsed() -> None:
    assert read_interval({}) == DEFAULT_INTERVAL
    assert read_interval({"spec": {"scanInterval": "1h30m"}}) == timedelta(minutes=90)
    for text in ("1s", "soon"):
        with pytest.raises(FormatError):
            read_interval({"spec": {"scanInterval": text}})


async def test_only_a_repository_in_use_has_the_finalizer(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.client.create(repository("127.0.0.1:1/a", name="unused"))
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_object(REPOSITORY, lambda obj: IN_USE_FINALIZER in finalizers_of(obj))
        unused = ObjectKey(PACKAGE_REPOSITORY, "", "unused")
        obj = await world.until_object(unused, lambda each: find(each, "status", "conditions") is not None)
        assert finalizers_of(obj) == ()
        await world.client.delete(unused)
        await world.until_no_object(unused)


async def test_a_repository_used_only_with_exact_versions_is_not_scanned(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        obj = await world.until_object(REPOSITORY, lambda each: find(each, "status", "lastScanTime") is not None)
        assert find(obj, "status", "packagesCount") == 0
        assert "no Application or Module follows" in find_str(obj, "status", "conditions", 0, "message")


async def test_a_failed_or_slow_lookup_is_not_repeated_at_once(tmp_path: Path) -> None:
    asked: list[str] = []
    patience = trio.CancelScope()

    @asynccontextmanager
    async def open_broken(_source: Source, package: str) -> AsyncIterator[tuple[Registry, str]]:
        asked.append(package)
        if package == "away":
            raise RegistryError("the registry is away", transient=True)
        patience.cancel()
        await trio.Event().wait()
        yield OciLayout(tmp_path), package

    async with open_world(tmp_path) as world:
        await world.repository()
        async with (
            open_informer(world.client, PACKAGE_REPOSITORY) as informer,
            open_repositories(
                world.client, informer, (), open_broken, world.runtime.now, lambda _: None, scanning=False
            ) as repositories,
        ):
            while informer.get(REPOSITORY) is None:
                await trio.lowlevel.checkpoint()
            async with trio.open_nursery() as nursery:
                for _ in range(3):
                    nursery.start_soon(repositories.look_up, "default", "away")
            with patience:
                await repositories.look_up("default", "slow")
            assert patience.cancelled_caught
            assert await repositories.look_up("default", "slow") is None
            assert await repositories.look_up("default", "away") is None
    assert asked == ["away", "slow"]


async def test_a_wrong_interval_is_refused_by_the_server(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        wrong: JsonObject = {**repository("127.0.0.1:1/a"), "spec": {"scanInterval": "daily", "folder": {"path": "/x"}}}
        with pytest.raises(Exception, match=r"spec\.scanInterval"):
            await world.client.create(wrong)
