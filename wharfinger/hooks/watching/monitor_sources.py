"""The watches of one binding: one for each combination of a namespace and a name that the binding selects (spec hook-protocol
§4.2).

If namespaces are selected by label, watches are opened and closed as namespaces begin and cease to match. If a namespace begins
to match, its objects are reported as added. If it ceases to match or to exist, they are reported as deleted. So a hook that
follows events knows the same objects as a hook that reads snapshots.

A watch is shared with other subscribers that need the same watch. But if there are none, the API server keeps it open for this
binding alone. Therefore a binding has at most MAX_WATCHES watches. If a binding needs more watches at its start, it fails. If a
namespace that matches later would need more watches, this is logged, and the objects of the namespace are watched once there is
room.

All changes of all watches are passed to one callback (:data:`~wharfinger.cluster.api.raw_object.OnRawChange`). The changes of
each watch keep their order.
"""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

import trio

from wharfinger.cluster.api.client import ClusterClient
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.api.raw_object import OnRawChange, RawChange
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.watch.object_stream import WatchSubscription
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.formats.json.value import ShapeError
from wharfinger.hooks.config.bindings import KubernetesBinding, NamespaceSelector
from wharfinger.hooks.config.config import MAX_WATCHES
from wharfinger.kube.resource import ObjectKey, ResourceType

log = logging.getLogger(__name__)


class TooManyWatchesError(Exception):
    """A binding would need more than MAX_WATCHES watches."""

    def __init__(self, kind: str, wanted: int) -> None:
        super().__init__(
            f"{wanted} watches of {kind} would be needed, one for each namespace and name, but a binding may have "
            f"only {MAX_WATCHES}; select fewer, or use labels"
        )


_Unlistable: TypeAlias = ClusterError | ShapeError | TooManyWatchesError


@dataclass(frozen=True, slots=True)
class Selection:
    """The objects that a binding selects. ``namespaces`` are the names of their namespaces ("" for all namespaces); if
    ``namespace_labels`` is set, it selects the namespaces instead. ``names`` are the names of the objects, () for any name.

    ``relist_s`` is the interval at which the objects are listed anew, in addition to the watch.
    """

    namespaces: tuple[str, ...]
    namespace_labels: str
    names: tuple[str, ...]
    label_selector: str
    field_selector: str
    relist_s: float | None = None

    def field_selectors(self) -> tuple[str, ...]:
        """Return one field selector for each watch of a namespace."""
        if not self.names:
            return (self.field_selector,)
        own = [self.field_selector] if self.field_selector else []
        return tuple(",".join([f"metadata.name={name}", *own]) for name in self.names)


def selection(binding: KubernetesBinding, namespace: str | None) -> Selection:
    """Return the selection of a binding; ``namespace`` is the only namespace that an Application's hook sees."""
    asked = binding.namespaces
    if namespace is not None:
        asked = NamespaceSelector((namespace,), "")
    elif asked is None:
        asked = NamespaceSelector(None, "")
    return Selection(
        asked.names or ("",),
        asked.labels,
        binding.names or (),
        binding.label_selector,
        binding.field_selector,
        binding.resynchronization_s,
    )


def watches(binding: KubernetesBinding, namespace: str | None) -> int:
    """Return the number of watches that a binding needs. A selection of namespaces by label counts as one namespace, because only
    the cluster knows the number. `selection` explains ``namespace``.
    """
    asked = binding.namespaces.names if binding.namespaces is not None and namespace is None else None
    return len(asked or ("",)) * len(binding.names or ("",))


class _Source:
    """One watch of a monitor. Once it is closed, it does not pass on changes any more."""

    def __init__(self, namespace: str, field_selector: str, on_change: OnRawChange) -> None:
        self.namespace = namespace
        self.field_selector = field_selector
        self.scope = trio.CancelScope()
        self.listed = trio.Event()
        self.error: ClusterError | ShapeError | None = None
        self._keys: set[ObjectKey] = set()
        self._on_change = on_change

    def take(self, change: RawChange) -> None:
        """Pass a change on, and remember which objects exist."""
        if self.scope.cancel_called:
            return
        if change.type is WatchType.DELETED:
            self._keys.discard(change.key)
        else:
            self._keys.add(change.key)
        self._on_change(change)

    def close(self) -> None:
        """Report a deletion of each object that exists according to the watch, and end the watch."""
        for key in sorted(self._keys):
            self._on_change(RawChange(WatchType.DELETED, key, None))
        self.scope.cancel(reason=f"namespace {self.namespace} is no longer selected")


