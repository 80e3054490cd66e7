"""Lookups of the objects to which a resource refers. Changes of these objects, and logins, are tested in
tests/runtime/test_controller_inputs.py.
"""

from pathlib import Path

import pytest
import trio

from tests.runtime.support.objects import application, repository
from tests.runtime.support.world import open_ground
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.sources.source import RegistrySource
from wharfinger.runtime.resources.lookup import Lookup, RepositoryUnusableError
from wharfinger.runtime.resources.references import open_references
from wharfinger.runtime.resources.resources import PACKAGE_REPOSITORY, SECRET, read_application
from wharfinger.runtime.resources.settings import SettingsSourceError


async def test_a_lookup_is_complete_once_all_references_are_read(tmp_path: Path) -> None:
    entry: JsonObject = {"kind": "Secret", "name": "database", "key": "password", "path": "text"}
    obj = application("prod", "shop", settings={"mode": "fast"})
    obj["spec"] = {**dict(obj["spec"].items()), "settingsFrom": [entry]} if isinstance(obj["spec"], dict) else {}
    spec = read_application(obj)
    told = trio.Event()
    async with (
        open_ground(tmp_path) as ground,
        open_informer(ground.client, PACKAGE_REPOSITORY) as repositories,
        open_references(ground.client, lambda _name: told.set()) as references,
    ):
        await repositories.wait_synced()
        lookup = Lookup(repositories, references)
        with pytest.raises(RepositoryUnusableError, match="PackageRepository default does not exist") as caught:
            lookup.of(spec)
        assert caught.value.reason == "RepositoryNotFound"
        with repositories.changes() as changes:
            await ground.client.create(repository("registry.example/packages"))
            while repositories.get(ObjectKey(PACKAGE_REPOSITORY, "", "default")) is None:
                await changes.wait()
        assert lookup.of(spec) is None
        with trio.fail_after(300):
            await told.wait()
        with pytest.raises(SettingsSourceError, match="Secret prod/database does not exist"):
            lookup.of(spec)
        with pytest.raises(SettingsSourceError):
            lookup.last_settings(spec)
        metadata: JsonObject = {"namespace": "prod", "name": "database"}
        body: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": metadata,
            "data": {"password": "aHVudGVy"},
        }
        await ground.client.create(body)
        with trio.fail_after(300):
            while references.get(ObjectKey(SECRET, "prod", "database")) is None:
                told = trio.Event()
                await told.wait()
        found = lookup.of(spec)
        assert found is not None
        source, settings = found
        assert isinstance(source, RegistrySource)
        assert settings.settings == {"mode": "fast", "text": "hunter"}
        assert lookup.last_settings(spec) == settings
