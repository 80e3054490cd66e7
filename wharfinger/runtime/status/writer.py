"""The writer of statuses, which decides when a status is written: urgent changes immediately, and other changes at most every
PAUSE_S, or less often while many statuses change.

A package that is being installed reports every object that it waits for. Each report makes a new status, and each write is a
request to the API server that wakes all watchers. So a changed status only requests a check of its package. At the check, the
controller compares the status of that moment with the written one; if they differ, it asks the writer whether a write is due.

The state machine of one package is pure (`step`). `StatusWriter` has the state of each package by name, and requests a check by
adding the name to the controller's work queue:

==========  ==============================  =====================  ==========================================
event       when                            new state              effects
==========  ==============================  =====================  ==========================================
Changed     urgent                          as if never written    check now
Left        always                          as if written now,     check when PAUSE_S is over
                                            due after MAX_PAUSE_S
                                            unless due sooner
Begun       always                          as if written now,     check when BEGUN_S is over
                                            due after BEGUN_S
Changed     minor, and PAUSE_S since a      unchanged              check now
            write, or due
Changed     minor, before that              unchanged              check when PAUSE_S is over
Differs     PAUSE_S since a write, or due   written now            write
Differs     before that                     unchanged              check when PAUSE_S is over
Looked      always                          unchanged              check again after RESYNC_S (none if it is 0)
==========  ==============================  =====================  ==========================================

* No change is lost: every visible change is followed by a check, at which the status of that moment is written. If a write
  fails, the controller checks the package again, until the written status does not differ any more.
* At most one minor change is written within PAUSE_S. Urgent changes are written immediately. A change is urgent if the package
  leaves or enters one of the states Ready, RolledBack, Failed, Degraded, Suspended, Disabled and Removing, or if the status is
  the first one of a generation. The next two rules are exceptions.
* If a Ready package is only verified again, as after a restart, its changed status is not written immediately (`Left`), because
  most verifications find the package Ready again, so that nothing has to be written. While the controller plans a check of such
  packages anyway (`planned_until_s`), `Left` requests no check. The same rule holds for a rollout of a Ready package, because
  many rollouts end within moments. If the status keeps changing during the verification or the rollout, it is written once in
  MAX_PAUSE_S.
* If a Ready package begins to work on another generation, its status is written after BEGUN_S (`Begun`), however many packages
  change. If the work is complete by then, the only write is the one for Ready. Until the status is written, its observed
  generation is older than the generation of the resource, so programs that wait for Ready keep waiting.
* A change that is not visible in the written status requests no check.
* Every package is checked again RESYNC_S after its last check, so the effect of a missed event does not last.
* The pause is PAUSE_S while few packages change. If many packages change all the time, the pause of each is longer, up to
  MAX_PAUSE_S, so that the minor changes of all packages together cause about MINOR_PER_S writes a second. During a successful
  install, the status is written when the install begins, and when the package is Ready. Progress is written in between only if
  the install takes longer than the pause.
* At most _SWEEP states are stored, or twice as many as there are packages whose minor changes have to wait, if that is more.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

from wharfinger.runtime.status.package_status import PackageStatus
from wharfinger.runtime.status.summary import State, summarize

PAUSE_S: Final = 2.0
MAX_PAUSE_S: Final = 60.0
BEGUN_S: Final = 1.0
"""When a Ready package begins to work on another generation, its status is written after this time. If the work is complete by
then, the status never shows it.
"""
MINOR_PER_S: Final = 5.0
RESYNC_S: Final = 600.0
_SWEEP: Final = 64
AT_ONCE: Final = frozenset({
    State.READY,
    State.ROLLED_BACK,
    State.FAILED,
    State.DEGRADED,
    State.SUSPENDED,
    State.DISABLED,
    State.REMOVING,
})  # fmt: skip
"""The states that people and programs wait for. A change from or to one of these states is written to the status urgently."""


@dataclass(frozen=True, slots=True)
class Writes:
    """The state of the state machine that decides when the status of one package is written."""

    at_s: float = -math.inf
    """The time when the last write began; ``-inf`` if there was no write since the last urgent change."""
    due_s: float = math.inf
    """From this time on, the status may be written even if the pause after the last write is not over."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The package's status has changed in a part that the resource shows."""

    now_s: float
    urgent: bool


@dataclass(frozen=True, slots=True)
class Left:
    """A package that was Ready is verified or rolled out again, without a change of its desired state."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Begun:
    """A package that was Ready begins to work on another generation of its resource."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Differs:
    """At a check, the status that is written to the resource differs from the current status of the package."""

    now_s: float


@dataclass(frozen=True, slots=True)
class Looked:
    """The controller has checked the package."""


Event: TypeAlias = Changed | Left | Begun | Differs | Looked


@dataclass(frozen=True, slots=True)
class LookIn:
    """Request a check of the package after a delay; 0 means immediately."""

    delay_s: float


@dataclass(frozen=True, slots=True)
class Write:
    """Write the status of the package now."""


Effect: TypeAlias = LookIn | Write


