"""What waits to be told to one hook in one queue: an inbox, and the rule by which it stays small.

The story. A hook that is busy, throttled or failing is told later, and in one run, what happened meanwhile (spec hook-protocol
§2.3, §2.4). Up to a limit it is told each thing that happened, in its order. Beyond the limit, what waits is reduced to what
still matters:

* of the events of one object under one binding, at most two, which lead from the same state to the same state
  (:mod:`~wharfinger.hooks.watching.monitor_backlog`). So the last state is always told, and so is that an object went which
  the hook was told of; one that came and went is forgotten;
* of a group, the last occurrence: a group is told nothing but its snapshots, and these are read when the run begins.

Ticks do not add up at any time: of one schedule binding, one waits. Nothing is ever dropped because it is old.

What a run is being told now is not touched, whatever comes meanwhile: if the run succeeds exactly that is forgotten, so an object
that goes after the hook was told of it is told as gone. If it fails, everything waits on and is told again.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wharfinger.hooks.config.bindings import KubernetesBinding, ScheduleBinding, WatchVerb
from wharfinger.hooks.running.discovery import Hook
from wharfinger.hooks.watching.monitor_backlog import Change, reduced
from wharfinger.hooks.watching.monitor_core import MonitorEvent

LIMIT: Final = 1_000
"""How many occurrences may wait before they are reduced."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something to tell a hook: an event of a kubernetes binding, or (None) a tick of a schedule."""

    binding: KubernetesBinding | ScheduleBinding
    event: MonitorEvent | None


class Inbox:
    """What waits for one hook in one queue. ``reduced`` counts what gave way to something newer."""

    def __init__(self, hook: Hook, queue: str, *, limit: int = LIMIT) -> None:
        self.hook = hook
        self.queue = queue
        self.waiting: deque[Occurrence] = deque()
        self.reduced = 0
        self._limit = self._reduce_at = limit
        self._telling = 0

    def add(self, occurrence: Occurrence) -> None:
        """Something more to tell."""
        if occurrence.event is None and any(one.binding is occurrence.binding for one in self._untold()):
            self.reduced += 1
            return
        self.waiting.append(occurrence)
        self._reduce()

    def offered(self) -> tuple[Occurrence, ...]:
        """What the next run is told: everything, or for a version 0 hook the first. A run before it has ended."""
        self._telling = 0
        self._reduce()
        taken = tuple(self.waiting) if self.hook.config.version != "v0" else tuple(self.waiting)[:1]
        self._telling = len(taken)
        return taken

    def told(self, occurrences: Sequence[Occurrence]) -> None:
        """The hook has dealt with these, which it was offered."""
        for occurrence in occurrences:
            if self.waiting and self.waiting[0] is occurrence:
                self.waiting.popleft()
        self._telling = 0
        if not self.waiting:
            self._reduce_at = self._limit

    def waits_for(self, binding: KubernetesBinding) -> bool:
        """Whether something of this very binding was not told yet."""
        return any(occurrence.binding is binding for occurrence in self.waiting)

    def _untold(self) -> list[Occurrence]:
        return list(self.waiting)[self._telling :]

    def _reduce(self) -> None:
        if len(self.waiting) - self._telling <= self._reduce_at:
            return
        untold = self._untold()
        left = essential(untold)
        self.reduced += len(untold) - len(left)
        self.waiting = deque((*list(self.waiting)[: self._telling], *left))
        # What could not be reduced is not looked at again at every addition.
        self._reduce_at = max(self._limit, 2 * len(left))


def essential(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """What still matters of these, in their order."""
    numbered = [*enumerate(occurrences)]
    last_of_group = {one.binding.group: number for number, one in numbered if one.binding.group}
    events: list[Change[tuple[int, Occurrence]]] = []
    kept: list[tuple[int, Occurrence]] = []
    for number, one in numbered:
        if one.binding.group:
            if last_of_group[one.binding.group] == number:
                kept.append((number, one))
        elif one.event is None:
            kept.append((number, one))
        else:
            events.append(Change(one.event.verb, one.event.key, (number, one)))
    for change in reduced(events, _verbs, lambda change: (id(change.payload[1].binding), change.key)):
        number, one = change.payload
        event = one.event and replace(one.event, verb=change.verb)
        kept.append((number, one if event == one.event else Occurrence(one.binding, event)))
    return [one for _, one in sorted(kept, key=lambda pair: pair[0])]


def _verbs(change: Change[tuple[int, Occurrence]]) -> frozenset[WatchVerb]:
    """Which events the binding of a change is told of."""
    binding = change.payload[1].binding
    return binding.verbs if isinstance(binding, KubernetesBinding) else frozenset()
