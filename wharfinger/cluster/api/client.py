"""The interface to a Kubernetes API: every request that the rest of Wharfinger may make to a cluster, and nothing more.

The implementation is :mod:`wharfinger.cluster.api.http_client`, which uses httpx. It is used with real clusters, with the
embedded control plane over loopback, and with control planes in memory. ``tests/cluster/support/client_contract.py`` tests it
with each kind of server.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.traffic.heartbeats import Heartbeats
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey, ResourceType
from wharfinger.kube.service_account import ServiceAccount

REVIEWS: Final = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
"""The API groups of reviews, such as TokenReview and SubjectAccessReview. A review is created, but the server never stores it."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch."""

    type: WatchType
    object: JsonObject


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A consistent list: the objects (each with apiVersion and kind) and the revision at which they were read."""

    items: tuple[JsonObject, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """The served kinds whose objects can be listed and deleted, each once, in its preferred version.

    ``silent`` has the group versions whose API server does not answer, so that their kinds may be missing.
    """

    kinds: tuple[ResourceType, ...]
    silent: tuple[str, ...] = ()


class Propagation(StrEnum):
    """The `propagationPolicy` of a delete."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class ClusterClient(Protocol):
    """A Kubernetes API. Every method raises only ClusterErrors, and each request has a time limit."""

    @property
    def heartbeats(self) -> Heartbeats:
        """The heartbeats of all watches of this client, which show when each watch last received something."""
        ...

    def acting_as(self, account: ServiceAccount, *, comment: str = "") -> "ClusterClient":
        """Return a new client that impersonates a service account in its requests for single objects.

        The new client still makes discovery requests, lists and watches as the user of the old client. ``comment`` is appended
        to the user agent of the requests that impersonate the account. The new client need not be closed.
        """
        ...

    def silence_limit(self, resource: ResourceType) -> float:
        """Return for how many seconds a watch of this kind may be silent before it fails."""
        ...

    async def server_version(self) -> str:
        """Return the server's ``gitVersion``, such as ``v1.36.2``."""
        ...

    async def api_versions(self) -> tuple[str, ...]:
        """Return all served ``group/version`` and ``group/version/Kind``, sorted (Helm's ``.Capabilities.APIVersions``)."""
        ...

    async def served_kinds(self) -> ServedKinds:
        """Discover and return all kinds whose objects can be listed and deleted."""
        ...

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Return the type of one kind. Raises UnknownKindError.

        If the kind is not known, discovery is repeated once before the error is raised.
        """
        ...

    async def find_resource(self, name: str, api_version: str = "") -> ResourceType:
        """Return the type that a user calls ``name``: kind, plural, singular or short name in any case (``Pod``, ``pods``,
        ``po``).

        Without ``api_version``, the first group (in the server's order) that has the name is used, in the version that the group
        prefers. Kinds, plurals and singulars take precedence over short names. If the name is not known, discovery is repeated
        once; if the name is still not known, UnknownKindError is raised.
        """
        ...

    async def get(self, key: ObjectKey) -> JsonObject:
        """Return one object. Raises NotFoundError."""
        ...

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        """Return all objects of a kind that are in a namespace ("" for all) and match both selectors. Read them page by page.

        Every kind can be selected by the fields ``metadata.name`` and ``metadata.namespace``. Raises InvalidError for a field
        that the kind does not support.
        """
        ...

    def watch(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        resource_version: str,
        label_selector: str = "",
        field_selector: str = "",
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Yield the events after ``resource_version`` until the server ends the watch.

        Raises GoneError if the server has forgotten this version. The caller then has to list the objects again.
        """
        ...

    def raw_list(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        paged: bool = True,
        metadata_only: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[RawPage]]:
        """Yield the objects that `list` would return, unparsed and page by page; a list has at least one page.

        If the server has forgotten the list before all pages are read, GoneError is raised instead of the next page. The caller
        then begins a new list, with ``paged=False`` after a second GoneError. It either discards the pages of the first list, or
        compares them with the pages of the new list. With ``metadata_only``, the server sends the objects as
        PartialObjectMetadata if it supports that.
        """
        ...

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
        """Yield the events that `watch` would yield, unparsed."""
        ...

    async def create(self, obj: JsonObject) -> JsonObject:
        """Create the object (POST) and return it.

        A review (an object of a group in REVIEWS) has no name. The returned object contains the server's answer to the review.

        Raises ConflictError (reason AlreadyExists) if the object exists.
        """
        ...

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Replace the object or one of its subresources (PUT).

        Raises ConflictError if the object in the cluster has another resourceVersion than ``obj``, because it changed since it
        was read.
        """
        ...

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        """Apply the object (server-side apply).

        If other managers own fields that would change, ``force`` takes these fields over. Without ``force``, the method raises
        ConflictError, which names the managers.
        """
        ...

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        """Patch the object or one of its subresources (``status``) with an RFC 7396 merge patch."""
        ...

    async def json_patch(self, key: ObjectKey, patch: Sequence[JsonValue], *, subresource: str = "") -> JsonObject:
        """Patch the object with an RFC 6902 JSON patch, completely or not at all. Raises InvalidError if the patch cannot be
        applied.
        """
        ...

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> bool:
        """Delete the object, and return whether it is already gone. Finalizers or a grace period can keep it for some time.

        Raises NotFoundError if the object did not exist, and, with ``uid``, ConflictError if the object has another UID.
        """
        ...
