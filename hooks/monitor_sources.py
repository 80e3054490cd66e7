"""The informers behind one binding: one for each namespace and name that it selects (spec hook-protocol §4.2).

Where namespaces are selected by their labels, informers come and go with them. What is in a namespace that begins to match is
told as added, what is in one that ceases to match (or to be) as deleted: a hook that follows events knows what is there as well
as one that reads snapshots.

Every informer is a watch that the API server holds open, so a binding has at most MAX_WATCHES of them. One that begins with more
fails; namespaces that come to match later and do not fit any more are logged, and followed once there is room.

All changes of all informers come out in one place, :data:`~wharfinger.cluster.object_cache.OnChange`, in the order of each.
"""

import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import trio

from wharfinger.cluster.client import ClusterClient, WatchType
from wharfinger.cluster.errors import ClusterError
from wharfinger.cluster.informer import Informer, open_informer
from wharfinger.cluster.object_cache import ObjectChange, OnChange
from wharfinger.cluster.resource import ObjectKey, ResourceType
from wharfinger.formats.json_value import JsonObject, ShapeError, find_object
from wharfinger.hooks.config import MAX_WATCHES, KubernetesBinding, NamespaceSelector

log = logging.getLogger(__name__)

_TOLD_APART_BY: Final = ("name", "namespace", "uid", "resourceVersion")


class TooManyWatchesError(Exception):
    """A binding selects more namespaces and names than MAX_WATCHES."""

    def __init__(self, kind: str, wanted: int) -> None:
        super().__init__(
            f"{wanted} watches of {kind} would be needed, one for each namespace and name, and a binding may have "
            f"{MAX_WATCHES}; select fewer, or all with labels"
        )


_Unlistable: TypeAlias = ClusterError | ShapeError | TooManyWatchesError


@dataclass(frozen=True, slots=True)
class Selection:
    """Which objects: ``namespaces`` by name ("" for all) unless ``namespace_labels`` says which; ``names`` () for any."""

    namespaces: tuple[str, ...]
    namespace_labels: str
    names: tuple[str, ...]
    label_selector: str
    field_selector: str

    def field_selectors(self) -> tuple[str, ...]:
        """One for each informer of a namespace."""
        if not self.names:
            return (self.field_selector,)
        own = [self.field_selector] if self.field_selector else []
        return tuple(",".join([f"metadata.name={name}", *own]) for name in self.names)


def selection(binding: KubernetesBinding, resource: ResourceType, namespace: str | None) -> Selection:
    """What a binding selects; ``namespace`` is the only one that an Application's hook sees, whatever it asks for."""
    asked = binding.namespaces
    if namespace is not None:
        asked = NamespaceSelector((namespace,), "")
    elif asked is None or not resource.namespaced:
        asked = NamespaceSelector(None, "")
    return Selection(
        asked.names or ("",), asked.labels, binding.names or (), binding.label_selector, binding.field_selector
    )


def watches(binding: KubernetesBinding, namespace: str | None) -> int:
    """How many watches a binding needs from the start, as far as its configuration tells; ``namespace`` as in `selection`."""
    asked = binding.namespaces.names if binding.namespaces is not None and namespace is None else None
    return len(asked or ("",)) * len(binding.names or ("",))


class _Source:
    """One informer; silent from the moment it is closed."""

    def __init__(self, namespace: str, field_selector: str, on_change: OnChange) -> None:
        self.namespace = namespace
        self.field_selector = field_selector
        self.scope = trio.CancelScope()
        self.listed = trio.Event()
        self.error: ClusterError | ShapeError | None = None
        self._keys: set[ObjectKey] = set()
        self._on_change = on_change

    def take(self, change: ObjectChange) -> None:
        """Pass a change on, and remember what is there."""
        if self.scope.cancel_called:
            return
        if change.type is WatchType.DELETED:
            self._keys.discard(change.key)
        else:
            self._keys.add(change.key)
        self._on_change(change)

    def close(self) -> None:
        """Tell all that is there as gone, and end."""
        for key in sorted(self._keys):
            self._on_change(ObjectChange(WatchType.DELETED, key, None))
        self.scope.cancel(reason=f"namespace {self.namespace} is no longer selected")


