"""Changes of objects that wait for their turn, in order, with a bound on how many there can be.

Up to a limit every change is kept: a hook that was busy for a moment is told each one. Beyond it, what waits for *one object* is
reduced to what still matters of it, which is at most two changes: the first and the last. An object that came and went again in
between is forgotten altogether. That is done when the limit is passed, and again each time what was left has doubled; so a
backlog holds at most the limit, or four times the number of objects that were there when it began or are there now. A burst over
names that never return costs nothing, an object that changes a thousand times a second costs two places.

A reduced backlog is still a true story: each object is Added before it is Modified, and Deleted only after it was there. It has
no verb that nobody asked for: who is told of no modifications is told of the last addition in place of the first.
"""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, replace
from typing import Final, Generic, TypeVar

from wharfinger.hooks.config.bindings import WatchVerb
from wharfinger.kube.resource import ObjectKey

LIMIT: Final = 1_000
"""How many changes may wait before they are reduced."""

Payload = TypeVar("Payload")


@dataclass(frozen=True, slots=True)
class Change(Generic[Payload]):
    """What happened to an object, and whatever is to be told of it."""

    verb: WatchVerb
    key: ObjectKey
    payload: Payload


class Backlog(Generic[Payload]):
    """A queue of changes, of these verbs only. ``reduced`` counts those that gave way."""

    def __init__(self, limit: int = LIMIT, verbs: frozenset[WatchVerb] = frozenset(WatchVerb)) -> None:
        self._limit = self._reduce_at = limit
        self._verbs = verbs
        self._changes: deque[Change[Payload]] = deque()
        self.reduced = 0

    def __len__(self) -> int:
        """How many wait."""
        return len(self._changes)

    def add(self, change: Change[Payload]) -> None:
        """One more, behind the others."""
        self._changes.append(change)
        if len(self._changes) > self._reduce_at:
            before = len(self._changes)
            self._changes = deque(reduced(self._changes, lambda _: self._verbs))
            self.reduced += before - len(self._changes)
            # What could not be reduced is not looked at again at every addition.
            self._reduce_at = max(self._limit, 2 * len(self._changes))

    def take(self) -> Change[Payload]:
        """The one that waits longest. Raises IndexError where none does."""
        change = self._changes.popleft()
        if not self._changes:
            self._reduce_at = self._limit
        return change

    def take_all(self) -> tuple[Change[Payload], ...]:
        """All that wait; then none does."""
        taken = tuple(self._changes)
        self._changes.clear()
        self._reduce_at = self._limit
        return taken


def reduced(
    changes: Iterable[Change[Payload]],
    verbs: Callable[[Change[Payload]], frozenset[WatchVerb]],
    story: Callable[[Change[Payload]], Hashable] = lambda change: change.key,
) -> list[Change[Payload]]:
    """At most two changes of each story, in their order, that lead from the same state to the same state.

    ``verbs``: which a story has, one that starts with this change; ``story``: what a change is a part of, if not of its object's.
    """
    numbered: dict[Hashable, list[tuple[int, Change[Payload]]]] = {}
    for number, change in enumerate(changes):
        numbered.setdefault(story(change), []).append((number, change))
    kept = [pair for one in numbered.values() for pair in _ends(one, verbs(one[0][1]))]
    return [change for _, change in sorted(kept, key=lambda pair: pair[0])]


def _ends(story: list[tuple[int, Change[Payload]]], verbs: frozenset[WatchVerb]) -> list[tuple[int, Change[Payload]]]:
    """What is left of the story of one object."""
    if len(story) == 1:
        return story
    (_, first), (number, last) = story[0], story[-1]
    if last.verb is WatchVerb.DELETED:
        return [] if first.verb is WatchVerb.ADDED else [story[-1]]
    verb = WatchVerb.ADDED if first.verb is WatchVerb.DELETED else WatchVerb.MODIFIED
    if verb in verbs:
        return [story[0], (number, replace(last, verb=verb))]
    return [story[0], story[-1]] if first.verb is WatchVerb.DELETED else [story[-1]]
