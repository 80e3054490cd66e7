"""The service that runs the controllers: it watches the objects that packages depend on, and enqueues affected packages."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.watch.informer import Informer
from wharfinger.cluster.watch.work_queue import WorkKeys
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.caches import Caches, open_caches
from wharfinger.runtime.controllers.controller import VERIFY_S, WORKERS, Controller
from wharfinger.runtime.controllers.package_names import (
    is_ignored,
    package_name,
)
from wharfinger.runtime.controllers.version_choices import VersionChoices
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.package.instance import SourceOpener
from wharfinger.runtime.repositories.repository_controller import open_repositories
from wharfinger.runtime.resources.application_scope import ApplicationScope, ScopeLabels
from wharfinger.runtime.resources.default_accounts import DefaultAccounts
from wharfinger.runtime.resources.lookup import Lookup
from wharfinger.runtime.resources.references import open_references
from wharfinger.runtime.shards.keeper import Moved, ShardKeeper, report_nothing, want_nothing
from wharfinger.runtime.shards.labels import ShardLabels
from wharfinger.runtime.shards.ownership import MAIN
from wharfinger.runtime.shards.seizure import Seizures
from wharfinger.runtime.status.writer import StatusWriter

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Intake:
    """The watcher of all objects whose changes cause reconciliations; it enqueues the affected packages."""

    applications: Informer
    modules: Informer
    repositories: Informer
    scopes: ScopeLabels
    accounts: DefaultAccounts
    shards: ShardLabels
    keys: WorkKeys

    async def follow_packages(self, informer: Informer) -> None:
        """Enqueue every Application or Module that changes."""
        with informer.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    self._look_at(key)

    async def follow_scopes(self) -> None:
        """Enqueue the Applications of a namespace when the scope label of the namespace changes."""

        await self.scopes.follow(self._look_into)

    async def follow_shards(self) -> None:
        """Enqueue the Applications of a namespace when the shard label of the namespace changes."""
        await self.shards.follow(self._look_into)

    def _look_into(self, namespace: str) -> None:
        for key in self.applications.objects():
            if key.namespace == namespace:
                self._look_at(key)

    async def follow_accounts(self) -> None:
        """When the default account of a namespace changes, enqueue its Applications, and all Modules, because their releases may
        be in that namespace.
        """

        def look(namespace: str) -> None:
            for key in (*self.applications.objects(), *self.modules.objects()):
                if key.namespace in ("", namespace):
                    self._look_at(key)

        await self.accounts.follow(look)

    async def follow_repositories(self) -> None:
        """Enqueue all Applications and Modules when a repository changes, because any of them may use it."""
        with self.repositories.changes() as changes:
            while True:
                await changes.wait()
                for informer in (self.applications, self.modules):
                    for key in informer.objects():
                        self._look_at(key)

    def _look_at(self, key: ObjectKey) -> None:
        if is_ignored(key):
            log.error("Module %s is ignored: its name has a dot; create it again under a name without a dot", key.name)
            return
        self.keys.add(package_name(key))


@asynccontextmanager
async def open_controller(
    client: ClusterClient,
    runtime: Runtime,
    keys: WorkKeys,
    writer: StatusWriter,
    *,
    local_packages: Sequence[Path] = (),
    token_folders: Sequence[Path] = (),
    enabled_by_default: bool | None = True,
    application_scope: ApplicationScope = ApplicationScope.NAMESPACE,
    require_account: bool = False,
    verify_s: float = VERIFY_S,
    repository_client: ClusterClient | None = None,
    scan_source: SourceOpener | None = None,
    caches: Caches | None = None,
    shard: str = MAIN,
    seizures: Seizures | None = None,
    moved: Moved = report_nothing,
) -> AsyncIterator[Controller]:
    """Run the controllers while the body runs; the body begins once the informers have listed. When the body ends, the intake
    of changes stops immediately.

    * ``enabled_by_default``: whether a Module without ``spec.enabled`` is on; None means that the daemon's bundle decides.
    * ``application_scope``: the reach of Applications whose namespace has no scope label.
    * ``require_account``: whether a package without a service account is refused.
    * ``verify_s``: the time after the start during which the status of a package is not written while the package is being
      verified.
    * ``repository_client``, ``scan_source``: the client, and the function that opens sources, for the scans of
      PackageRepositories, if they differ from those for packages.
    * ``caches``: the caches that the daemon opened on standby; without them, caches are opened here.
    * ``shard``: the shard of this daemon. ``seizures`` takes over Applications from shards without a daemon, and ``moved`` is
      called for each Application that was given to another shard.
    """
    async with open_references(client, keys.add) as references, AsyncExitStack() as stack:
        if caches is None:
            caches = await stack.enter_async_context(open_caches(client, application_scope))
        applications, modules, repositories = caches.applications, caches.modules, caches.repositories
        scopes, accounts = caches.scopes, caches.accounts
        await caches.filled()
        lookup = Lookup(repositories, references, tuple(local_packages), tuple(token_folders))
        scans = await stack.enter_async_context(
            open_repositories(
                repository_client or client,
                repositories,
                (applications, modules),
                scan_source or runtime.tools.open_source,
                runtime.now,
                lambda key: keys.add(package_name(key)),
                local_packages=local_packages,
                token_folders=token_folders,
                scanning=shard == MAIN,
            )
        )
        want = seizures.want if seizures is not None else want_nothing
        keeper = ShardKeeper(client, runtime, caches.shards, shard, want, moved)
        versions = VersionChoices(runtime, scans, keys.add_later)
        controller = Controller(
            client,
            runtime,
            applications,
            modules,
            lookup,
            keys,
            writer,
            scopes,
            accounts,
            versions,
            keeper,
            enabled_by_default,
            require_account,
            verify_s=verify_s,
        )
        _sweep_journal(controller)
        await runtime.tools.states.read(client, _own_packages(controller))
        intake = Intake(applications, modules, repositories, scopes, accounts, caches.shards, keys)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(intake.follow_packages, applications, name="follow Applications")
            nursery.start_soon(intake.follow_packages, modules, name="follow Modules")
            nursery.start_soon(intake.follow_repositories, name="follow PackageRepositories")
            nursery.start_soon(intake.follow_scopes, name="follow scope labels")
            nursery.start_soon(intake.follow_accounts, name="follow default accounts")
            nursery.start_soon(intake.follow_shards, name="follow shard labels")
            if seizures is not None:
                awaited = partial(keeper.awaited, objects=applications.objects)
                nursery.start_soon(seizures.run, awaited, name="takeover from other shards")
            nursery.start_soon(controller.takeover.run, name="takeover of releases")
            for number in range(WORKERS):
                nursery.start_soon(controller.work, name=f"controller worker {number}")
            yield controller
            # A status patch in flight may be cancelled: the status is written after the queues have drained (last_statuses).
            nursery.cancel_scope.cancel()


def _own_packages(controller: Controller) -> frozenset[str]:
    """Return the names of the packages that belong to this daemon now."""
    objects = (*controller.applications.objects().items(), *controller.modules.objects().items())
    return frozenset(package_name(key) for key, obj in objects if controller.shards.owns(key, obj))


def _sweep_journal(controller: Controller) -> None:
    """Delete the journal's steps of packages whose objects were deleted while no daemon was running."""
    known = {package_name(key) for key in (*controller.applications.objects(), *controller.modules.objects())}
    journal = controller.runtime.tools.journal
    for name in {entry.package for entry in journal.entries()} - known:
        journal.forget(name)
