"""The ClusterClient over HTTP: Kubernetes' REST conventions, on httpx and trio.

Callers may rely on these properties:

* Every method ends in bounded time, and raises only ClusterErrors.
* A list is consistent: all its pages are read at one revision. If the server has forgotten this revision before the last page,
  :meth:`~HttpClusterClient.list` begins again, and :meth:`~HttpClusterClient.raw_list` raises GoneError.
* A watch yields complete events, or raises an error.
* Discovery is cached. It is repeated once if a kind is missing. The cached result is discarded after this client has written a
  CustomResourceDefinition or an APIService, and after a request for a kind that the server does not serve.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Final

import httpx
import trio

from wharfinger.cluster.api.client import REVIEWS, ObjectList, Propagation, ServedKinds, WatchEvent
from wharfinger.cluster.api.connection import Connection
from wharfinger.cluster.api.discovery import (
    AGGREGATED_ACCEPT,
    Catalog,
    aggregated_catalog,
    group_version_path,
    group_versions,
    is_aggregated,
    plain_catalog,
)
from wharfinger.cluster.api.errors import ApiError, SilentKindError, UnknownKindError, api_error
from wharfinger.cluster.api.http_errors import MalformedAnswerError, NotServedError
from wharfinger.cluster.api.http_reading import HttpReader, decode_object, selectors, text_of
from wharfinger.cluster.api.http_session import Call, ClientOptions, HttpSession, open_session
from wharfinger.cluster.api.pod_exec import PodExecutor
from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.cluster.traffic.pacer import PaceStatistics
from wharfinger.formats.json.value import JsonObject, JsonValue, ShapeError, encode_json, find_str
from wharfinger.kube.resource import ObjectKey, ResourceType, kind_of, name_of, namespace_of
from wharfinger.kube.service_account import ServiceAccount

_REDEFINING: Final = frozenset({"CustomResourceDefinition.apiextensions.k8s.io", "APIService.apiregistration.k8s.io"})
"""The kinds whose objects determine which kinds the server serves."""


class HttpClusterClient:
    """A :class:`~wharfinger.cluster.api.client.ClusterClient` over HTTP. :func:`open_client` makes it."""

    def __init__(self, session: HttpSession) -> None:
        self._session = session
        self._catalog: Catalog | None = None
        self._catalog_number = 0
        self._catalog_until = 0.0
        self._discovering = trio.Lock()
        self._version = "", 0.0
        """The server's version, and the time until which it is cached."""
        self._reader = HttpReader(session)
        self.executor = PodExecutor(session)
        """The executor of commands in pods."""
        self.heartbeats = Heartbeats()
        """The heartbeats of all watches of this client."""

    def acting_as(self, account: ServiceAccount, *, comment: str = "") -> "HttpClusterClient":
        """Return a client whose requests for single objects are made as a service account."""
        return _ActingClient(self, self._session, account, comment)

    # -- about the server

    async def server_version(self) -> str:
        """Return ``gitVersion`` of ``/version``; the answer is at most a minute old."""
        now, (version, until) = trio.current_time(), self._version
        if version and now < until:
            await trio.lowlevel.checkpoint()
            return version
        document = await self._json(Call("GET", "/version", "read the server's version"))
        version = text_of(document, "read the server's version", "gitVersion")
        self._version = version, now + self._session.options.catalog_age_s
        return version

    async def api_versions(self) -> tuple[str, ...]:
        """Return all served ``group/version`` and ``group/version/Kind``; the answer is at most a minute old."""
        return (await self._current_catalog(trio.current_time())).api_versions()

    async def served_kinds(self) -> ServedKinds:
        """Discover and return all kinds whose objects can be listed and deleted."""
        catalog = await self._discover(self._catalog_number)
        return ServedKinds(catalog.kinds, catalog.unavailable)

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Return the type of one kind from the cache. If the kind is missing there, ask the server once more."""
        return await self._look_up(
            f"{kind} of {api_version}", api_version, lambda catalog: catalog.find(api_version, kind)
        )

    async def find_resource(self, name: str, api_version: str = "") -> ResourceType:
        """Return the type that has this name as its kind, plural, singular or short name. Upper and lower case do not matter.

        If the name is not in the cache, ask the server once more.
        """
        what = f"{name} of {api_version}" if api_version else name
        return await self._look_up(what, api_version, lambda catalog: catalog.named(name, api_version))

    async def _look_up(
        self, what: str, api_version: str, look: Callable[[Catalog], ResourceType | None]
    ) -> ResourceType:
        number = self._catalog_number
        catalog = await self._current_catalog()
        found = look(catalog)
        if found is None and number == self._catalog_number and number:
            catalog = await self._discover(number)
            found = look(catalog)
        if found is not None:
            return found
        silent = [version for version in catalog.unavailable if api_version in {"", version}]
        if api_version and silent:
            raise SilentKindError(f"{what}: the API server behind {api_version} does not answer")
        raise UnknownKindError(
            f"{what}: {self._session.server} does not serve this kind; check that its CustomResourceDefinition is installed"
            + (f" (the API servers behind {', '.join(silent)} do not answer)" if silent else "")
        )

    # -- reading

    async def get(self, key: ObjectKey) -> JsonObject:
        """Return one object."""
        return await self._json(Call("GET", _path(key), f"get {key}", timed=True), key.resource)

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        """Return all objects that the selectors match."""
        with self._noticing():
            return await self._reader.list(resource, namespace, selectors(label_selector, field_selector))

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
        """Yield all objects, unparsed, page by page."""
        chosen = selectors(label_selector, field_selector)
        with self._noticing():
            async with self._reader.raw_list(
                resource, namespace, chosen, paged=paged, metadata_only=metadata_only
            ) as pages:
                yield pages

    @asynccontextmanager
    async def watch(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AsyncGenerator[AsyncIterator[WatchEvent], None]:
        """Yield the events after ``resource_version``, bookmarks included."""
        chosen = selectors(label_selector, field_selector)
        with self._noticing():
            async with self._reader.watch(resource, namespace, resource_version, chosen) as events:
                yield events

    @asynccontextmanager
    async def raw_watch(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[AsyncIterator[RawEvent], None]:
        """Yield the events after ``resource_version``, unparsed, bookmarks included."""
        chosen = selectors(label_selector, field_selector)
        with self._noticing():
            async with self._reader.raw_watch(
                resource, namespace, resource_version, chosen, metadata_only=metadata_only
            ) as events:
                yield events

    # -- writing

    async def create(self, obj: JsonObject) -> JsonObject:
        """Create an object with POST."""
        resource, namespace, name = await self._address(obj, "create", generated=True)
        key = ObjectKey(resource, namespace, name)
        if name:
            _path(key)
        return await self._write(
            Call("POST", resource.path(namespace), f"create {key}".rstrip(), body=encode_json(obj)), resource
        )

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Replace an object with PUT."""
        key = ObjectKey(*await self._address(obj, "replace"))
        what = f"replace {key}" + (f" ({subresource})" if subresource else "")
        return await self._write(
            Call("PUT", _path(key, subresource), what, body=encode_json(obj), timed=True), key.resource
        )

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        """Apply an object (server-side apply). The request's content type is YAML; its body is JSON, which is valid YAML."""
        key = ObjectKey(*await self._address(obj, "apply"))
        params = {"fieldManager": field_manager, "force": "true" if force else "false"}
        if dry_run:
            params["dryRun"] = "All"
        return await self._write(
            Call(
                "PATCH",
                _path(key),
                f"apply {key}",
                params,
                encode_json(obj),
                "application/apply-patch+yaml",
                timed=True,
            ),
            key.resource,
        )

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        """Patch an object with an RFC 7396 merge patch."""
        return await self._patch(key, patch, "merge-patch", subresource)

    async def json_patch(self, key: ObjectKey, patch: Sequence[JsonValue], *, subresource: str = "") -> JsonObject:
        """Patch an object with an RFC 6902 JSON patch."""
        return await self._patch(key, [*patch], "json-patch", subresource)

    async def _patch(self, key: ObjectKey, patch: JsonValue, kind: str, subresource: str) -> JsonObject:
        what = f"patch {key}" + (f" ({subresource})" if subresource else "")
        call = Call(
            "PATCH",
            _path(key, subresource),
            what,
            body=encode_json(patch),
            content_type=f"application/{kind}+json",
            timed=True,
        )
        return await self._write(call, key.resource)

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> bool:
        """Delete an object with DELETE, with its UID as a precondition if ``uid`` is given.

        Returns whether the object is gone. The server answers with a Status or with the object, depending on the kind. If the
        object in the answer has a deletionTimestamp, it still exists, for example because of a finalizer.
        """
        options: JsonObject = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": str(propagation)}
        if uid:
            options["preconditions"] = {"uid": uid}
        answer = await self._write(Call("DELETE", _path(key), f"delete {key}", body=encode_json(options)), key.resource)
        return kind_of(answer) == ("v1", "Status") or not find_str(answer, "metadata", "deletionTimestamp")

    # -- statistics

    def statistics(self) -> dict[str, int]:
        """Return the numbers of requests under way, waiting requests, open watches, and known kinds."""
        kinds = 0 if self._catalog is None else len(self._catalog.types)
        return {**self._session.statistics(), "watches": self._reader.watches, "kinds": kinds}

    def pace(self) -> PaceStatistics:
        """Return the state of the pacer, which limits concurrent requests."""
        return self._session.pace()

    def silence_limit(self, resource: ResourceType) -> float:
        """Return for how many seconds a watch of this kind may be silent."""
        return self._reader.silence_limit(resource)

    # -- requests

    async def _json(self, call: Call, resource: ResourceType | None = None) -> JsonObject:
        return decode_object(await self._send(call, resource), call.what)

    async def _write(self, call: Call, resource: ResourceType) -> JsonObject:
        answer = await self._json(call, resource)
        if resource.group_kind in _REDEFINING:
            self.forget_kinds()
        return answer

    async def _send(self, call: Call, resource: ResourceType | None = None) -> bytes:
        if resource is None:
            return await self._session.request(call)
        with self._noticing():
            return await self._session.request(call)

    @contextmanager
    def _noticing(self) -> Iterator[None]:
        """Discard the cached discovery if a request in the block fails because the server does not serve its kind."""
        try:
            yield
        except NotServedError:
            self.forget_kinds()
            raise

    async def _address(self, obj: JsonObject, verb: str, *, generated: bool = False) -> tuple[ResourceType, str, str]:
        """Return the type, namespace and name of an object to be written. Raises InvalidError, UnknownKindError.

        If ``generated`` is true, the server may generate the name.
        """
        try:
            (api_version, kind), namespace, name = kind_of(obj), namespace_of(obj), name_of(obj)
            name = name or (find_str(obj, "metadata", "generateName") if generated else "")
        except ShapeError as error:
            raise api_error(422, "Invalid", f"{verb}: {error}") from error
        question = generated and api_version.partition("/")[0] in REVIEWS  # a review must have no name
        if not api_version or not kind or not (name or question):
            raise api_error(422, "Invalid", f"{verb} {kind or 'object'} {name}: apiVersion, kind and name are needed")
        resource = await self.resource_type(api_version, kind)
        if resource.namespaced and not namespace:
            raise api_error(422, "Invalid", f"{verb} {resource.group_kind} {name}: metadata.namespace is needed")
        return resource, namespace if resource.namespaced else "", name

    # -- discovery

    def forget_kinds(self) -> None:
        """Discard the cached discovery, because the server may serve other kinds now."""
        self._catalog_until = -1.0

    async def _current_catalog(self, fresh_at: float | None = None) -> Catalog:
        """Return the cached catalog, or discover it again if it was discarded.

        With ``fresh_at``, also discover it again if it has expired by this time.
        """
        number = self._catalog_number
        stale = self._catalog_until < 0 or (fresh_at is not None and fresh_at >= self._catalog_until)
        if self._catalog is None or stale:
            return await self._discover(number)
        return self._catalog

    async def _discover(self, number: int) -> Catalog:
        """Discover the served kinds, and return the new catalog. ``number`` is the number of the catalog to replace; if another
        task has replaced it meanwhile, nothing is discovered.
        """
        async with self._discovering:
            if self._catalog is None or self._catalog_number == number:
                self._catalog_until = 0.0
                catalog = await self._ask_catalog()
                self._catalog_number += 1
                self._catalog = catalog
                if self._catalog_until == 0.0:
                    self._catalog_until = trio.current_time() + self._session.options.catalog_age_s
            return self._catalog

    async def _ask_catalog(self) -> Catalog:
        what = "discover the served kinds"
        api = await self._json(Call("GET", "/api", what, accept=AGGREGATED_ACCEPT))
        apis = await self._json(Call("GET", "/apis", what, accept=AGGREGATED_ACCEPT))
        try:
            if is_aggregated(api) and is_aggregated(apis):
                return aggregated_catalog([api, apis])
            lists: dict[str, JsonObject | None] = {}
            for api_version in group_versions(api, apis):
                lists[api_version] = await self._group_version(api_version)
            return plain_catalog(lists)
        except ShapeError as error:
            raise MalformedAnswerError(f"{what}: {error}") from error

    async def _group_version(self, api_version: str) -> JsonObject | None:
        """Return the APIResourceList of a group version, or None if the API server behind it does not answer."""
        try:
            return await self._json(Call("GET", group_version_path(api_version), f"discover {api_version}"))
        except ApiError as error:
            if error.code not in {404, 503}:
                raise
            return None


