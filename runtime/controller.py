"""The Application controller: custom resources in, `Runtime` calls and status patches out.

Everything is level-triggered. Two informers keep what the API server has; whatever changes (an Application, a repository, a
package's own status) puts the Application's name into one coalescing inbox, and a few workers bring one name at a time in
line: finalizer first, then the runtime told what is wanted, then the status written if it differs. Nothing is remembered
between two looks at a name, so a look that failed is simply repeated later.

The finalizer is what makes removal safe: it is there before anything is installed, and goes when the runtime says that
everything is gone.
"""

import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

import trio

from wharfinger.cluster.client import ClusterClient
from wharfinger.cluster.errors import ClusterError, ConflictError, NotFoundError
from wharfinger.cluster.informer import Informer, open_informer
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json_value import JsonObject, JsonValue, find, find_int, find_str
from wharfinger.packages.address import RepositoryAddress
from wharfinger.runtime import status as statuses
from wharfinger.runtime.identity import AppId, IdentityError, app_id
from wharfinger.runtime.resources import (
    APPLICATION,
    FINALIZER,
    PACKAGE_REPOSITORY,
    Application,
    SpecError,
    finalizers_of,
    is_deleting,
    read_application,
    read_repository,
)
from wharfinger.runtime.runtime import Runtime
from wharfinger.runtime.work_keys import WorkKeys

log = logging.getLogger(__name__)

WORKERS: Final = 4
RETRY_FIRST_S: Final = 0.5
RETRY_MAX_S: Final = 30.0
STALLED_LOOK_S: Final = 60.0
"""How often a parked package is looked at: the runtime says when it is time to try again."""
SYNC_PATIENCE_S: Final = 5.0
"""After so long without a first list the log says why."""


