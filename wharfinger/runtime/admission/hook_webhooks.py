"""The published webhooks of all packages' hooks: the objects that tell API servers to call these hooks.

A package has webhook configurations of its own, and each CRD that the package converts gets a ``spec.conversion``
(:mod:`~wharfinger.hooks.webhooks.configurations`). Both are written before the package is applied, and removed before it is
uninstalled. The package's own tasks write and remove them, so a failure is reported as a failure of the package. A change by
somebody else is undone as soon as a watch reports it. A new certificate is written into all of these objects before the
server uses it.
"""

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError, ForbiddenError, InvalidError, NotFoundError
from wharfinger.cluster.watch.informer import open_informer
from wharfinger.cluster.watch.object_cache import ObjectChange
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.webhooks.addresses import ReviewKind
from wharfinger.hooks.webhooks.bound_webhooks import BoundWebhooks
from wharfinger.hooks.webhooks.configurations import (
    CONFIGURATIONS,
    LABEL,
    LABELLED,
    PACKAGE_ANNOTATION,
    Server,
    configuration_name,
    configurations,
    conversion_patch,
    no_conversion_patch,
)
from wharfinger.kube.resource import ObjectKey, ResourceType, name_of
from wharfinger.runtime.resources.identity import SYSTEM_NAMESPACE
from wharfinger.runtime.resources.resources import GROUP

log = logging.getLogger(__name__)

