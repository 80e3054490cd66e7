"""The seam to a Kubernetes API: what the rest of Wharfinger may ask of a cluster, and nothing more.

Implementations: :mod:`wharfinger.cluster.api.http_client` (httpx; real clusters, the embedded control plane over loopback, and
the same in memory for simulations). Each passes ``tests/cluster/support/client_contract.py``.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

from wharfinger.cluster.api.raw_object import RawEvent, RawPage
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.kube.resource import ObjectKey, ResourceType

REVIEWS: Final = "authorization.k8s.io"
"""The group of questions about rights, which are created and never kept."""


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch."""

    type: WatchType
    object: JsonObject


@dataclass(frozen=True, slots=True)
class ObjectList:
    """A consistent list: the objects (each with apiVersion and kind) and the revision they were read at."""

    items: tuple[JsonObject, ...]
    resource_version: str


@dataclass(frozen=True, slots=True)
class ServedKinds:
    """``kinds`` whose objects can be listed and deleted, each once, in its preferred version.

    ``silent``: group versions whose API server does not answer, so their kinds are not known.
    """

    kinds: tuple[ResourceType, ...]
    silent: tuple[str, ...] = ()


class Propagation(StrEnum):
    """`propagationPolicy` of a delete."""

    BACKGROUND = "Background"
    FOREGROUND = "Foreground"
    ORPHAN = "Orphan"


class ClusterClient(Protocol):
    """A Kubernetes API. Every method raises a ClusterError; none waits longer than the client's own request limit."""

    async def server_version(self) -> str:
        """The server's ``gitVersion``, such as ``v1.36.2``."""
        ...

    async def api_versions(self) -> tuple[str, ...]:
        """Sorted ``group/version`` and ``group/version/Kind`` of all that is served (Helm's ``.Capabilities.APIVersions``)."""
        ...

    async def served_kinds(self) -> ServedKinds:
        """All kinds whose objects can be listed and deleted, asked for anew."""
        ...

    async def resource_type(self, api_version: str, kind: str) -> ResourceType:
        """Discovery of one kind; looked up again (once) when unknown, then UnknownKindError."""
        ...

    async def find_resource(self, name: str, api_version: str = "") -> ResourceType:
        """What a person calls ``name``: a kind, plural, singular or short name in any case (``Pod``, ``pods``, ``po``).

        Without ``api_version`` the group listed first that has it, in the version that group prefers. A name of its own wins
        over a short one. Looked up again (once) when unknown, then UnknownKindError.
        """
        ...

    async def get(self, key: ObjectKey) -> JsonObject:
        """One object, or NotFoundError."""
        ...

    async def list(
        self, resource: ResourceType, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ObjectList:
        """All objects of a kind ("" for all namespaces) that both selectors take, page by page.

        Every kind has the fields ``metadata.name`` and ``metadata.namespace``; another than the kind's is an InvalidError.
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
        """Events after ``resource_version``; ends when the server ends it; GoneError means list again."""
        ...

    def raw_list(
        self,
        resource: ResourceType,
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        paged: bool = True,
    ) -> AbstractAsyncContextManager[AsyncIterator[RawPage]]:
        """As `list`, unparsed and page by page; a list has at least one page.

        A page may raise GoneError: the server forgot the list that was begun. Its pages so far are to be thrown away, or
        compared with those of the next list; beginning that is the caller's, with ``paged=False`` where it happens again.
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
    ) -> AbstractAsyncContextManager[AsyncIterator[RawEvent]]:
        """As `watch`, unparsed."""
        ...

    async def create(self, obj: JsonObject) -> JsonObject:
        """POST; ConflictError (reason AlreadyExists) where it exists. A review of REVIEWS has no name; the result answers it."""
        ...

    async def replace(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """PUT of the object or one of its subresources, under its own resourceVersion; ConflictError where it changed."""
        ...

    async def apply(
        self, obj: JsonObject, *, field_manager: str, force: bool = False, dry_run: bool = False
    ) -> JsonObject:
        """Server-side apply; ConflictError names the other managers."""
        ...

    async def merge_patch(self, key: ObjectKey, patch: JsonObject, *, subresource: str = "") -> JsonObject:
        """RFC 7396 merge patch of the object or one of its subresources (``status``)."""
        ...

    async def json_patch(self, key: ObjectKey, patch: Sequence[JsonValue], *, subresource: str = "") -> JsonObject:
        """RFC 6902 JSON patch, all of it or nothing; InvalidError where an operation cannot be done."""
        ...

    async def delete(self, key: ObjectKey, *, uid: str = "", propagation: Propagation = Propagation.BACKGROUND) -> None:
        """Delete; NotFoundError where it is gone; with ``uid``, ConflictError where another object has the name."""
        ...
