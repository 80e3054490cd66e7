"""When a status that changed is written: at once where somebody waits for it, else not more often than twice a second.

A package on its way reports every object it waits for; each report is a new status, and each write is a call of the API server
that wakes everybody who watches. So a look at the package is asked for (the controller writes what is there when it looks), and
asked again whether the time has come when there is something to write.

Per package, pure (`step`); the shell keeps them by name and speaks to the inbox of names to look at:

==========  ==============================  =====================  ==========================================
event       when                            new state              effects
==========  ==============================  =====================  ==========================================
Changed     urgent                          as if never written    look now
Left        always                          as if written now      look when PAUSE_S is over
Changed     minor, PAUSE_S since a write    as it was              look now
Changed     minor, sooner                   as it was              look when PAUSE_S is over
Differs     PAUSE_S since a write           written now            write
Differs     sooner                          as it was              look when PAUSE_S is over
Looked      always                          as it was              look again after RESYNC_S (none if that is 0)
==========  ==============================  =====================  ==========================================

* Nothing is lost: every change that shows is followed by a look, whose write is of the status as it is then. A write that failed
  is the controller's to look at again, and finds a difference as long as there is one.
* Of minor changes at most one a PAUSE_S is written; what is urgent waits for nothing: another state than before where one of the
  two is Ready, Failed, Degraded, Suspended, Disabled or Removing, and the first sight of a generation.
* Who only looks again at what is Ready does not say so at once (`Left`): most of the time nothing is found to do, and nothing was
  said then. Nor does a rollout of what is Ready: many are over at once. Another generation of a wish is said at once all the
  same.
* A change that does not show outside asks for nothing.
* Every package is looked at again RESYNC_S after its last look, whatever was missed.
* PAUSE_S is for a few: of many packages that change all the time each pauses for longer, so that minor changes of all of them
  together are MINOR_PER_S writes a second at most.
* What is kept is bounded by the packages that were written within PAUSE_S, twice over.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import State, summarize

PAUSE_S: Final = 0.5
MINOR_PER_S: Final = 40.0
RESYNC_S: Final = 600.0
_SWEEP: Final = 64
AT_ONCE: Final = frozenset({State.READY, State.FAILED, State.DEGRADED, State.SUSPENDED, State.DISABLED, State.REMOVING})
"""States that people and programs wait for."""


@dataclass(frozen=True, slots=True)
class Writes:
    """What was written of one package."""

    at_s: float = -math.inf
    """When a write last began; long ago, if there was none since something changed that is to be written at once."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Its status shows something new."""

    now_s: float
    urgent: bool


@dataclass(frozen=True, slots=True)
class Left:
    """It was Ready, and is looked at again without another wish."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Differs:
    """Somebody looks at it, and what is written is not what its status says."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Looked:
    """Somebody has looked at it."""


Event: TypeAlias = Changed | Left | Differs | Looked


@dataclass(frozen=True, slots=True)
class LookIn:
    """Have it looked at, after a delay; 0: at once."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Write:
    """Write its status now."""


Effect: TypeAlias = LookIn | Write


def step(
    writes: Writes, event: Event, *, resync_s: float = RESYNC_S, pause_s: float = PAUSE_S
) -> tuple[Writes, tuple[Effect, ...]]:
    """What follows from an event for one package; see the table above."""
    match event:
        case Changed(_, urgent=True):
            return Writes(), (LookIn(0.0),)
        case Left(now_s):
            return Writes(now_s), (LookIn(pause_s),)
        case Changed(now_s):
            return writes, (LookIn(_wait(writes, now_s, pause_s)),)
        case Differs(now_s) if (wait_s := _wait(writes, now_s, pause_s)) > 0:
            return writes, (LookIn(wait_s),)
        case Differs(now_s):
            return Writes(now_s), (Write(),)
        case Looked():
            return writes, (LookIn(resync_s),) if resync_s > 0 else ()
        case _:
            assert_never(event)


def _wait(writes: Writes, now_s: float, pause_s: float) -> float:
    """How long until the package may be written; 0: it may."""
    return max(0.0, writes.at_s + pause_s - now_s)


class StatusWriter:
    """Decides for all packages of a runtime. Times are of one clock that does not go back, in seconds.

    ``add`` and ``add_later`` ask for a look at a name; they are those of :class:`~wharfinger.cluster.watch.work_queue.WorkQueue`.
    """

    def __init__(
        self,
        add: Callable[[str], None],
        add_later: Callable[[str, float], None],
        *,
        resync_s: float = RESYNC_S,
    ) -> None:
        self._add = add
        self._add_later = add_later
        self._resync_s = resync_s
        self._writes: dict[str, Writes] = {}
        self._sweep_at = _SWEEP
        self._swept_s = -math.inf

    def changed(self, name: str, before: PackageStatus, after: PackageStatus, now_s: float) -> None:
        """A package has another status than before."""
        if _shown(before) == _shown(after):
            return
        if _is_second_look(before, after):
            self._step(name, Left(now_s))
        else:
            self._step(name, Changed(now_s, urgent=_is_urgent(before, after)))

    def may_write(self, name: str, now_s: float) -> bool:
        """Whether a status that differs from what is written may be written now; if not, the package is looked at later."""
        busy = len(self._writes) > PAUSE_S * MINOR_PER_S and now_s >= self._swept_s + 1.0
        if busy or len(self._writes) >= self._sweep_at:
            self._sweep(now_s)
        return Write() in self._step(name, Differs(now_s))

    def looked(self, name: str) -> None:
        """A package was looked at; the next look comes by itself, unless something else asks for it earlier."""
        self._step(name, Looked())

    def _pause_s(self) -> float:
        return max(PAUSE_S, len(self._writes) / MINOR_PER_S)

    def _sweep(self, now_s: float) -> None:
        """Forget what makes no difference any more; that of packages which are gone, too. Costs nothing in the long run."""
        pause_s, self._swept_s = self._pause_s(), now_s
        self._writes = {name: writes for name, writes in self._writes.items() if _wait(writes, now_s, pause_s) > 0}
        self._sweep_at = max(_SWEEP, 2 * len(self._writes))

    def _step(self, name: str, event: Event) -> tuple[Effect, ...]:
        before = self._writes.get(name, Writes())
        after, effects = step(before, event, resync_s=self._resync_s, pause_s=self._pause_s())
        if after == Writes():
            self._writes.pop(name, None)
        else:
            self._writes[name] = after
        for effect in effects:
            match effect:
                case LookIn(delay_s) if delay_s > 0:
                    self._add_later(name, delay_s)
                case LookIn():
                    self._add(name)
                case Write():
                    pass  # the caller's to do
                case _:
                    assert_never(effect)
        return effects


def _is_urgent(before: PackageStatus, after: PackageStatus) -> bool:
    was, becomes = summarize(before).state, summarize(after).state
    return before.generation != after.generation or (was != becomes and bool({was, becomes} & AT_ONCE))


def _is_second_look(before: PackageStatus, after: PackageStatus) -> bool:
    if before.generation != after.generation or summarize(before).state != State.READY:
        return False
    rolls_out = after.rollout is not None and before.rollout is None
    return rolls_out or summarize(after).state == State.UPDATING


def _shown(status: PackageStatus) -> tuple[object, ...]:
    """All that a change of is a change of the body."""
    release = (status.version, status.digest, status.namespace, status.revision)
    return status.generation, status.told, summarize(status), release, status.progress, status.warnings, status.urls