class Sources:
    """The watches of one binding, made by :func:`open_sources`."""

    def __init__(
        self,
        client: ClusterClient,
        watches: SharedWatches,
        resource: ResourceType,
        wanted: Selection,
        on_change: OnRawChange,
        nursery: trio.Nursery,
    ) -> None:
        """Initialize the watches; only `open_sources` calls this, because it owns the nursery."""
        self._client = client
        self._watches = watches
        self._resource = resource
        self._selection = wanted
        self._on_change = on_change
        self._nursery = nursery
        self._sources: dict[str, tuple[_Source, ...]] = {}
        self._matching: set[str] = set()
        self._following = False
        self._left_out: set[str] = set()

    def __len__(self) -> int:
        """Return the number of watches."""
        return sum(len(sources) for sources in self._sources.values())

    async def wait_listed(self) -> None:
        """Begin the watches, and return when all selected objects were listed once. Call this only once.

        Raises the first ClusterError or ShapeError of a list, or TooManyWatchesError.
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
            self._nursery.start_soon(self._watch, source)

    def _close(self, namespace: str) -> None:
        for source in self._sources.pop(namespace, ()):
            source.close()

    async def _watch(self, source: _Source) -> None:
        wanted = self._selection
        with (
            source.scope,
            self._watches.subscribe(
                self._resource,
                source.namespace,
                wanted.label_selector,
                source.field_selector,
                source.take,
                relist_s=wanted.relist_s,
            ) as subscription,
        ):
            source.error = await _first_list(subscription)
            source.listed.set()
            await trio.sleep_forever()
        source.listed.set()

    async def _follow_namespaces(
        self, namespaces: ResourceType, *, task_status: trio.TaskStatus[_Unlistable | None]
    ) -> None:
        """Open and close watches as namespaces begin and cease to match. If namespaces cannot be listed, the error is passed to
        ``task_status.started``.
        """
        labels = self._selection.namespace_labels
        with self._watches.subscribe(namespaces, "", labels, "", self._namespace_changed) as subscription:
            error: _Unlistable | None = await _first_list(subscription)
            if error is None:
                try:
                    self._check_room(len(self._matching))
                except TooManyWatchesError as too_many:
                    error = too_many
            if error is None:
                self._following = True
                self._follow()
            task_status.started(error)
            await trio.sleep_forever()

    def _namespace_changed(self, change: RawChange) -> None:
        """Handle a namespace that begins to match, is recreated, changes, or ceases to match."""
        if change.type is WatchType.DELETED:
            self._matching.discard(change.key.name)
            self._left_out.discard(change.key.name)
            self._close(change.key.name)
        else:
            self._matching.add(change.key.name)
        if self._following:
            self._follow()

    def _follow(self) -> None:
        """Open watches for matching namespaces without a watch, up to the limit."""
        for namespace in sorted(self._matching - self._sources.keys()):
            if self._has_room():
                self._left_out.discard(namespace)
                self._open(namespace)
            elif namespace not in self._left_out:
                self._left_out.add(namespace)
                log.error(
                    "namespace %s is selected, but its objects of kind %s are not watched, because a binding may have only %d "
                    "watches; select fewer namespaces",
                    namespace,
                    self._resource.kind,
                    MAX_WATCHES,
                )

    def _has_room(self) -> bool:
        return len(self) + len(self._selection.field_selectors()) <= MAX_WATCHES


@asynccontextmanager
async def open_sources(
    client: ClusterClient, watches: SharedWatches, resource: ResourceType, wanted: Selection, on_change: OnRawChange
) -> AsyncGenerator[Sources, None]:
    """Yield the watches of a binding. They begin when :meth:`Sources.wait_listed` is called, and end with the block."""
    async with trio.open_nursery() as nursery:
        yield Sources(client, watches, resource, wanted, on_change, nursery)
        nursery.cancel_scope.cancel()


async def _first_list(subscription: WatchSubscription) -> ClusterError | ShapeError | None:
    """Wait for the first attempt to list the objects. Return its error; None if it succeeded."""
    try:
        await subscription.wait_first_list()
    except (ClusterError, ShapeError) as error:
        return error
    return None
