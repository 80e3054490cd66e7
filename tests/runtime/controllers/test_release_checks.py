"""Checks of a package's release: a release has one owner, and is not moved to another namespace."""

from pathlib import Path

import pytest

from tests.runtime.support.world import World, open_world
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.release_checks import ReleaseChecks
from wharfinger.runtime.resources.identity import AppId, ModuleId
from wharfinger.runtime.resources.resources import SpecError

pytestmark = pytest.mark.unmeasured
APP, DNS = AppId("kube-system", "dns"), ModuleId("dns", "kube-system")
INSTALLED: JsonObject = {"status": {"release": {"namespace": "kube-system", "revision": 1}}}


def checks(world: World, objects: dict[str, JsonObject]) -> ReleaseChecks:
    def find(key: ObjectKey) -> JsonObject | None:
        return objects.get(key.resource.kind)

    return ReleaseChecks(world.runtime, find)


async def test_a_release_has_one_owner(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        at = checks(world, {})
        at.check(APP, {})
        at.check(APP, {})
        with pytest.raises(
            SpecError, match="Application kube-system/dns already has the release dns in namespace kube-system"
        ):
            at.check(DNS, {})


async def test_the_package_installed_first_owns_the_release_after_a_restart(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        at = checks(world, {"Module": INSTALLED})
        with pytest.raises(SpecError, match="Module dns already has the release dns in namespace kube-system"):
            at.check(APP, {})
        at.check(DNS, {"release": {"namespace": "kube-system"}})


async def test_a_release_is_not_moved(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        with pytest.raises(SpecError, match="the release is in old and cannot be moved; delete the Module"):
            checks(world, {}).check(ModuleId("dns", "new"), {"release": {"namespace": "old"}})
