"""The name that is reported for the writer if another process deletes the records of a release."""

from dataclasses import replace

import pytest
import trio
from trio.testing import MockClock

from tests.cluster.support.client_contract import NAMESPACE
from tests.cluster.support.release_bench import Bench, bench
from tests.cluster.support.release_requests import config_map, request
from wharfinger.cluster.drift.comparison import Drift
from wharfinger.cluster.drift.fights import Fight
from wharfinger.cluster.health.health import Health
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.release_heads import SECRETS
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey

GOING = ObjectKey(NAMESPACE, "", "going")


class Told:
    """A listener that records the reported authors."""

    def __init__(self, at: Bench) -> None:
        self.by: list[str] = []
        at.engine.listen(self)

    def drifted(self, owner: Owner, drifts: tuple[Drift, ...], fights: tuple[Fight, ...]) -> None:
        pass

    def health_changed(self, owner: Owner, health: Health) -> None:
        pass

    def foreign_revision(self, owner: Owner, release_revision: int, by: str) -> None:
        self.by.append(by)

    def pruned(self, owner: Owner, keys: tuple[ObjectKey, ...]) -> None:
        pass

    def troubled(self, owner: Owner, troubles: tuple[str, ...]) -> None:
        pass


async def make_going(at: Bench) -> None:
    """Create a namespace with a finalizer, so that its deletion does not end."""
    metadata: JsonObject = {"name": "going", "finalizers": ["example.test/hold"]}
    await at.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})


@pytest.mark.parametrize("stuck", [True, False])
async def test_records_deleted_with_their_namespace_are_not_attributed_to_a_process(
    stuck: bool, autojump_clock: MockClock
) -> None:
    async with bench(simulate=True) as at:
        told = Told(at)
        await make_going(at)
        await at.engine.upgrade(replace(request(config_map("a")), namespace="going"))
        await trio.sleep(5)
        if not stuck:
            await at.client.merge_patch(GOING, {"metadata": {"finalizers": None}})
        await at.client.delete(GOING)
        await trio.sleep(60)
        assert (await at.client.list(SECRETS, "going", label_selector="owner=helm")).items == ()
        assert told.by == []
        assert at.engine.statistics().left_alone == 1, "nothing is restored in it"


async def test_records_deleted_by_another_process_are_attributed_to_it(autojump_clock: MockClock) -> None:
    async with bench(simulate=True) as at:
        told = Told(at)
        await at.engine.upgrade(request(config_map("a")))
        await trio.sleep(5)
        await at.client.delete(ObjectKey(SECRETS, "default", "sh.helm.release.v1.web.v1"))
        await trio.sleep(5)
        assert told.by == ["a process that deleted all records of the release"]
