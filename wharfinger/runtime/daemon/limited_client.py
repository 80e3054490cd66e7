"""The cluster's API under the daemon's fair limits: every call takes one of the API slots, and so one package's calls, however
many, leave room for those of the others (:mod:`wharfinger.queue.slots_machine` has the rules).

Not limited: watches, which last as long as the daemon and wait for others most of the time, and discovery, which is answered
from memory or asked once for everybody. Everything else is as the client below says; nothing is retried, cached or changed.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from wharfinger.cluster.api.client import ClusterClient, ObjectList, Propagation, ServedKinds, WatchEvent
from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.queue.slots import Slots
from wharfinger.queue.slots_machine import Kind


class LimitedClient:
    """A :class:`~wharfinger.cluster.api.client.ClusterClient` over another. Whose call it is, the slots know (`Slots.use`)."""

    def __init__(self, client: ClusterClient, slots: Slots) -> None:
        self._client = client
        self._slots = slots

    # -- without a slot

    async def api_versions(self) -> tuple[str, ...]:
        """All that is served."""
        return await self._client.api_versions()

    async def served_kinds(self) -> ServedKinds:
        """All kinds whose objects can be listed and deleted."""
        return await self._client.served_kinds()

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Discovery of one kind."""
        return await self._client.resource_type(api_version, kind)

    async def find_resource(self, name: str, api_version: str = "") -> ResourceType:
        """A kind by what people call it."""
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
        """Events after ``resource_version``."""
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
    ) -> AbstractAsyncContextManager[AsyncIterator[RawEvent]]:
        """Events after ``resource_version``, unparsed."""
        return self._client.raw_watch(
            resource,
            namespace,
            resource_version=resource_version,
            label_selector=label_selector,
            field_selector=field_selector,
        )

    # -- each with a slot

    async def server_version(self) -> str:
        """The server's version."""
        async with self._slots.use(Kind.API):
            return await self._client.server_version()

    async def get(self, key: ObjectKey) -> JsonObject:
        """One object."""
        async with self._slots.use(Kind.API):
            return await self._client.get(key)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        """All objects of a kind; one slot for all pages."""
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
    ) -> AsyncGenerator[AsyncIterator[RawPage], None]:
        """All objects of a kind, unparsed; one slot for all pages, and for what is done between them."""
        async with (
            self._slots.use(Kind.API),
            self._client.raw_list(
                resource, namespace, label_selector=label_selector, field_selector=field_selector, paged=paged
            ) as pages,
        ):
            yield pages

    async def create(self, obj: JsonObject) -> JsonObject:
        """POST."""
        async with self._slots.use(Kind.API):
            return await self._client.create(obj)

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """PUT."""
        async with self._slots.use(Kind.API):
            return await self._client.replace(obj, subresource=subresource)

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        """Server-side apply."""
        async with self._slots.use(Kind.API):
            return await self._client.apply(obj, field_manager=field_manager, force=force, dry_run=dry_run)

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        """RFC 7396."""
        async with self._slots.use(Kind.API):
            return await self._client.merge_patch(key, patch, subresource=subresource)

    async def json_patch(self, key: ObjectKey, patch: Sequence[JsonValue], *, subresource: str = "") -> JsonObject:
        """RFC 6902."""
        async with self._slots.use(Kind.API):
            return await self._client.json_patch(key, patch, subresource=subresource)

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> None:
        """DELETE."""
        async with self._slots.use(Kind.API):
            await self._client.delete(key, uid=uid, propagation=propagation)
