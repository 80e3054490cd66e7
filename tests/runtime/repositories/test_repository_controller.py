"""The controller of repositories by itself: its inputs, and its limits. tests/runtime/test_versions.py has its stories."""

from datetime import timedelta
from pathlib import Path

import pytest

from tests.runtime.support.objects import repository
from tests.runtime.support.world import open_world
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.repositories.repository_controller import DEFAULT_INTERVAL, IN_USE_FINALIZER, read_interval
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY, finalizers_of

REPOSITORY = ObjectKey(PACKAGE_REPOSITORY, "", "default")


def test_intervals() -> None:
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


async def test_a_repository_of_exact_versions_is_asked_for_no_package(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        obj = await world.until_object(REPOSITORY, lambda each: find(each, "status", "lastScanTime") is not None)
        assert find(obj, "status", "packagesCount") == 0
        assert "no resource follows" in find_str(obj, "status", "conditions", 0, "message")


async def test_a_wrong_interval_is_refused_by_the_server(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        wrong: JsonObject = {**repository("127.0.0.1:1/a"), "spec": {"scanInterval": "daily", "folder": {"path": "/x"}}}
        with pytest.raises(Exception, match=r"spec\.scanInterval"):
            await world.client.create(wrong)