DEFINITION: Final = ResourceType(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
RETRY_S: Final = 10.0
MISSING_S: Final = 2.0
"""The interval, in seconds, at which the daemon checks whether missing CRDs have been created."""
SWEEP_S: Final = 60.0
"""The interval, in seconds, at which the daemon searches for published webhooks of packages that are gone."""
_SELECTOR: Final = f"{LABEL}={LABELLED}"


class HookWebhooks:
    """The published webhooks of one daemon. `run` undoes changes that others make to them."""

    def __init__(self, client: ClusterClient, manager: str) -> None:
        """Prepare to write with ``client``, as the field manager ``manager``."""
        self._client = client
        self._manager = manager
        self._server: Server | None = None
        self._trusted = trio.Event()
        self._published: dict[str, BoundWebhooks] = {}
        self._left: set[str] | None = None
        """The packages whose webhooks an earlier daemon has published; None until they are listed."""
        self._missing: set[str] = set()
        """The CRDs whose objects the hooks of packages convert, but that do not exist."""
        self._writing = trio.Lock()
        self._changed = trio.Event()

    def published(self) -> Mapping[str, BoundWebhooks]:
        """Return the published webhooks, by package."""
        return dict(self._published)

    @property
    def misses_definitions(self) -> bool:
        """Return whether any CRD that a package converts is still missing."""
        return bool(self._missing)

    async def publish(self, package: str, bound: BoundWebhooks) -> None:
        """Publish a package's webhooks in place of its earlier ones. This waits until the admission server has a certificate.
        Later changes of the published objects by others are undone.

        Raises ClusterError, and HookError if another package converts the same CRD.
        """
        before = self._published.get(package, BoundWebhooks())
        if not bound and not before:
            self._published[package] = bound
            return
        await self._trusted.wait()
        async with self._writing:
            self._check_owners(package, bound)
            self._published[package] = bound
            await self._write(package, bound)
            for crd in before.conversions.keys() - bound.conversions.keys():
                await self._end_conversion(package, crd)

    def _check_owners(self, package: str, bound: BoundWebhooks) -> None:
        """Raise HookError if a CRD that ``bound`` converts is already converted by another package."""
        for crd in bound.conversions:
            for name, one in self._published.items():
                if name != package and crd in one.conversions:
                    hook = next(iter(bound.conversions[crd].pairs.values()))[0]
                    why = (
                        f"{crd} is already converted by hooks of package {name}, and only one package can convert a "
                        "definition; remove one of the two packages"
                    )
                    raise HookError(hook.name, why, transient=True)

    async def withdraw(self, package: str, *, conversions: bool) -> None:
        """Remove a package's webhooks, even if an earlier daemon published them; remove its conversions only if
        ``conversions`` is true.

        Without a conversion webhook, the API server shows the stored objects of a CRD unchanged in every version. Raises
        ClusterError.
        """
        before = self._published.get(package)
        if not before and package not in await self._left_over():
            return
        kept = BoundWebhooks() if conversions or before is None else replace(before, validating=(), mutating=())
        async with self._writing:
            if self._left is not None:
                self._left.add(package)  # `_erase` discards it at its end, so a failed withdrawal is repeated
            self._published[package] = kept
            await self._erase(package, conversions=conversions)

    async def _erase(self, package: str, *, conversions: bool) -> None:
        """Remove the webhook configurations of a package, even those that another daemon wrote. If ``conversions`` is true,
        remove the conversions of its CRDs, too. Raises ClusterError.
        """
        for resource in CONFIGURATIONS.values():
            await self._delete(ObjectKey(resource, "", configuration_name(package)))
        if conversions:
            for found in (await self._client.list(DEFINITION, label_selector=_SELECTOR)).items:
                if package_of(found) == package:
                    await self._end_conversion(package, name_of(found))
            (await self._left_over()).discard(package)

    async def _left_over(self) -> set[str]:
        """Return the packages whose webhooks an earlier daemon published. The API server is asked only once. Raises
        ClusterError.
        """
        if self._left is None:
            self._left = {package for package, _ in await self._stored()}
        return self._left

    async def _stored(self) -> list[tuple[str, ObjectKey]]:
        """Return the objects that publish webhooks of hooks, each with the name of its package. Raises ClusterError."""
        found: list[tuple[str, ObjectKey]] = []
        for resource in (*CONFIGURATIONS.values(), DEFINITION):
            listed = await self._client.list(resource, label_selector=_SELECTOR)
            found += [(package_of(obj), ObjectKey(resource, "", name_of(obj))) for obj in listed.items]
        return found

    async def trust(self, server: Server) -> None:
        """Write the server's address and authorities into all published objects, and use them for objects that are published
        later. Raises ClusterError.
        """
        self._server = server
        await self.keep()
        self._trusted.set()

    async def keep(self) -> None:
        """Write each published object again, so that it gets its wanted content. Raises ClusterError; a refusal by an API
        server is only logged.
        """
        await self._keep(self._write)

    async def keep_missing(self) -> None:
        """Write only the conversions of CRDs that did not exist before. Raises ClusterError like `keep`."""
        await self._keep(self._write_missing)

    async def _keep(self, write: Callable[[str, BoundWebhooks], Awaitable[None]]) -> None:
        async with self._writing:
            self._missing &= {crd for bound in self._published.values() for crd in bound.conversions}
            failure: ClusterError | None = None
            for package, bound in self.published().items():
                try:
                    if bound:
                        await write(package, bound)
                except (ForbiddenError, InvalidError) as error:
                    log.warning("%s: the webhooks of its hooks cannot be published: %s", package, error)
                except ClusterError as error:
                    failure = error  # the webhooks of other packages are still corrected
        if failure is not None:
            raise failure

    async def sweep(self, known: Callable[[], frozenset[str]]) -> None:
        """Remove webhooks from the cluster if this daemon would not answer their reviews: their package has no webhooks any
        more, or is not ``known`` here. Raises ClusterError.

        Such webhooks were published by an earlier daemon, or by this daemon for a package that another shard manages now.
        """
        for package in sorted({package for package, _ in await self._stored()}):
            async with (
                self._writing
            ):  # read within the lock, because the package may have published other webhooks meanwhile
                bound = self._published.get(package)
                if package in known() and (bound or bound is None):
                    continue
                log.info("%s: its published webhooks are removed, because no hook of this daemon answers them", package)
                self._published.pop(package, None)
                await self._erase(package, conversions=True)

    async def run(self, known: Callable[[], frozenset[str]]) -> None:
        """Restore published webhooks that other writers change or delete, until cancelled. ``known`` returns the names of all
        packages that this daemon knows.
        """
        async with trio.open_nursery() as nursery:
            for resource in (*CONFIGURATIONS.values(), DEFINITION):
                nursery.start_soon(self._follow, resource, name=f"webhooks: {resource.plural}")
            await self._trusted.wait()
            swept_at = trio.current_time() + SWEEP_S
            while True:
                with trio.move_on_at(
                    min(swept_at, trio.current_time() + (MISSING_S if self.misses_definitions else SWEEP_S))
                ):
                    await self._changed.wait()
                is_changed, self._changed = self._changed.is_set(), trio.Event()
                try:
                    await (self.keep() if is_changed or trio.current_time() >= swept_at else self.keep_missing())
                    if trio.current_time() >= swept_at:
                        await self.sweep(known)
                        swept_at = trio.current_time() + SWEEP_S
                except ClusterError as error:
                    log.warning("the webhooks of hooks cannot be published: %s; trying again in %.0f s", error, RETRY_S)
                    await trio.sleep(RETRY_S)
                    self._changed.set()

    async def _follow(self, resource: ResourceType) -> None:
        def changed(_change: ObjectChange) -> None:
            self._changed.set()

        async with open_informer(self._client, resource, label_selector=_SELECTOR, on_change=changed):
            await trio.sleep_forever()

    async def _write(self, package: str, bound: BoundWebhooks) -> None:
        """Write the objects of one package. Raises ClusterError."""
        server = self._server
        if server is None:
            return
        wanted = configurations(package, bound, server, SYSTEM_NAMESPACE, GROUP)
        for kind in (ReviewKind.VALIDATING, ReviewKind.MUTATING):
            if kind in wanted:
                await self._client.apply(wanted[kind], field_manager=self._manager, force=True)
            else:
                await self._delete(ObjectKey(CONFIGURATIONS[kind], "", configuration_name(package)))
        await self._write_conversions(package, bound.conversions.keys(), server)

    async def _write_missing(self, package: str, bound: BoundWebhooks) -> None:
        if self._server is not None:
            await self._write_conversions(package, bound.conversions.keys() & self._missing, self._server)

    async def _write_conversions(self, package: str, definitions: Iterable[str], server: Server) -> None:
        for crd in definitions:
            key = ObjectKey(DEFINITION, "", crd)
            try:
                await self._client.merge_patch(key, conversion_patch(package, crd, server))
                self._missing.discard(crd)
            except NotFoundError:
                if crd not in self._missing:
                    log.info(
                        "%s: the definition %s does not exist; the package's hooks convert its objects once it exists",
                        package,
                        crd,
                    )
                self._missing.add(crd)

    async def _end_conversion(self, package: str, crd: str) -> None:
        key = ObjectKey(DEFINITION, "", crd)
        try:
            if package_of(await self._client.get(key)) == package:
                await self._client.merge_patch(key, no_conversion_patch())
        except NotFoundError:
            return

    async def _delete(self, key: ObjectKey) -> None:
        try:
            await self._client.delete(key)
        except NotFoundError:
            return


def package_of(obj: JsonObject) -> str:
    """Return the package whose webhooks an object publishes; "" if the object names no package."""
    return find_str(obj, "metadata", "annotations", PACKAGE_ANNOTATION)