class _ActingClient(HttpClusterClient):
    """A client that impersonates a service account in requests for single objects. It makes all other requests as the
    connection's user.

    It sends no ``Impersonate-Group`` header, so the API server adds the groups that every token of the account has.
    """

    def __init__(self, own: HttpClusterClient, session: HttpSession, account: ServiceAccount, comment: str) -> None:
        super().__init__(session)
        self._comment = comment
        self._own = own
        self._headers = (("Impersonate-User", account.user),)

    def acting_as(self, account: ServiceAccount, *, comment: str = "") -> HttpClusterClient:
        return self._own.acting_as(account, comment=comment)

    async def server_version(self) -> str:
        return await self._own.server_version()

    async def api_versions(self) -> tuple[str, ...]:
        return await self._own.api_versions()

    async def served_kinds(self) -> ServedKinds:
        return await self._own.served_kinds()

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        return await self._own.resource_type(api_version, kind)

    async def find_resource(self, name: str, api_version: str = "") -> ResourceType:
        return await self._own.find_resource(name, api_version)

    def forget_kinds(self) -> None:
        self._own.forget_kinds()

    async def _send(self, call: Call, resource: ResourceType | None = None) -> bytes:
        if resource is not None:
            call = replace(call, headers=(*call.headers, *self._headers), comment=self._comment)
        return await super()._send(call, resource)


@asynccontextmanager
async def open_client(
    connection: Connection,
    *,
    transport: httpx.AsyncBaseTransport | None = None,
    options: ClientOptions | None = None,
) -> AsyncGenerator[HttpClusterClient, None]:
    """Yield a client that can be used in the block. ``transport`` replaces the network, for example by a server in memory."""
    async with open_session(connection, options or ClientOptions(), transport) as session:
        yield HttpClusterClient(session)


def _path(key: ObjectKey, subresource: str = "") -> str:
    """Return the path of an object's URL. Raises InvalidError for a name that would change the path, such as ``..``."""
    for part in (key.namespace, key.name, subresource):
        if part in {".", ".."} or "/" in part or "%" in part:
            raise api_error(422, "Invalid", f"{key}: {part!r} cannot be part of a path")
    if not key.name:
        raise api_error(422, "Invalid", f"{key}: a name is needed")
    return key.resource.path(key.namespace, key.name, subresource)