def step(
    writes: Writes, event: Event, *, resync_s: float = RESYNC_S, pause_s: float = PAUSE_S
) -> tuple[Writes, tuple[Effect, ...]]:
    """Return the new state and the effects of an event for one package; see the table in the module's docstring."""
    match event:
        case Changed(_, urgent=True):
            return Writes(), (LookIn(0.0),)
        case Left(now_s):
            due_s = writes.due_s if writes.due_s > now_s else math.inf
            after = Writes(now_s, min(due_s, now_s + MAX_PAUSE_S))
            return after, (LookIn(_wait(after, now_s, pause_s)),)
        case Begun(now_s):
            wait_s = min(BEGUN_S, pause_s)
            return Writes(now_s, now_s + wait_s), (LookIn(wait_s),)
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
    """Return the seconds until the status may be written; 0 if it may be written now."""
    return max(0.0, min(writes.at_s + pause_s, writes.due_s) - now_s)


class StatusWriter:
    """The writer decides for each package when its status is written. Times are seconds of one monotonic clock.

    ``add`` and ``add_later`` are the methods of :class:`~wharfinger.cluster.watch.work_queue.WorkQueue` by which the check of a
    package is requested. ``least_pause_s`` is the pause between two writes of one status while few packages change.
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
        self._in_hand: set[str] = set()
        self.planned_until_s = -math.inf
        """The end of the time for which the controller itself plans checks of the packages that are being verified after a
        restart. Until then, a change of the status of such a package requests no check.
        """
        self.unwritten: set[str] = set()
        """The packages whose status has changed since it was last compared with the written status."""
        self._sweep_at = _SWEEP
        self._swept_s = -math.inf

    def changed(self, name: str, before: PackageStatus, after: PackageStatus, now_s: float) -> None:
        """Record that the status of a package has changed."""
        was, becomes = summarize(before), summarize(after)
        if was == becomes and _shown(before) == _shown(after):
            return
        self.unwritten.add(name)
        if before.generation != after.generation:
            begins = was.state == State.READY and becomes.state == State.UPDATING
            self._step(name, Begun(now_s) if begins else Changed(now_s, urgent=True))
        elif _is_second_look(before, after, was.state, becomes.state):
            is_planned = before.is_being_verified and after.is_being_verified and now_s < self.planned_until_s
            self._step(name, Left(now_s), request=not is_planned)
        else:
            urgent = was.state != becomes.state and bool({was.state, becomes.state} & AT_ONCE)
            self._step(name, Changed(now_s, urgent=urgent))

    @contextmanager
    def in_hand(self, name: str) -> Iterator[None]:
        """Suppress requests for an immediate check of the package within the block, because the status is written after the
        block anyway.
        """
        self._in_hand.add(name)
        try:
            yield
        finally:
            self._in_hand.discard(name)

    def may_write(self, name: str, now_s: float) -> bool:
        """Return whether a status that differs from the written one may be written now; if not, the package is checked later."""
        busy = len(self._writes) > PAUSE_S * MINOR_PER_S and now_s >= self._swept_s + 1.0
        if busy or len(self._writes) >= self._sweep_at:
            self._sweep(now_s)
        return Write() in self._step(name, Differs(now_s))

    def looked(self, name: str) -> None:
        """Record that the controller has checked a package, and request the package's next check after ``resync_s``."""
        self._step(name, Looked())

    def _pause_s(self) -> float:
        return min(MAX_PAUSE_S, max(self._least_pause_s, len(self._writes) / MINOR_PER_S))

    def _sweep(self, now_s: float) -> None:
        """Forget the recorded writes of packages whose status may be written now, because these records no longer affect a
        decision. This includes removed packages.
        """
        pause_s, self._swept_s = self._pause_s(), now_s
        self._writes = {name: writes for name, writes in self._writes.items() if _wait(writes, now_s, pause_s) > 0}
        self._sweep_at = max(_SWEEP, 2 * len(self._writes))

    def _step(self, name: str, event: Event, *, request: bool = True) -> tuple[Effect, ...]:
        before = self._writes.get(name, Writes())
        after, effects = step(before, event, resync_s=self._resync_s, pause_s=self._pause_s())
        if after == Writes():
            self._writes.pop(name, None)
        else:
            self._writes[name] = after
        for effect in effects if request else ():
            match effect:
                case LookIn(delay_s) if delay_s > 0:
                    self._add_later(name, delay_s)
                case LookIn():
                    if name not in self._in_hand:
                        self._add(name)
                case Write():
                    pass  # the caller writes the status itself
                case _:
                    assert_never(effect)
        return effects


def _is_second_look(before: PackageStatus, after: PackageStatus, was: str, becomes: str) -> bool:
    """Return whether a change of the status is minor: a Ready package begins to be updated or rolled out again, or a package
    that is not Ready is being verified both before and after the change.
    """
    if was != State.READY:
        return after.is_being_verified and before.is_being_verified
    rolls_out = after.rollout is not None and before.rollout is None
    return rolls_out or becomes == State.UPDATING


def _shown(status: PackageStatus) -> tuple[object, ...]:
    """Return all parts of a package's status that are written to the resource, apart from the summary."""
    release = (status.version, status.digest, status.namespace, status.revision)
    notes = (status.warnings, status.urls, status.update, status.rollback)
    return status.generation, status.external, release, status.progress, notes
