"""The local copies of the cluster's objects that the controllers use: what they contain, and what is left out."""

import trio
from trio.testing import MockClock

from tests.cluster.support.clusters import memory_cluster
from tests.runtime.support.objects import application
from wharfinger.formats.json.value import find
from wharfinger.runtime.controllers.caches import open_caches
from wharfinger.runtime.resources.application_scope import ApplicationScope
from wharfinger.runtime.resources.custom_resources import ensure_crds


async def test_cached_objects_have_no_managed_fields(autojump_clock: MockClock) -> None:
    async with memory_cluster() as client:
        await ensure_crds(client, "t")
        await client.create(application("default", "shop"))
        async with open_caches(client, ApplicationScope.CLUSTER) as caches:
            with trio.fail_after(60):
                await caches.filled()
            (obj,) = caches.applications.objects().values()
            assert find(obj, "metadata", "managedFields") is None
            assert (len(caches.modules.objects()), len(caches.repositories.objects())) == (0, 0)
            assert caches.scopes.allows("anywhere")
