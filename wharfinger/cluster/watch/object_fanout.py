"""Who of several listeners is told what, when all of them live on one list and watch.

Synchronous. Of each object only its state is held, uid and resourceVersion, so what a new listener is told must come from a list:
it is *fresh* until a list that began after it came is over, and is told of that list all there is, while those who know
everything are told only what differs.

Invariants:

* What a listener was told, put together, is what is held, of all objects once it is not fresh, and of those in its ``told`` while
  it is: so a list that breaks off, and the next one that is compared with it, tell nothing twice and forget nothing.
* An object that is another by its uid is gone before it is added.
* Every listener is told of an object before the next object is looked at. One that raises has a bug: the others are told of
  that object all the same, then what was raised goes up to the owner of the stream, as a group.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from wharfinger.cluster.api.raw_object import OnRawChange, RawChange, RawEvent, RawObject
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.kube.resource import ObjectKey


class Listener:
    """Made by :meth:`ObjectFanout.join`. ``covered``: a list that began after it came is, or was, under way."""

    __slots__ = ("covered", "left", "on_change", "told")

    def __init__(self, on_change: OnRawChange) -> None:
        self.on_change = on_change
        self.covered = False
        self.left = False
        self.told: set[ObjectKey] | None = set()
        """What a fresh one knows; None: all."""

    @property
    def fresh(self) -> bool:
        """Whether it may yet lack something of what is there."""
        return self.told is not None


class ObjectFanout:
    """The states of all objects, and who is told of their changes."""

    def __init__(self) -> None:
        self._states: dict[ObjectKey, tuple[str, str]] = {}
        self._listeners: tuple[Listener, ...] = ()
        self._listed: set[ObjectKey] = set()

    def __len__(self) -> int:
        """How many objects there are."""
        return len(self._states)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Those who are told."""
        return self._listeners

    def join(self, on_change: OnRawChange) -> Listener:
        """Somebody who is told of the next list, and of what changes from there."""
        listener = Listener(on_change)
        self._listeners = (*self._listeners, listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """From now on it is told nothing, not even the rest of what others are being told."""
        listener.left = True
        self._listeners = tuple(one for one in self._listeners if one is not listener)

    # -- lists

    def begin_list(self) -> None:
        """A list begins: whoever is there is told of it."""
        self._listed = set()
        for listener in self._listeners:
            listener.covered = True

    def take_listed(self, items: Iterable[RawObject]) -> None:
        """Objects of the list that was begun."""
        for obj in items:
            self._listed.add(obj.key)
            self._put(obj)

    def end_list(self) -> None:
        """The list is complete: what it had not is gone, and those whom it covered know all."""
        for key in sorted(self._states.keys() - self._listed):
            self._drop(key, None)
        self._listed = set()
        for listener in self._listeners:
            if listener.covered:
                listener.told = None

    # -- a watch

    def take(self, event: RawEvent) -> None:
        """One event of a watch."""
        match event.type:
            case WatchType.ADDED | WatchType.MODIFIED:
                self._put(event.object)
            case WatchType.DELETED:
                self._drop(event.object.key, event.object)
            case WatchType.BOOKMARK:
                pass
            case _:
                assert_never(event.type)

    # -- one object

    def _put(self, obj: RawObject) -> None:
        key, state = obj.key, (obj.uid, obj.resource_version)
        held = self._states.get(key)
        self._states[key] = state
        if held is None:
            self._tell(obj, RawChange(WatchType.ADDED, key, obj))
        elif held[0] != state[0]:
            self._tell(obj, RawChange(WatchType.DELETED, key, None), RawChange(WatchType.ADDED, key, obj))
        elif held != state:
            self._tell(obj, RawChange(WatchType.MODIFIED, key, obj))
        else:
            self._tell(obj)

    def _tell(self, obj: RawObject, *changes: RawChange) -> None:
        """The changes to who knows the object, the object to who does not and is told of this list."""
        errors: list[Exception] = []
        for listener in self._listeners:
            told = listener.told
            if told is None or obj.key in told:
                errors += _told(listener, changes)
            elif listener.covered:
                told.add(obj.key)
                errors += _told(listener, (RawChange(WatchType.ADDED, obj.key, obj),))
        _raise(errors, obj.key)

    def _drop(self, key: ObjectKey, obj: RawObject | None) -> None:
        if self._states.pop(key, None) is None:
            return
        errors: list[Exception] = []
        change = (RawChange(WatchType.DELETED, key, obj),)
        for listener in self._listeners:
            if listener.told is None:
                errors += _told(listener, change)
            elif key in listener.told:
                listener.told.discard(key)
                errors += _told(listener, change)
        _raise(errors, key)


def _told(listener: Listener, changes: tuple[RawChange, ...]) -> Iterator[Exception]:
    """Tell one, and what it raised."""
    for change in changes:
        if listener.left:
            return
        try:
            listener.on_change(change)
        except Exception as error:  # noqa: BLE001 - raised when the others are told
            yield error


def _raise(errors: list[Exception], key: ObjectKey) -> None:
    if errors:
        raise ExceptionGroup(f"who is told of {key} raised", errors)
