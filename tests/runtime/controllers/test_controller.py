"""The controller between the API server and the runtime: finalizers, statuses, and calls that fail."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from tests.runtime.support.world import open_world
from tests.runtime.tasks.test_install_tasks import has_reason
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, UnreachableError, api_error
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.resources.resources import APPLICATION, FINALIZER

pytestmark = pytest.mark.unmeasured


@dataclass
class Refusing:
    """A ClusterClient whose first merge patches fail with the given errors."""

    client: ClusterClient
    errors: list[ClusterError]
    patches: list[JsonObject] = field(default_factory=list)
    refused: trio.Event = field(default_factory=trio.Event)
    all_refused: trio.Event = field(default_factory=trio.Event)

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        self.patches.append(patch)
        if self.errors:
            error = self.errors.pop(0)
            self.refused.set()
            if not self.errors:
                self.all_refused.set()
            raise error
        return await self.client.merge_patch(key, patch, subresource=subresource)


def refusing(*errors: ClusterError) -> tuple[Callable[[ClusterClient], ClusterClient], list[Refusing]]:
    made: list[Refusing] = []

    def wrap(client: ClusterClient) -> ClusterClient:
        made.append(Refusing(client, list(errors)))
        return cast("ClusterClient", made[0])

    return wrap, made


async def test_the_finalizer_is_the_first_write(tmp_path: Path) -> None:
    wrap, made = refusing()
    async with open_world(tmp_path, wrap) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        obj = await world.until_state("prod", "shop", "Ready")
        assert find_list(obj, "metadata", "finalizers") == [FINALIZER]
        assert find_list(made[0].patches[0], "metadata", "finalizers") == [FINALIZER]
        assert all("status" in patch for patch in made[0].patches[1:])


@pytest.mark.slow
async def test_failed_calls_are_retried(tmp_path: Path) -> None:
    wrap, made = refusing(
        UnreachableError("connection refused"),
        api_error(503, "ServiceUnavailable", "not now"),
        api_error(409, "Conflict", "changed meanwhile"),
    )
    async with open_world(tmp_path, wrap) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        # A conflict means that the informer's copy is outdated. With this change, the informer gets a newer object.
        await made[0].all_refused.wait()
        await world.client.merge_patch(ObjectKey(APPLICATION, "prod", "shop"), {"metadata": {"labels": {"a": "b"}}})
        await world.until_state("prod", "shop", "Ready")
        assert made[0].errors == []


async def test_nothing_is_installed_without_the_finalizer(tmp_path: Path) -> None:
    wrap, made = refusing(*[api_error(409, "Conflict", "changed meanwhile")] * 1000)
    async with open_world(tmp_path, wrap) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await made[0].refused.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert world.runtime.instances == {}


async def test_an_unchanged_status_is_not_written(tmp_path: Path) -> None:
    wrap, made = refusing()
    async with open_world(tmp_path, wrap) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        written = len(made[0].patches)
        for value in ("b", "c"):
            patch: JsonObject = {"metadata": {"labels": {"a": value}}}
            changed = await world.client.merge_patch(ObjectKey(APPLICATION, "prod", "shop"), patch)
            version = find_str(changed, "metadata", "resourceVersion")
            await world.until("prod", "shop", lambda obj, v=version: find_str(obj, "metadata", "resourceVersion") == v)  # type: ignore[misc]
        await world.change("prod", "shop", {"packageVersion": "2.0.0"})
        await world.until("prod", "shop", has_reason("ArtifactNotFound"))
        assert all(find(patch, "status", "observedGeneration") == 2 for patch in made[0].patches[written:])


@pytest.mark.slow
async def test_foreign_finalizers_are_retained(tmp_path: Path) -> None:
    async with open_world(tmp_path) as world:
        await world.push("web", "1.0.0")
        await world.repository()
        await world.create("prod", "shop")
        await world.until_state("prod", "shop", "Ready")
        key = ObjectKey(APPLICATION, "prod", "shop")
        await world.client.merge_patch(key, {"metadata": {"finalizers": [FINALIZER, "example.com/keep"]}})
        await world.delete("prod", "shop")
        await world.until("prod", "shop", lambda obj: find_list(obj, "metadata", "finalizers") == ["example.com/keep"])
        await world.client.merge_patch(key, {"metadata": {"finalizers": []}})
        await world.until_gone("prod", "shop")


async def test_a_name_too_long_for_helm_is_reported(tmp_path: Path) -> None:
    name = "a" * 53 + "b"
    async with open_world(tmp_path) as world:
        await world.repository()
        try:
            await world.create("prod", name)
        except ClusterError as error:
            assert "53" in str(error) or "long" in str(error)
        else:
            obj = await world.until_state("prod", name, "Failed")
            assert "at most 53" in find_str(obj, "status", "summary", "message")
