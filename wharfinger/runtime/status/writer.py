"""The writer of statuses: urgent changes are written at once, others at most every PAUSE_S, and later while many change.

A package that is being installed reports every object it waits for. Each report is a new status, and each write is a call of
the API server that wakes all watchers. So a changed status only requests a check of its package. The controller then writes the
status as it is at that moment, and asks again whether a write is due if there is something to write.

The state machine of one package is pure (`step`). The shell keeps the states by name, and requests checks by adding names to
the inbox:

==========  ==============================  =====================  ==========================================
event       when                            new state              effects
==========  ==============================  =====================  ==========================================
Changed     urgent                          as if never written    check now
Left        always                          as if written now      check when PAUSE_S is over
Changed     minor, PAUSE_S since a write    unchanged              check now
Changed     minor, sooner                   unchanged              check when PAUSE_S is over
Differs     PAUSE_S since a write           written now            write
Differs     sooner                          unchanged              check when PAUSE_S is over
Looked      always                          unchanged              check again after RESYNC_S (none if it is 0)
==========  ==============================  =====================  ==========================================

* Nothing is lost: every visible change is followed by a check, which writes the status as it is then. If a write failed, the
  controller checks the package again, and finds a difference as long as there is one.
* At most one minor change is written in a PAUSE_S. Urgent changes wait for nothing: a changed state if the old or the new one is
  Ready, Failed, Degraded, Suspended, Disabled or Removing, and the first status of a generation.
* If a Ready package is only checked again, that is not written at once (`Left`): most checks find no difference, and write
  nothing. The same holds for a rollout of a Ready package, because many are over at once. Another generation is always
  written at once.
* A change that is not visible outside requests nothing.
* Every package is checked again RESYNC_S after its last check, so a missed event does no lasting harm.
* PAUSE_S holds while few packages change. If many change all the time, each pauses for longer, up to MAX_PAUSE_S, so that minor
  changes of all of them together are about MINOR_PER_S writes a second. So an install that goes well writes twice: when it
  begins, and when the package is Ready. Only one that takes long reports its progress in between.
* The memory is bounded by twice the number of packages that were written within PAUSE_S.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import State, summarize

PAUSE_S: Final = 2.0
MAX_PAUSE_S: Final = 60.0
MINOR_PER_S: Final = 5.0
RESYNC_S: Final = 600.0
_SWEEP: Final = 64
AT_ONCE: Final = frozenset({State.READY, State.FAILED, State.DEGRADED, State.SUSPENDED, State.DISABLED, State.REMOVING})
"""The states that people and programs wait for."""


@dataclass(frozen=True, slots=True)
class Writes:
    """The writes of one package."""

    at_s: float = -math.inf
    """The time when the last write began; ``-inf`` if there was none since the last urgent change."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The package's status has a visible change."""

    now_s: float
    urgent: bool


@dataclass(frozen=True, slots=True)
class Left:
    """The package was Ready, and is checked again without a changed wish."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Differs:
    """The controller checks the package, and the written status differs from the current one."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Looked:
    """The controller has checked the package."""


Event: TypeAlias = Changed | Left | Differs | Looked


@dataclass(frozen=True, slots=True)
class LookIn:
    """Request a check of the package after a delay; 0: at once."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Write:
    """Write its status now."""


Effect: TypeAlias = LookIn | Write


def step(
    writes: Writes, event: Event, *, resync_s: float = RESYNC_S, pause_s: float = PAUSE_S
) -> tuple[Writes, tuple[Effect, ...]]:
    """Return the new state and the effects of an event for one package; see the table above."""
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
    """Return the seconds until the package may be written; 0: it may be written now."""
    return max(0.0, writes.at_s + pause_s - now_s)


class StatusWriter:
    """The decision about writes for all packages of a runtime. Times are seconds of one monotonic clock.

    ``add`` and ``add_later`` request a check of a name; they are those of
    :class:`~wharfinger.cluster.watch.work_queue.WorkQueue`. ``least_pause_s``: the pause while few packages change.
    """

    def __init__(
        self,
        add: Callable[[str], None],
        add_later: Callable[[str, float], None],
        *,
        resync_s: float = RESYNC_S,
        least_pause_s: float = PAUSE_S,
    ) -> None:
        self._add = add
        self._add_later = add_later
        self._resync_s = resync_s
        self._least_pause_s = least_pause_s
        self._writes: dict[str, Writes] = {}
        self.unwritten: set[str] = set()
        """The packages whose status has changed since it was last compared with the written one."""
        self._sweep_at = _SWEEP
        self._swept_s = -math.inf

    def changed(self, name: str, before: PackageStatus, after: PackageStatus, now_s: float) -> None:
        """Record that a package has another status than before."""
        if _shown(before) == _shown(after):
            return
        self.unwritten.add(name)
        if _is_second_look(before, after):
            self._step(name, Left(now_s))
        else:
            self._step(name, Changed(now_s, urgent=_is_urgent(before, after)))

    def may_write(self, name: str, now_s: float) -> bool:
        """Return whether a status that differs from the written one may be written now; if not, the package is checked later."""
        busy = len(self._writes) > PAUSE_S * MINOR_PER_S and now_s >= self._swept_s + 1.0
        if busy or len(self._writes) >= self._sweep_at:
            self._sweep(now_s)
        return Write() in self._step(name, Differs(now_s))

    def looked(self, name: str) -> None:
        """Record that a package was checked. The next check is planned unless another event requests it earlier."""
        self._step(name, Looked())

    def _pause_s(self) -> float:
        return min(MAX_PAUSE_S, max(self._least_pause_s, len(self._writes) / MINOR_PER_S))

    def _sweep(self, now_s: float) -> None:
        """Forget states that make no difference any more, including those of removed packages. The amortized cost is constant."""
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
                    pass  # the caller writes
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
    """Return all parts of the status whose change changes the body."""
    release = (status.version, status.digest, status.namespace, status.revision)
    return status.generation, status.told, summarize(status), release, status.progress, status.warnings, status.urls
