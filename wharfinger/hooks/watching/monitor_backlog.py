"""A queue of changes of objects (a backlog), with a limit on its length.

Up to a limit every change is kept, so a hook that was busy for a moment gets each change. Beyond the limit, only the changes
that still matter are kept for *each object*: at most the first and the last one. An object that was created and deleted in
between is forgotten. The reduction is done when the limit is exceeded, and again each time the number of remaining changes has
doubled. So the size of a backlog is at most the limit or, if that is more, four times the number of objects that existed when
it began or exist now. Objects that were created and deleted meanwhile take no place; an object that changes a thousand times a
second takes two places.

A reduced backlog is still consistent: each object is Added before it is Modified, and is Deleted only if the receiver of the
changes knows the object. A reduction produces only requested verbs: if Modified was not requested, only the last of several
Added changes of an object is kept.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from wharfinger.hooks.config.bindings import WatchVerb
from wharfinger.kube.resource import ObjectKey

LIMIT: Final = 1_000
"""If more changes than this wait, they are reduced: at most two changes of each object are left."""

Payload = TypeVar("Payload")


@dataclass(frozen=True, slots=True)
class Change(Generic[Payload]):
    """A change of an object, with its payload."""

    verb: WatchVerb
    key: ObjectKey
    payload: Payload


class Backlog(Generic[Payload]):
    """A queue of changes. If it exceeds its limit, superfluous changes of each object are dropped, and only changes with one of
    ``verbs`` take their place. ``reduced`` counts the dropped changes.
    """

    def __init__(self, limit: int = LIMIT, verbs: frozenset[WatchVerb] = frozenset(WatchVerb)) -> None:
        self._limit = self._reduce_at = limit
        self._verbs = verbs
        self._changes: deque[Change[Payload]] = deque()
        self.reduced = 0

    def __len__(self) -> int:
        """Return the number of changes that wait."""
        return len(self._changes)

    def add(self, change: Change[Payload]) -> None:
        """Add a change at the end."""
        self._changes.append(change)
        if len(self._changes) > self._reduce_at:
            before = len(self._changes)
            self._changes = deque(reduced(self._changes, lambda _: self._verbs))
            self.reduced += before - len(self._changes)
            # Do not reduce the same changes again at every addition.
            self._reduce_at = max(self._limit, 2 * len(self._changes))

    def take(self) -> Change[Payload]:
        """Return and remove the oldest change. Raises IndexError if no change waits."""
        change = self._changes.popleft()
        if not self._changes:
            self._reduce_at = self._limit
        return change

    def take_all(self) -> tuple[Change[Payload], ...]:
        """Return and remove all changes."""
        taken = tuple(self._changes)
        self._changes.clear()
        self._reduce_at = self._limit
        return taken


def reduced(
    changes: Iterable[Change[Payload]],
    verbs: Callable[[Change[Payload]], frozenset[WatchVerb]],
    story: Callable[[Change[Payload]], Hashable] = lambda change: change.key,
) -> list[Change[Payload]]:
    """Return the changes in order, with the changes of each story replaced by at most two that have the same effect.

    A story is a sequence of changes for which ``story`` returns the same key, by default the changes of one object.
    ``verbs`` returns the verbs that are allowed in a story, given its first change.
    """
    numbered: dict[Hashable, list[tuple[int, Change[Payload]]]] = {}
    for number, change in enumerate(changes):
        numbered.setdefault(story(change), []).append((number, change))
    kept = [pair for one in numbered.values() for pair in _ends(one, verbs(one[0][1]))]
    return [change for _, change in sorted(kept, key=lambda pair: pair[0])]


def _ends(story: list[tuple[int, Change[Payload]]], verbs: frozenset[WatchVerb]) -> list[tuple[int, Change[Payload]]]:
    """Return at most two changes that have the same effect as all changes of a story (see `reduced`)."""
    if len(story) == 1:
        return story
    (_, first), (number, last) = story[0], story[-1]
    if last.verb is WatchVerb.DELETED:
        return [] if first.verb is WatchVerb.ADDED else [story[-1]]
    verb = WatchVerb.ADDED if first.verb is WatchVerb.DELETED else WatchVerb.MODIFIED
    if verb in verbs:
        return [story[0], (number, replace(last, verb=verb))]
    return [story[0], story[-1]] if first.verb is WatchVerb.DELETED else [story[-1]]
