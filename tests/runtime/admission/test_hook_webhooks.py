"""The webhooks of hooks in the cluster: how they are published, restored, withdrawn, and trusted when certificates change."""

from itertools import count as count_from
from pathlib import Path
from typing import cast

import pytest
import trio
import trio.testing

from tests.cluster.support.release_bench import cluster
from tests.runtime.core.test_release_events import until
from tests.runtime.support.webhook_package import HOOKS, write_package
from tests.runtime.support.webhook_world import Served, open_served
from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import NotFoundError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.hooks.webhooks.bound_webhooks import BoundWebhooks, Conversions
from wharfinger.hooks.webhooks.configurations import CONFIGURATIONS, Server, configuration_name
from wharfinger.kube.resource import ObjectKey
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.runtime.admission import certificates, hook_webhooks
from wharfinger.runtime.admission import server as server_module
from wharfinger.runtime.admission.hook_webhooks import DEFINITION, HookWebhooks

pytestmark = pytest.mark.slow
DEFINITION_KEY = ObjectKey(DEFINITION, "", "crontabs.stable.example.com")
KEYS = [ObjectKey(resource, "", configuration_name("crons")) for resource in CONFIGURATIONS.values()]


async def test_deleted_webhooks_are_restored_until_their_package_is_suspended_or_removed(tmp_path: Path) -> None:
    async with open_served(tmp_path) as served:
        client, world = served.world.client, served.world
        await served.install(HOOKS)
        assert served.webhooks.published()["crons"]
        for key in KEYS:
            await client.delete(key)
            await world.until_object(key, lambda _: True)
        foreign: JsonObject = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
        await client.merge_patch(DEFINITION_KEY, foreign)
        await world.until_object(DEFINITION_KEY, lambda obj: find(obj, "spec", "conversion", "strategy") == "Webhook")
        await world.change("", "crons", {"suspend": True})
        for key in KEYS:
            await world.until_no_object(key)
        assert find(await client.get(DEFINITION_KEY), "spec", "conversion", "strategy") == "Webhook", (
            "conversions go on"
        )
        await world.delete("", "crons")
        await world.until_gone("", "crons")
        assert find(await client.get(DEFINITION_KEY), "spec", "conversion") == {"strategy": "None"}


async def test_webhooks_of_absent_packages_are_deleted(tmp_path: Path) -> None:
    async with open_served(tmp_path) as served:
        await served.install(HOOKS)
        later = HookWebhooks(served.world.client, "wharfinger")
        await later.sweep(lambda: frozenset({"crons"}))
        for key in KEYS:
            await served.world.client.get(key)
        bound = served.webhooks.published()["crons"]
        await served.webhooks.withdraw("crons", conversions=True)  # so that nothing restores them
        await later.trust(Server("PEM", url="https://127.0.0.1:1"))
        await later.publish("gone", BoundWebhooks(bound.validating, bound.mutating))
        await HookWebhooks(served.world.client, "wharfinger").sweep(lambda: frozenset({"crons"}))
        await until_none(served, "gone")


async def until_none(served: Served, package: str) -> None:
    """Check that a package has no webhooks."""
    for resource in CONFIGURATIONS.values():
        with pytest.raises(NotFoundError):
            await served.world.client.get(ObjectKey(resource, "", configuration_name(package)))


async def test_webhooks_of_a_package_moved_to_another_shard_are_deleted(tmp_path: Path) -> None:
    async with open_served(tmp_path) as served:
        await served.install(HOOKS)
        bound = served.webhooks.published()["crons"]
        ours = HookWebhooks(served.world.client, "wharfinger")
        await ours.trust(Server("PEM", url="https://127.0.0.1:1"))
        await ours.publish("moved", BoundWebhooks(bound.validating, bound.mutating))
        await ours.sweep(lambda: frozenset({"crons", "moved"}))
        for resource in CONFIGURATIONS.values():
            await served.world.client.get(ObjectKey(resource, "", configuration_name("moved")))
        await ours.sweep(lambda: frozenset({"crons"}))
        await ours.keep()
        await until_none(served, "moved")


async def test_webhooks_published_during_a_sweep_are_retained(tmp_path: Path) -> None:
    async with open_served(tmp_path) as served:
        await served.install(HOOKS)
        bound = served.webhooks.published()["crons"]
        ours = HookWebhooks(served.world.client, "wharfinger")
        await ours.trust(Server("PEM", url="https://127.0.0.1:1"))
        await ours.publish("late", BoundWebhooks(bound.validating, bound.mutating))
        ours._published["late"] = BoundWebhooks()  # as if an earlier daemon had published it
        async with trio.open_nursery() as nursery, ours._writing:
            nursery.start_soon(ours.publish, "late", BoundWebhooks(bound.validating, bound.mutating))
            await trio.testing.wait_all_tasks_blocked()
            nursery.start_soon(ours.sweep, lambda: frozenset({"crons", "late"}))
            await trio.testing.wait_all_tasks_blocked(0.2)
        for resource in CONFIGURATIONS.values():
            await served.world.client.get(ObjectKey(resource, "", configuration_name("late")))


