"""The informers with the copies of objects that the controllers use. Informers only read from the cluster, so a daemon on
standby runs them, too.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer, open_informer, wait_listed
from wharfinger.cluster.watch.object_cache import in_shared_texts
from wharfinger.runtime.resources.application_scope import ApplicationScope, ScopeLabels, open_scope_labels
from wharfinger.runtime.resources.default_accounts import DefaultAccounts, open_default_accounts
from wharfinger.runtime.resources.resources import APPLICATION, MODULE, PACKAGE_REPOSITORY
from wharfinger.runtime.shards.labels import ShardLabels, open_shard_labels
from wharfinger.runtime.shards.ownership import owner_of

FRESH_S: Final = 5.0
"""The time for which a cache counts as fresh after the last answer of the API server. A standby daemon that acquires the
Lease lists the objects of older caches again.
"""


@dataclass(frozen=True, slots=True)
class Caches:
    """The informers of the daemon's own kinds, and of namespaces that have labels of Wharfinger. Made by `open_caches`."""

    applications: Informer
    modules: Informer
    repositories: Informer
    scopes: ScopeLabels
    accounts: DefaultAccounts
    shards: ShardLabels

    async def filled(self) -> None:
        """Wait until each cache has a list of its objects, and log every few seconds why a list is late. A cache that has
        received nothing from its server for FRESH_S is listed anew, because its connection may have broken unnoticed.

        With shards, Applications and the shard labels of namespaces are listed again in any case: while this daemon waited for
        its Lease, another daemon may have held the Lease for a moment and taken over Applications.
        """
        own = (self.applications, self.modules, self.repositories)
        others = (self.scopes.informer, self.accounts.informer, self.shards.informer)
        await wait_listed(*own, *others, fresh_s=FRESH_S)
        if self.shards.informer.objects() or any(owner_of(obj) for obj in self.applications.objects().values()):
            await wait_listed(self.applications, self.shards.informer, fresh_s=0.0)


@asynccontextmanager
async def open_caches(client: ClusterClient, application_scope: ApplicationScope) -> AsyncIterator[Caches]:
    """Keep the caches up to date for as long as the block runs; the first lists may still be missing when the block begins."""
    async with (
        open_informer(client, APPLICATION, keep=in_shared_texts) as applications,
        open_informer(client, MODULE, keep=in_shared_texts) as modules,
        open_informer(client, PACKAGE_REPOSITORY) as repositories,
        open_scope_labels(client, application_scope) as scopes,
        open_default_accounts(client) as accounts,
        open_shard_labels(client) as shards,
    ):
        yield Caches(applications, modules, repositories, scopes, accounts, shards)