class RepositoryUnusableError(Exception):
    """The repository that an Application names is not there, or cannot be used; ``reason`` is status' word for it."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(slots=True)
class Controller:
    """Brings Applications and the runtime in line; `reconcile` is one look at one of them."""

    client: ClusterClient
    runtime: Runtime
    applications: Informer
    repositories: Informer
    keys: WorkKeys
    failures: dict[str, int] = field(default_factory=dict)

    async def reconcile(self, name: str) -> None:
        """Bring one Application in line. Raises ClusterError; looking again later is always right."""
        identity = app_id(name)
        key = _key(identity)
        obj = self.applications.get(key)
        if obj is None:
            # Gone because we were done, or without us (the finalizer was taken off by hand). What this runtime never knew
            # is none of its business: a release of that name may be somebody else's by now.
            self.runtime.object_gone(identity)
        elif is_deleting(obj):
            await self._remove(identity, key, obj)
        else:
            if FINALIZER not in finalizers_of(obj) and not await self._set_finalizers(
                key, obj, (*finalizers_of(obj), FINALIZER)
            ):
                return  # nothing is installed that is not sure to be removed
            self._tell_runtime(identity, obj)
            if self.runtime.retry_stalled(name):
                self.keys.add_later(name, STALLED_LOOK_S)
            await self._write_status(name, key, obj)

    def _tell_runtime(self, identity: AppId, obj: JsonObject) -> None:
        generation = find_int(obj, "metadata", "generation")
        try:
            application = read_application(obj)
            repository = self._repository(application)
            identity.release  # noqa: B018 - raises for a name Helm would refuse
        except (SpecError, IdentityError) as error:
            self.runtime.block_app(identity, generation, "SpecInvalid", str(error))
        except RepositoryUnusableError as error:
            self.runtime.block_app(identity, generation, error.reason, str(error))
        else:
            self.runtime.update_app(application, repository)

    def _repository(self, application: Application) -> RepositoryAddress:
        name = application.repository
        obj = self.repositories.get(ObjectKey(PACKAGE_REPOSITORY, "", name))
        if obj is None:
            raise RepositoryUnusableError("RepositoryNotFound", f"PackageRepository {name} does not exist")
        try:
            return read_repository(obj)
        except SpecError as error:
            raise RepositoryUnusableError("RepositoryInvalid", f"PackageRepository {name}: {error}") from error

    async def _remove(self, identity: AppId, key: ObjectKey, obj: JsonObject) -> None:
        if FINALIZER not in finalizers_of(obj):
            return
        if self.runtime.remove_app(identity):
            rest = tuple(entry for entry in finalizers_of(obj) if entry != FINALIZER)
            await self._set_finalizers(key, obj, rest)
        else:
            await self._write_status(identity.name, key, obj)

    async def _set_finalizers(self, key: ObjectKey, obj: JsonObject, finalizers: tuple[str, ...]) -> bool:
        """False where the informer is behind; the change it has yet to deliver brings us here again."""
        entries: list[JsonValue] = list(finalizers)
        version = find_str(obj, "metadata", "resourceVersion")
        # With the resourceVersion the patch is a compare-and-set: nobody else's finalizer is lost.
        patch: JsonObject = {"metadata": {"finalizers": entries, "resourceVersion": version}}
        try:
            await self.client.merge_patch(key, patch)
        except (NotFoundError, ConflictError) as error:
            log.debug("finalizers of %s not written: %s", key, error)
            return False
        return True

    async def _write_status(self, name: str, key: ObjectKey, obj: JsonObject) -> None:
        status = self.runtime.status(name)
        if status is None:
            return
        body = statuses.external(status)
        if all(find(obj, "status", field) == value for field, value in body.items()):
            return
        try:
            await self.client.merge_patch(key, {"status": body}, subresource="status")
        except NotFoundError as error:
            log.debug("status of %s not written: %s", key, error)

    async def work(self) -> None:
        """Look at names for ever; what fails is looked at again after a growing pause."""
        while True:
            name = await self.keys.take()
            try:
                await self.reconcile(name)
            except (ClusterError, FormatError) as error:
                count = self.failures[name] = self.failures.get(name, 0) + 1
                pause_s = min(RETRY_FIRST_S * 2 ** min(count, 10), RETRY_MAX_S) * random.uniform(0.8, 1.2)  # noqa: S311
                log.warning("%s: %s; looking again in %.1f s", name, error, pause_s)
                self.keys.add_later(name, pause_s)
            else:
                self.failures.pop(name, None)
            finally:
                self.keys.done(name)

    async def follow_applications(self) -> None:
        """Every Application that changes is looked at."""
        with self.applications.changes() as changes:
            while True:
                for key in sorted(await changes.wait()):
                    self.keys.add(AppId(key.namespace, key.name).name)

    async def follow_repositories(self) -> None:
        """A repository that changes is a reason to look at every Application that names it."""
        with self.repositories.changes() as changes:
            while True:
                await changes.wait()
                for key in self.applications.objects():
                    self.keys.add(AppId(key.namespace, key.name).name)


@asynccontextmanager
async def open_controller(client: ClusterClient, runtime: Runtime, keys: WorkKeys) -> AsyncIterator[Controller]:
    """Run the controller while the body runs; ready when both informers have listed. Leaving stops intake at once."""
    async with (
        open_informer(client, APPLICATION) as applications,
        open_informer(client, PACKAGE_REPOSITORY) as repositories,
    ):
        await _wait_synced(applications)
        await _wait_synced(repositories)
        controller = Controller(client, runtime, applications, repositories, keys)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(controller.follow_applications, name="follow Applications")
            nursery.start_soon(controller.follow_repositories, name="follow PackageRepositories")
            for number in range(WORKERS):
                nursery.start_soon(controller.work, name=f"controller worker {number}")
            yield controller
            # A status patch in flight may be cut: the next start writes it again.
            nursery.cancel_scope.cancel()


async def _wait_synced(informer: Informer) -> None:
    while True:
        with trio.move_on_after(SYNC_PATIENCE_S) as patience:
            await informer.wait_synced()
        if not patience.cancelled_caught:
            return
        why = informer.statistics().last_error or "no answer yet"
        log.warning("cannot list %s: %s; trying on", informer.resource.group_kind, why)


def _key(identity: AppId) -> ObjectKey:
    return ObjectKey(APPLICATION, identity.namespace, identity.instance)
