"""The occurrences (events and ticks) that wait for one hook in one queue, and the rule that limits their number. While a hook
is busy, throttled or failing, its occurrences wait, and are passed to it later in one run (spec hook-protocol §2.3, §2.4). Up to
a limit, the hook gets each occurrence, in order. Beyond the limit, the occurrences are reduced to those that still matter:

* For one object under one binding, at most two events remain, which together have the same effect as all of them
  (:mod:`~wharfinger.hooks.watching.monitor_backlog`). So the last state of an object is always reported, and so is the deletion
  of an object that the hook knows. An object that was created and deleted meanwhile is forgotten.
* For bindings with the same ``group``, only the last occurrence remains, because the context of a group contains nothing but
  snapshots, and these are read when the run begins.

Besides the ticks that were offered to a run, at most one tick of each schedule binding waits. No occurrence is ever dropped
because of its age.

Occurrences that are part of the current run are not changed, whatever is added meanwhile. If the run succeeds, exactly these are
removed. So if an object from this run is deleted meanwhile, its deletion is still reported. If the run fails, all occurrences
keep waiting and are passed on again.
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
"""The number of waiting occurrences above which those are dropped that later occurrences make superfluous."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """An occurrence for a hook: an event of a kubernetes binding, or a tick of a schedule (``event`` is None)."""

    binding: KubernetesBinding | ScheduleBinding
    event: MonitorEvent | None


class Inbox:
    """The occurrences that wait for one hook in one queue. ``reduced`` counts occurrences that were dropped because others make
    them superfluous.
    """

    def __init__(self, hook: Hook, queue: str, *, limit: int = LIMIT) -> None:
        self.hook = hook
        self.queue = queue
        self.waiting: deque[Occurrence] = deque()
        self.reduced = 0
        self._limit = self._reduce_at = limit
        self._telling = 0

    def add(self, occurrence: Occurrence) -> None:
        """Add an occurrence; ignore a tick if another tick of the same schedule binding waits."""
        if occurrence.event is None and any(one.binding is occurrence.binding for one in self._untold()):
            self.reduced += 1
            return
        self.waiting.append(occurrence)
        self._reduce()

    def offered(self) -> tuple[Occurrence, ...]:
        """Return the occurrences for the next run: all of them, or only the first one if the hook has version 0. Call this only
        while the hook does not run for this inbox.
        """
        self._telling = 0
        self._merge_ticks()
        self._reduce()
        taken = tuple(self.waiting) if self.hook.config.version != "v0" else tuple(self.waiting)[:1]
        self._telling = len(taken)
        return taken

    def remove_processed(self, occurrences: Sequence[Occurrence]) -> None:
        """Remove occurrences that were offered and that the hook has processed."""
        for occurrence in occurrences:
            if self.waiting and self.waiting[0] is occurrence:
                self.waiting.popleft()
        self._telling = 0
        if not self.waiting:
            self._reduce_at = self._limit

    def waits_for(self, binding: KubernetesBinding) -> bool:
        """Return whether an occurrence of this binding still waits; bindings are compared by identity."""
        return any(occurrence.binding is binding for occurrence in self.waiting)

    def _untold(self) -> list[Occurrence]:
        return list(self.waiting)[self._telling :]

    def _merge_ticks(self) -> None:
        """Keep only the first tick of each schedule binding: after a failed run, another tick may wait behind it."""
        ticked: list[KubernetesBinding | ScheduleBinding] = []
        kept: deque[Occurrence] = deque()
        for one in self.waiting:
            if one.event is None:
                if any(one.binding is binding for binding in ticked):
                    continue
                ticked.append(one.binding)
            kept.append(one)
        self.reduced += len(self.waiting) - len(kept)
        self.waiting = kept

    def _reduce(self) -> None:
        if len(self.waiting) - self._telling <= self._reduce_at:
            return
        untold = self._untold()
        left = essential(untold)
        self.reduced += len(untold) - len(left)
        self.waiting = deque((*list(self.waiting)[: self._telling], *left))
        # Do not reduce the same occurrences again at every addition.
        self._reduce_at = max(self._limit, 2 * len(left))


def essential(occurrences: Iterable[Occurrence]) -> list[Occurrence]:
    """Return the occurrences that still matter, in their order."""
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
    """Return the kinds of watch events that the change's binding asks for; empty if the binding does not watch objects."""
    binding = change.payload[1].binding
    return binding.verbs if isinstance(binding, KubernetesBinding) else frozenset()
