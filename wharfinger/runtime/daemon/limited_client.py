"""The cluster's API under the daemon's fair limits: a call needs one of the API slots, so even very many calls of one package
do not delay the calls of other packages (:mod:`wharfinger.queue.slots_machine` has the rules).

There are two exceptions, which need no slot: watches, which last as long as the daemon and are idle most of the time, and
discovery, which is answered from memory, or by one request for all packages. In all other respects the calls behave like those
of the wrapped client: nothing is retried, cached or changed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from wharfinger.cluster.api.client import ClusterClient, ObjectList, Propagation, ServedKinds, WatchEvent
from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.kube.service_account import ServiceAccount
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind


class LimitedClient:
    """A :class:`~wharfinger.cluster.api.client.ClusterClient` that wraps another client, and limits its calls by slots.
    `Slots.use` finds out for which package a call is made.
    """

    def __init__(self, client: ClusterClient, slots: Slots) -> None:
        self._client = client
        self._slots = slots

    @property
    def heartbeats(self) -> Heartbeats:
        """The heartbeats of the wrapped client's watches."""
        return self._client.heartbeats

    def acting_as(self, account: ServiceAccount, *, comment: str = "") -> "LimitedClient":
        """Return a client that acts as a service account, within the same limits."""
        return LimitedClient(self._client.acting_as(account, comment=comment), self._slots)

    # -- calls without a slot

    def silence_limit(self, resource: ResourceType) -> float:
        """Return for how many seconds a watch of this kind may be silent before it fails."""
        return self._client.silence_limit(resource)

    async def api_versions(self) -> tuple[str, ...]:
        """Return all API versions that are served."""
        return await self._client.api_versions()

    async def served_kinds(self) -> ServedKinds:
        """Return all kinds whose objects can be listed and deleted."""
        return await self._client.served_kinds()

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Return the type of one kind, as discovery describes it."""
        return await self._client.resource_type(api_version, kind)

    async def find_resource(self, name: str, api_version: str = "") -> ResourceType:
        """Find a kind by the name that users give it."""
        return await self._client.find_resource(name, api_version)

    def watch(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch the events after ``resource_version``."""
        return self._client.watch(
            resource,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
        )

    def raw_watch(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[RawEvent]]:
        """Watch the events after ``resource_version``, unparsed."""
        return self._client.raw_watch(
            resource,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )

    # -- calls that take a slot

    async def server_version(self) -> str:
        """Return the server's version."""
        async with self._slots.use(Kind.API):
            return await self._client.server_version()

    async def get(self, key: ObjectKey) -> JsonObject:
        """Return one object."""
        async with self._slots.use(Kind.API):
            return await self._client.get(key)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        """List all objects of a kind, with one slot for all pages."""
        async with self._slots.use(Kind.API):
            return await self._client.list(
                resource, namespace, label_selector=label_selector, field_selector=field_selector
            )

    @asynccontextmanager
    async def raw_list(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        paged: bool = True,
        metadata_only: bool = False,
    ) -> AsyncGenerator[AsyncIterator[RawPage], None]:
        """List all objects of a kind as text. One slot is occupied until the caller has processed all pages."""
        async with (
            self._slots.use(Kind.API),
            self._client.raw_list(
                resource,
                namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                paged=paged,
                metadata_only=metadata_only,
            ) as pages,
        ):
            yield pages

    async def create(self, obj: JsonObject) -> JsonObject:
        """Create an object (POST)."""
        async with self._slots.use(Kind.API):
            return await self._client.create(obj)

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Replace an object (PUT)."""
        async with self._slots.use(Kind.API):
            return await self._client.replace(obj, subresource=subresource)

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        """Apply an object by server-side apply."""
        async with self._slots.use(Kind.API):
            return await self._client.apply(obj, field_manager=field_manager, force=force, dry_run=dry_run)

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        """Patch an object with a merge patch (RFC 7396)."""
        async with self._slots.use(Kind.API):
            return await self._client.merge_patch(key, patch, subresource=subresource)

    async def json_patch(self, key: ObjectKey, patch: Sequence[JsonValue], *, subresource: str = "") -> JsonObject:
        """Patch an object with a JSON patch (RFC 6902)."""
        async with self._slots.use(Kind.API):
            return await self._client.json_patch(key, patch, subresource=subresource)

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> bool:
        """Delete an object (DELETE), and return whether it is already gone."""
        async with self._slots.use(Kind.API):
            return await self._client.delete(key, uid=uid, propagation=propagation)
