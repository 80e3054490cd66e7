"""A world (`tests/runtime/support/world.py`) with an admission server, and with a package whose webhooks this server serves."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import trio

from tests.runtime.support.webhook_package import write_package
from tests.runtime.support.world import World, one_error, open_ground
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ApiError
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.runtime.admission.endpoint import Endpoint
from wharfinger.runtime.admission.hook_webhooks import HookWebhooks
from wharfinger.runtime.admission.judgement import Judge
from wharfinger.runtime.admission.server import AdmissionServer, open_admission
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE


@dataclass(frozen=True, slots=True)
class Served:
    """A world, its admission server, and the webhooks that hooks of packages declare."""

    world: World
    server: AdmissionServer
    webhooks: HookWebhooks

    async def install(self, hooks: dict[str, str]) -> None:
        """Install the Module ``crons`` with these hooks, and wait until it is ready."""
        write_package(self.world.folder / "packages" / "crons", hooks)
        await self.world.local_repository(self.world.folder / "packages")
        await self.world.create_module("crons")
        await self.world.until_state("", "crons", "Ready")

    async def try_to_create(self, name: str, image: str = "repo.example.com/x", cron: JsonValue = "* *") -> str:
        """Create a CronTab. Return the error if it is refused, and "" otherwise."""
        try:
            await self.world.client.create(crontab(name, image, cron))
        except ApiError as error:
            return str(error)
        return ""


def crontab(name: str, image: str, cron: JsonValue = "* *", version: str = "v1alpha2") -> JsonObject:
    metadata: JsonObject = {"name": name, "namespace": "prod"}
    spec: JsonObject = {"cron": cron, "image": image}
    return {"apiVersion": f"stable.example.com/{version}", "kind": "CronTab", "metadata": metadata, "spec": spec}


@asynccontextmanager
async def open_served(
    folder: Path,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
    through: Callable[[ClusterClient], ClusterClient] = lambda client: client,
) -> AsyncIterator[Served]:
    """Yield a world as soon as its admission server serves a certificate that API servers trust.

    The release engine and the tasks of packages send their requests through ``through(client)``.
    """
    with one_error():
        async with open_ground(folder) as ground:
            webhooks = HookWebhooks(ground.client, "wharfinger")
            made = replace(ground, webhooks=webhooks, engine_client=through(ground.client))
            async with made.open_world() as world:
                namespace: JsonObject = {
                    "apiVersion": "v1",
                    "kind": "Namespace",
                    "metadata": {"name": SYSTEM_NAMESPACE},
                }
                await world.client.create(namespace)
                judge = Judge(world.runtime, [folder])
                endpoint = Endpoint("127.0.0.1", 0)
                async with open_admission(world.client, judge, endpoint, now, "wharfinger", webhooks) as server:
                    with trio.fail_after(300):
                        await server.ready.wait()
                    yield Served(world, server, webhooks)