async def test_a_missing_definition_without_conversions_is_not_retried() -> None:
    missing = BoundWebhooks(conversions={"nothing.example.com": Conversions({})})
    async with cluster() as (client, transport):
        webhooks = HookWebhooks(client, "wharfinger")
        await webhooks.trust(Server("PEM", url="https://127.0.0.1:1"))
        await webhooks.publish("crons", missing)
        await webhooks.keep()
        assert "PATCH nothing.example.com" in transport.writes
        assert webhooks.misses_definitions
        await webhooks.withdraw("crons", conversions=True)
        await webhooks.keep()
        assert not webhooks.misses_definitions, "all webhooks would be written again every two seconds"


async def test_only_the_missing_definition_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    """If only a CustomResourceDefinition is missing, only the write of this definition is retried. The webhook configurations
    are not written again.
    """
    monkeypatch.setattr(hook_webhooks, "MISSING_S", 0.01)
    missing = BoundWebhooks(conversions={"nothing.example.com": Conversions({})})
    write = "PATCH nothing.example.com"
    async with cluster() as (client, transport), trio.open_nursery() as nursery:
        webhooks = HookWebhooks(client, "wharfinger")
        await webhooks.trust(Server("PEM", url="https://127.0.0.1:1"))
        await webhooks.publish("crons", missing)
        assert any(each != write for each in transport.writes)
        nursery.start_soon(webhooks.run, lambda: frozenset({"crons"}))
        await until(lambda: transport.writes[-5:] == [write] * 5)
        nursery.cancel_scope.cancel()


class Judged:
    """A client whose access reviews say that a service account may do everything, except with the resources in ``lacking``."""

    def __init__(self, client: ClusterClient, lacking: set[str], account: ServiceAccount | None = None) -> None:
        self._client = client
        self._lacking = lacking
        self._account = account

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def acting_as(self, account: ServiceAccount, *, comment: str = "") -> "Judged":
        return Judged(self._client, self._lacking, account)

    async def create(self, obj: JsonObject) -> JsonObject:
        if self._account is None or obj["kind"] != "SelfSubjectAccessReview":
            return await self._client.create(obj)
        wanted = find_str(obj, "spec", "resourceAttributes", "resource")
        return {**obj, "status": {"allowed": wanted not in self._lacking}}


@pytest.mark.unmeasured
async def test_a_package_with_an_account_may_only_publish_what_the_account_may_write(tmp_path: Path) -> None:
    """The daemon writes webhooks with its own rights. So it first checks that the package's account may write them, too."""
    lacking = {"mutatingwebhookconfigurations"}
    async with open_served(tmp_path, through=lambda client: cast("ClusterClient", Judged(client, lacking))) as served:
        write_package(served.world.folder / "packages" / "crons", HOOKS)
        await served.world.local_repository(served.world.folder / "packages")
        await served.world.create_module("crons", spec={"serviceAccountName": "deployer"})
        rule = (
            'apiGroups: ["admissionregistration.k8s.io"], resources: [mutatingwebhookconfigurations], verbs: [create]'
        )
        await served.world.until("", "crons", lambda obj: rule in find_str(obj, "status", "summary", "message"))
        await until_none(served, "crons")
        lacking.clear()
        await served.world.until_state("", "crons", "Ready")
        for key in KEYS:
            await served.world.client.get(key)


@pytest.mark.unmeasured
async def test_certificates_are_replaced_under_load_without_one_failed_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "SETTLE_S", 0.05)
    async with open_served(tmp_path) as served:
        await served.install(HOOKS)
        monkeypatch.setattr(certificates, "RENEW", certificates.VALID)  # each check replaces the certificate
        send, receive = trio.open_memory_channel[str](0)

        async def load(number: int) -> None:
            for count in count_from(0):
                await send.send(await served.try_to_create(f"c{number}-{count}"))

        received: list[str] = []
        used, over = {served.server.serving}, trio.Event()

        async def replace_certificates() -> None:
            for _ in range(3):
                await served.server.keep()
                used.add(served.server.serving)
            over.set()

        with trio.fail_after(300):
            async with trio.open_nursery() as nursery:
                for number in range(2):
                    nursery.start_soon(load, number)
                nursery.start_soon(replace_certificates)
                while not over.is_set() or len(received) < 8:
                    received.append(await receive.receive())
                nursery.cancel_scope.cancel()
        assert set(received) == {""}
        assert len(used) == 4
