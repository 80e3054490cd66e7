"""The names of *unmarked* objects: objects that do not have the label of a release (RELEASE_LABEL). Only the kinds of which
releases have objects are watched.

An install must not write to an existing object that has another owner. One watch for each kind shows the existing objects to all
installs, instead of a GET for each object. The watch reports only the metadata of unmarked objects, and only names are kept.

A watch lags behind the server, usually by milliseconds. A GET before the first write would not be safer: the record is written,
hooks run, and earlier waves are applied between this GET and the write of the object.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Final

from wharfinger.cluster.api.raw_object import RawChange
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.cluster.objects.ownership import RELEASE_LABEL
from wharfinger.cluster.watch.object_stream import WatchSubscription
from wharfinger.cluster.watch.shared_watches import SharedWatches
from wharfinger.kube.resource import ObjectKey, ResourceType

MAX_NAMES: Final = 20_000
"""The largest number of names that are kept for one kind. If a kind has more unmarked objects, its watch is ended, because the
watch needs memory for each object. Objects of this kind are then read one by one.
"""


@dataclass(slots=True)
class _Watched:
    """A watched kind. ``too_many``: the kind has more unmarked objects than the limit, so its watch was ended, and the names are
    not known.
    """

    stack: ExitStack
    subscription: WatchSubscription
    names: set[tuple[str, str]] = field(default_factory=set)
    too_many: bool = False


class UnmarkedNames:
    """The watched kinds, and the names of those of their objects that do not have the label of a release. No method waits."""

    def __init__(self, watches: SharedWatches, most: int = MAX_NAMES) -> None:
        self._watches = watches
        self._most = most
        self._watched: dict[ResourceType, _Watched] = {}

    def attend(self, resource: ResourceType) -> None:
        """Watch this kind; do nothing if it is watched already."""
        if resource in self._watched:
            return
        with ExitStack() as stack:
            subscription = stack.enter_context(
                self._watches.subscribe(resource, "", f"!{RELEASE_LABEL}", "", self._take, metadata_only=True)
            )
            self._watched[resource] = _Watched(stack.pop_all(), subscription)

    def release(self, resource: ResourceType) -> None:
        """Stop watching the objects of a kind."""
        if (watched := self._watched.pop(resource, None)) is not None:
            watched.stack.close()

    def is_absent(self, key: ObjectKey) -> bool:
        """Return whether it is certain that no object without the label of a release has this kind and name. The result is
        False until the kind was listed.
        """
        watched = self._watched.get(key.resource)
        if watched is None or watched.too_many or not watched.subscription.is_current:
            return False
        return (key.namespace, key.name) not in watched.names

    def _take(self, change: RawChange) -> None:
        watched = self._watched[change.key.resource]
        name = (change.key.namespace, change.key.name)
        if change.type is WatchType.DELETED or change.object is None:
            watched.names.discard(name)
        elif name not in watched.names and len(watched.names) >= self._most:
            watched.too_many = True
            watched.names.clear()
            watched.stack.close()  # no further change is reported
        else:
            watched.names.add(name)