class Sources:
    """Made by :func:`open_sources`."""

    def __init__(
        self,
        client: ClusterClient,
        resource: ResourceType,
        wanted: Selection,
        on_change: OnChange,
        nursery: trio.Nursery,
    ) -> None:
        """Private to `open_sources`, which owns the nursery."""
        self._client = client
        self._resource = resource
        self._selection = wanted
        self._on_change = on_change
        self._nursery = nursery
        self._sources: dict[str, tuple[_Source, ...]] = {}
        self._left_out: set[str] = set()

    def __len__(self) -> int:
        """How many informers there are."""
        return sum(len(sources) for sources in self._sources.values())

    async def wait_listed(self) -> None:
        """Begin; return when everything selected was listed once. Once only.

        Raises the first ClusterError or ShapeError, and TooManyWatchesError.
        """
        if self._selection.namespace_labels:
            namespaces = await self._client.resource_type("v1", "Namespace")
            error = await self._nursery.start(self._follow_namespaces, namespaces, name="namespaces of a monitor")
            if error is not None:
                raise error
        else:
            self._check_room(len(self._selection.namespaces))
            for namespace in self._selection.namespaces:
                self._open(namespace)
        for source in [source for sources in self._sources.values() for source in sources]:
            await source.listed.wait()
            if source.error is not None:
                raise source.error

    def _check_room(self, namespaces: int) -> None:
        wanted = namespaces * len(self._selection.field_selectors())
        if wanted > MAX_WATCHES:
            raise TooManyWatchesError(self._resource.kind, wanted)

    def _open(self, namespace: str) -> None:
        selectors = self._selection.field_selectors()
        sources = self._sources[namespace] = tuple(_Source(namespace, one, self._on_change) for one in selectors)
        for source in sources:
            self._nursery.start_soon(self._inform, source)

    def _close(self, namespace: str) -> None:
        for source in self._sources.pop(namespace, ()):
            source.close()

    async def _inform(self, source: _Source) -> None:
        with source.scope:
            async with open_informer(
                self._client,
                self._resource,
                source.namespace,
                self._selection.label_selector,
                source.field_selector,
                keep=_trimmed,
                on_change=source.take,
            ) as informer:
                source.error = await _first_list(informer)
                source.listed.set()
                await trio.sleep_forever()
        source.listed.set()

    async def _follow_namespaces(
        self, namespaces: ResourceType, *, task_status: trio.TaskStatus[_Unlistable | None]
    ) -> None:
        """Open and close informers as namespaces match; started with the error where they cannot be listed."""
        labels = self._selection.namespace_labels
        async with open_informer(self._client, namespaces, label_selector=labels, keep=_trimmed) as informer:
            error = await _first_list(informer)
            if error is not None:
                task_status.started(error)
                return
            try:
                self._check_room(len(informer.objects()))
            except TooManyWatchesError as too_many:
                task_status.started(too_many)
                return
            with informer.changes() as changes:
                self._follow(informer, changes.take_nowait())
                task_status.started(None)
                while True:
                    self._follow(informer, await changes.wait())

    def _follow(self, informer: Informer, changed: Iterable[ObjectKey]) -> None:
        there = {key.name for key in changed if informer.get(key) is not None}
        for gone in sorted({key.name for key in changed} - there):
            self._left_out.discard(gone)
            self._close(gone)
        for namespace in sorted((there | self._left_out) - self._sources.keys()):
            if self._has_room():
                self._left_out.discard(namespace)
                self._open(namespace)
            elif namespace not in self._left_out:
                self._left_out.add(namespace)
                log.error(
                    "namespace %s is selected and its %s are not watched: a binding may have %d watches; select fewer",
                    namespace,
                    self._resource.kind,
                    MAX_WATCHES,
                )

    def _has_room(self) -> bool:
        return len(self) + len(self._selection.field_selectors()) <= MAX_WATCHES


@asynccontextmanager
async def open_sources(
    client: ClusterClient, resource: ResourceType, wanted: Selection, on_change: OnChange
) -> AsyncGenerator[Sources, None]:
    """The informers of a binding for as long as the block runs; they begin with :meth:`Sources.wait_listed`."""
    async with trio.open_nursery() as nursery:
        yield Sources(client, resource, wanted, on_change, nursery)
        nursery.cancel_scope.cancel()


async def _first_list(informer: Informer) -> ClusterError | ShapeError | None:
    """What the first attempt to list failed with."""
    try:
        await informer.wait_first_list()
    except (ClusterError, ShapeError) as error:
        return error
    return None


def _trimmed(obj: JsonObject) -> JsonObject:
    """What an informer needs of an object that the monitor holds itself."""
    metadata = find_object(obj, "metadata")
    return {"metadata": {name: metadata[name] for name in _TOLD_APART_BY if name in metadata}}
