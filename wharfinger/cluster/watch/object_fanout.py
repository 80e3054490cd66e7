"""The distribution of one list and watch to several listeners: which listener is notified of which change.

Synchronous. Only the state of each object is held (its uid and resourceVersion), so a new listener must get its objects from a
list. A new listener is *fresh* until the end of the first complete list that began after it joined: it gets all objects of
that list, while listeners that are not fresh only get the differences. ``Listener.told`` has the keys of the objects that a
fresh listener was notified of.

Invariants:

* The notifications of a listener, applied in order, give the state that is held here: the state of all objects if the
  listener is not fresh, otherwise the state of the objects in its ``told``. So if a list is interrupted and
  another list follows, no object is reported twice or omitted.
* If an object with another uid appears under a key, the old object is reported as deleted before the new one is reported
  as added.
* Every listener is notified of an object before the next object is processed. A listener that raises has a bug: the others are
  notified of that object nevertheless, and then the exceptions are raised to the owner of the stream, as a group.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from wharfinger.cluster.api.raw_object import OnRawChange, RawChange, RawEvent, RawObject
from wharfinger.cluster.api.watch_type import WatchType
from wharfinger.kube.resource import ObjectKey


class Listener:
    """A listener to the changes of objects. Made by :meth:`ObjectFanout.join`.

    ``covered`` is True once a list has begun after the listener joined, because the objects of this list are reported to it.
    """

    __slots__ = ("covered", "left", "on_change", "told")

    def __init__(self, on_change: OnRawChange) -> None:
        self.on_change = on_change
        self.covered = False
        self.left = False
        self.told: set[ObjectKey] | None = set()
        """The keys of the objects that were reported to the listener so far; None once all objects were reported to it."""

    @property
    def fresh(self) -> bool:
        """Return whether some objects may still have to be reported to the listener, because it joined only recently."""
        return self.told is not None


class ObjectFanout:
    """The states of all objects of a watch, and the listeners that are notified of their changes."""

    def __init__(self) -> None:
        self._states: dict[ObjectKey, tuple[str, str]] = {}
        self._listeners: tuple[Listener, ...] = ()
        self._listed: set[ObjectKey] = set()

    def __len__(self) -> int:
        """Return the number of objects."""
        return len(self._states)

    @property
    def listeners(self) -> tuple[Listener, ...]:
        """Return the listeners."""
        return self._listeners

    def join(self, on_change: OnRawChange) -> Listener:
        """Add a listener, which is notified of the next list, and of all changes from then on."""
        listener = Listener(on_change)
        self._listeners = (*self._listeners, listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Remove a listener. The listener is not notified any more, not even of the rest of a running notification."""
        listener.left = True
        self._listeners = tuple(one for one in self._listeners if one is not listener)

    # -- lists

    def begin_list(self) -> None:
        """Begin a list. All present listeners are notified of its objects."""
        self._listed = set()
        for listener in self._listeners:
            listener.covered = True

    def take_listed(self, items: Iterable[RawObject]) -> None:
        """Process some objects of the current list."""
        for obj in items:
            self._listed.add(obj.key)
            self._put(obj)

    def end_list(self) -> None:
        """End a complete list, and drop the objects that the list lacks.

        All listeners that were present when the list began have now been notified of all objects.
        """
        for key in sorted(self._states.keys() - self._listed):
            self._drop(key, None)
        self._listed = set()
        for listener in self._listeners:
            if listener.covered:
                listener.told = None

    # -- a watch

    def take(self, event: RawEvent) -> None:
        """Process one event of a watch."""
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
        """Report ``changes`` to each listener that knows the object. Report the object as added to each listener that does not
        know it yet, if the listener joined before the current list began.
        """
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
    """Notify one listener, and yield the exceptions that it raised."""
    for change in changes:
        if listener.left:
            return
        try:
            listener.on_change(change)
        except Exception as error:  # noqa: BLE001 - raised after the others were notified
            yield error


def _raise(errors: list[Exception], key: ObjectKey) -> None:
    if errors:
        raise ExceptionGroup(f"listeners to {key} raised", errors)
