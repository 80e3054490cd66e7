"""A disabled package is uninstalled exactly once, even if the daemon is killed before the status reports this."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.runtime.support.world import open_ground
from tests.runtime.tasks.test_crd_tasks import module
from tests.runtime.tasks.test_hook_runs import bash
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import UnreachableError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import SlotLimits
from wharfinger.runtime.daemon.limited_client import LimitedClient
from wharfinger.runtime.lifecycle.package_state import decoded
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import SECRET


@dataclass(slots=True)
class Quiet:
    """A switch. While it is on, clients refuse status patches, as if the daemon were killed before it could send them."""

    refusing: bool = False


class QuietClient(LimitedClient):
    """A client that refuses status patches while its switch is on."""

    def __init__(self, client: ClusterClient, quiet: Quiet) -> None:
        super().__init__(client, Slots(SlotLimits()))
        self._quiet = quiet

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        if subresource and self._quiet.refusing:
            raise UnreachableError(f"{key}: nothing is written now")
        return await super().merge_patch(key, patch, subresource=subresource)


@pytest.mark.slow
async def test_a_completed_uninstall_is_not_repeated_after_a_kill(tmp_path: Path) -> None:
    """The daemon is killed after the journal is empty, but before the status reports the end of the uninstall."""
    quiet, note = Quiet(), tmp_path / "note"
    folder = module(
        tmp_path, "web", {}, {"a.sh": bash("{configVersion: v1, afterDeleteHelm: 1}", f"echo gone >>{note}")}
    )
    state = ObjectKey(SECRET, SYSTEM_NAMESPACE, "wharfinger.module.web")
    async with open_ground(tmp_path, lambda client: QuietClient(client, quiet)) as ground:
        async with ground.open_world() as world:
            await world.repository()
            await world.push_folder(folder, "web", "1.0.0")
            await world.create_module("web")
            await world.until_state("", "web", "Ready")
            quiet.refusing = True
            await world.change("", "web", {"enabled": False})
            await world.until_object(state, lambda obj: decoded(obj).withdrawn)
            await world.runtime.queues.wait_idle("web")
        quiet.refusing = False
        async with ground.open_world() as world:
            await world.until_state("", "web", "Disabled")
            await world.runtime.queues.wait_idle("web")
            assert note.read_text().split() == ["gone"]
            await world.change("", "web", {"enabled": True})
            await world.until_state("", "web", "Ready")
            assert not decoded(await world.client.get(state)).withdrawn
            await world.change("", "web", {"enabled": False})
            await world.until_state("", "web", "Disabled")
            await world.runtime.queues.wait_idle("web")
            assert note.read_text().split() == ["gone", "gone"]
