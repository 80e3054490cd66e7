"""The controller of modules directories, with a control plane in this process: it reads folders and a ConfigMap, and writes
resources.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import write
from tests.runtime.support.objects import module, repository
from tests.runtime.support.world import one_error
from wharfinger.cluster.api.client import ClusterClient, Propagation
from wharfinger.cluster.api.connection import Connection, bearer
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.http_client import open_client
from wharfinger.cluster.watch.informer import Informer, open_informer
from wharfinger.control_plane.service import LOCAL, open_control_plane
from wharfinger.formats.json.value import JsonObject, find, find_object, find_str
from wharfinger.kube.resource import ObjectKey, name_of
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.controllers.managed_modules import CONTENT, MANAGED_BY, PROBLEM, repository_name
from wharfinger.runtime.controllers.modules_dir import ModulesDir, open_modules_dir
from wharfinger.runtime.controllers.state_dir import StartError
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.resources.custom_resources import ensure_crds
from wharfinger.runtime.resources.resources import CONFIG_MAP, ENABLED_BY_DEFAULT, MODULE, PACKAGE_REPOSITORY, REQUESTED
from wharfinger.runtime.resources.static_values import read_static_values

SETTINGS = ObjectKey(CONFIG_MAP, "default", "settings")
PATIENCE_S = 300


class Refusing(LimitedClient):
    """A client that refuses to write some objects."""

    def __init__(self, client: ClusterClient, names: set[str]) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self.names = names
        self.refused_to_delete = trio.Event()

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        if name_of(obj) in self.names:
            raise ClusterError("not today")
        return await super().apply(obj, field_manager=field_manager, force=force, dry_run=dry_run)

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> bool:
        if key.name in self.names:
            self.refused_to_delete.set()
            raise ClusterError("not today")
        return await super().delete(key, uid=uid, propagation=propagation)


@dataclass
class Place:
    """A cluster, and the folders from which the controller installs modules into it."""

    client: ClusterClient
    modules: Informer
    folder: Path

    def open(self, *, global_hooks: bool = False, config_map: bool = True) -> AbstractAsyncContextManager[ModulesDir]:
        return open_modules_dir(
            self.client,
            [self.folder / "modules"],
            global_hooks=self.folder / "global" if global_hooks else None,
            config_map=SETTINGS if config_map else None,
            rescan_s=0.05,
        )

    def spec(self, name: str) -> JsonObject:
        return find_object(self.modules.get(ObjectKey(MODULE, "", name)), "spec")

    def names(self) -> list[str]:
        return sorted(key.name for key in self.modules.objects())

    async def set(self, **data: str) -> None:
        """Write the ConfigMap of settings."""
        obj: JsonObject = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"namespace": SETTINGS.namespace, "name": SETTINGS.name},
            "data": {**data},
        }
        await self.client.apply(obj, field_manager="person", force=True)

    async def until(self, holds: Callable[[], bool]) -> None:
        with trio.move_on_after(PATIENCE_S), self.modules.changes() as changes:
            while not holds():
                await changes.wait()
            return
        raise AssertionError(f"it did not become as wanted; last: {dict(self.modules.objects())}")


@asynccontextmanager
async def open_place(folder: Path) -> AsyncIterator[Place]:
    with one_error():
        async with (
            open_control_plane() as control_plane,
            open_client(Connection(LOCAL, bearer("")), transport=control_plane.transport()) as client,
        ):
            await ensure_crds(client, "test")
            async with open_informer(client, MODULE) as modules:
                await modules.wait_synced()
                yield Place(client, modules, folder)


def files(folder: Path) -> None:
    write(
        folder,
        {
            "modules/values.yaml": "global: {a: 1}\nweb: {size: 1}\nwebEnabled: true\n",
            "modules/010-web/values.yaml": "web: {colour: red}\n",
            "modules/blog/hooks/a.sh": "",
            "global/startup.sh": "",
        },
    )


async def test_folders_become_resources(tmp_path: Path) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place:
        await place.set(**{"global": "b: 2", "web": "size: 3", "blogEnabled": "true"})
        async with place.open(global_hooks=True) as controller:
            assert controller.problems == ()
            await place.until(lambda: place.names() == ["blog", "global", "web"])
            modules_repository = repository_name(tmp_path / "modules")
            assert place.spec("web") == {
                "packageName": "010-web",
                "packageVersion": "0.0.0",
                "packageRepositoryName": modules_repository,
                "namespace": "wharfinger-system",
                "settings": {"size": 3},
            }
            assert (place.spec("blog")["enabled"], place.spec("blog")["settings"]) == (True, {})
            assert (place.spec("global")["enabled"], place.spec("global")["settings"]) == (True, {"b": 2})
            flags = {name: flag_of(place, name) for name in place.names()}
            assert flags == {"blog": "false", "global": None, "web": "true"}
            static = {name: read_static_values(live(place, name)) for name in place.names()}
            assert static == {"blog": {}, "global": {"a": 1}, "web": {"size": 1}}
            found = await place.client.list(PACKAGE_REPOSITORY)
            assert {find_str(each, "metadata", "name"): find(each, "spec") for each in found.items} == {
                modules_repository: {"folder": {"path": str(tmp_path / "modules")}},
                repository_name(tmp_path / "global"): {"folder": {"path": str(tmp_path / "global")}},
            }


def live(place: Place, name: str) -> JsonObject:
    return place.modules.get(ObjectKey(MODULE, "", name)) or {}


def flag_of(place: Place, name: str) -> object:
    return find(live(place, name), "metadata", "annotations", ENABLED_BY_DEFAULT)


def annotation(place: Place, name: str, key: str) -> str:
    return find_str(live(place, name), "metadata", "annotations", key)


async def test_a_changed_config_map_and_changed_folders_are_followed(tmp_path: Path) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place, place.open():
        await place.until(lambda: place.names() == ["blog", "web"])
        await place.set(web="size: 4", webEnabled="false", webMaintenance="NoResourceReconciliation")
        await place.until(lambda: place.spec("web")["settings"] == {"size": 4})
        assert (place.spec("web")["enabled"], place.spec("web")["maintenance"]) == (False, "NoResourceReconciliation")
        await place.set(web="colour: blue")
        await place.until(lambda: place.spec("web")["settings"] == {"colour": "blue"})
        assert place.spec("web").keys().isdisjoint({"enabled", "maintenance"})
        await place.client.delete(SETTINGS)
        await place.until(lambda: place.spec("web")["settings"] == {})
        asked, untouched = annotation(place, "web", REQUESTED), annotation(place, "blog", REQUESTED)
        write(tmp_path, {"modules/010-web/version.json": '{"version": "2.0.0"}', "modules/wiki/hooks/a": ""})
        await place.until(lambda: place.spec("web")["packageVersion"] == "2.0.0" and "wiki" in place.names())
        assert annotation(place, "web", REQUESTED) != asked
        assert annotation(place, "blog", REQUESTED) == untouched
        (tmp_path / "modules" / "010-web").rename(tmp_path / "modules" / "020-web")
        await place.until(lambda: place.spec("web")["packageName"] == "020-web")


async def test_a_module_is_removed_with_its_folder_unless_that_is_unreadable(tmp_path: Path) -> None:
    files(tmp_path)
    write(tmp_path, {"there/enabled": ""})
    (tmp_path / "modules" / "linked").symlink_to(tmp_path / "there")
    async with open_place(tmp_path) as place, place.open(global_hooks=True) as controller:
        await place.until(lambda: place.names() == ["blog", "global", "linked", "web"])
        (tmp_path / "there").rename(tmp_path / "away")
        (tmp_path / "modules" / "blog").rename(tmp_path / "blog")
        await place.until(lambda: place.names() == ["global", "linked", "web"])
        write(tmp_path, {"modules/values.yaml": "webEnabled: maybe"})
        write(tmp_path, {"modules/new/hooks/a": ""})
        await place.until(lambda: bool(annotation(place, "global", PROBLEM)))
        assert "webEnabled: expected true or false, found a string" in controller.problems[0]
        assert place.names() == ["global", "linked", "web"]
        write(tmp_path, {"modules/values.yaml": ""})
        await place.until(lambda: place.names() == ["global", "linked", "new", "web"])
        assert controller.problems == ()


async def test_an_invalid_config_map_is_reported_and_not_applied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place:
        await place.set(web="size: 4")
        async with place.open(global_hooks=True) as controller:
            await place.set(**{"web": "size: 5", "Wrong-key": "", "global": "- 1"})
            await place.until(lambda: bool(annotation(place, "global", PROBLEM)))
            problem = annotation(place, "global", PROBLEM)
            assert "Wrong-key: expected a module's name" in problem
            assert (
                "global: expected an object with settings, found a list; the ConfigMap as a whole is not applied"
                in problem
            )
            assert list(controller.problems) == [problem]
            assert place.spec("web")["settings"] == {"size": 4}
            assert [record.message for record in caplog.records].count(problem) == 1
            await place.set(web="size: 6")
            await place.until(lambda: place.spec("web")["settings"] == {"size": 6})
            await place.until(lambda: not annotation(place, "global", PROBLEM))
            assert controller.problems == ()


@pytest.mark.sampled
@pytest.mark.parametrize("wrong", ["config map", "folder", "values"])
async def test_an_invalid_input_prevents_the_start(wrong: str, tmp_path: Path) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place:
        match wrong:
            case "config map":
                await place.set(webEnabled="on")
            case "folder":
                (tmp_path / "modules").rename(tmp_path / "elsewhere")
            case _:
                write(tmp_path, {"modules/values.yaml": "global: 1"})
        with pytest.raises(StartError) as caught, one_error():
            async with place.open():
                raise AssertionError("it has begun")
        assert {"config map": "webEnabled", "folder": "not a folder; name an existing one", "values": "global"}[
            wrong
        ] in str(caught.value)
        assert place.names() == []


async def test_foreign_resources_are_not_changed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place:
        await place.client.create(module("web", version="9.0.0"))
        await place.client.create(module("shop"))
        await place.client.create(repository("registry.example/packages"))
        async with place.open(config_map=False):
            await place.until(lambda: "blog" in place.names())
            assert place.spec("web")["packageVersion"] == "9.0.0"
            assert "because somebody else made it" in caplog.text
            # If a user deletes a resource, we create it again as ours. If a user removes its label, it belongs to the user.
            await place.client.delete(ObjectKey(MODULE, "", "web"))
            await place.until(lambda: bool(find(live(place, "web"), "metadata", "labels", MANAGED_BY)))
            key = ObjectKey(MODULE, "", "blog")
            await place.client.merge_patch(key, {"metadata": {"labels": {MANAGED_BY: None}}, "spec": {"enabled": True}})
            (tmp_path / "modules" / "010-web").rename(tmp_path / "web")
            (tmp_path / "modules" / "blog").rename(tmp_path / "blog")
            await place.until(lambda: place.names() == ["blog", "shop"])
        names = {find_str(each, "metadata", "name") for each in (await place.client.list(PACKAGE_REPOSITORY)).items}
        assert names == {"default", repository_name(tmp_path / "modules")}


async def test_foreign_changes_are_corrected_and_foreign_additions_stay(tmp_path: Path) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place, place.open():
        await place.until(lambda: "web" in place.names())
        patch: JsonObject = {
            "spec": {"packageName": "other", "suspend": True, "enabled": False, "settings": {"mine": 1}}
        }
        await place.client.merge_patch(ObjectKey(MODULE, "", "web"), patch)
        await place.until(
            lambda: place.spec("web").get("suspend") is True and place.spec("web")["packageName"] == "010-web"
        )
        assert (place.spec("web")["enabled"], place.spec("web")["settings"]) == (False, {"mine": 1})
        # No field of ours differs now, so nothing is applied again and again.
        before = find_str(live(place, "web"), "metadata", "resourceVersion")
        await place.set(blogEnabled="true")
        await place.until(lambda: place.spec("blog").get("enabled") is True)
        assert find_str(live(place, "web"), "metadata", "resourceVersion") == before


async def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place:
        async with place.open(global_hooks=True):
            await place.until(lambda: len(place.names()) == 3)
        before = {key: find(obj, "metadata", "resourceVersion") for key, obj in place.modules.objects().items()}
        write(tmp_path, {"modules/010-web/values.yaml": "web: {colour: red}\n"})  # rewritten without a change
        async with place.open(global_hooks=True):
            pass
        found = (await place.client.list(MODULE)).items
        assert {find(obj, "metadata", "resourceVersion") for obj in found} == set(before.values())
        assert all(find(obj, "metadata", "annotations", CONTENT) for obj in found)


async def test_an_object_refused_by_the_api_server_does_not_delay_other_objects(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The refused object is retried, also at the start of the controller, and is written once the server accepts it."""
    files(tmp_path)
    async with open_place(tmp_path) as place:
        refusing = Refusing(place.client, {"web"})
        async with trio.open_nursery() as nursery, open_informer(place.client, MODULE) as modules:
            through = Place(refusing, modules, tmp_path)
            opened = trio.Event()

            async def opening() -> None:
                async with through.open():
                    opened.set()
                    await trio.sleep_forever()

            nursery.start_soon(opening)
            await place.until(lambda: place.names() == ["blog"])
            assert not opened.is_set()
            refusing.names.clear()
            await place.until(lambda: place.names() == ["blog", "web"])
            with trio.fail_after(PATIENCE_S):
                await opened.wait()
            refusing.names |= {"blog", "web"}
            (tmp_path / "modules" / "010-web").rename(tmp_path / "web")
            with trio.fail_after(PATIENCE_S):
                await refusing.refused_to_delete.wait()
            refusing.names.clear()
            await place.until(lambda: place.names() == ["blog"])
            nursery.cancel_scope.cancel()
    assert caplog.text.count("cannot be applied: not today") == 1


async def test_too_large_static_values_are_reported_and_not_applied(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files(tmp_path)
    async with open_place(tmp_path) as place, place.open():
        await place.until(lambda: place.names() == ["blog", "web"])
        write(tmp_path, {"modules/values.yaml": f"web: {{a: {'x' * 70_000}}}\nblogEnabled: true\n"})
        await place.until(lambda: flag_of(place, "blog") == "true")
        assert "put them into the module's own values.yaml" in caplog.text
        assert read_static_values(live(place, "web")) == {"size": 1}


async def test_global_values_without_global_hooks_are_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files(tmp_path)
    caplog.set_level(logging.WARNING)
    async with open_place(tmp_path) as place, place.open(config_map=False):
        assert "no folder of global hooks; name one" in caplog.text
