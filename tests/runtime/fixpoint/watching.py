"""A check of every step of the fixpoint engine, whose words `wharfinger.runtime.fixpoint` explains. The check does not use the
engine's stamps, but has its own.

These rules, which follow spec/schedulers §A.7, are checked after each event:

* A body is dispatched only when the driver pulls, one body per pull, never twice at the same time, and with a growing run number.
* A node's first dispatch needs no cause. Every other dispatch has a cause that is later than the node's last dispatch. There
  are these causes: an id that the node lacks or reads has changed, or the node's own content has; a node on which it was parked
  has ended; a run of the node was requested, or the world outside has answered the node; there was a fixpoint while the node
  was parked; or there was a fixpoint after an arrival, and the node had requested sweeps.
* Causes during a run are followed by exactly one more run. Without a cause, there is no further run.
* A parked or finished node stays so until there is such a cause. A node is judged (run at a level above NONE) only if it was
  parked at a fixpoint, while no node waited for the world outside, and if none of the ids that it lacks has arrived since then.
* Convergence is reported only if no node is queued, running, parked or waiting for the world outside.
* Nothing is dispatched or judged after a cancellation.
* The charges of a node never exceed the budget, and the answers to queries agree with the reports.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from wharfinger.runtime.fixpoint.model import (
    Answered,
    Arrived,
    Asked,
    Blocked,
    Converged,
    Crashed,
    DependencyFailed,
    Dispatch,
    Effect,
    Emission,
    Event,
    Exhausted,
    Finished,
    Id,
    Level,
    Noop,
    Outcome,
    Outside,
    Pulled,
    Removed,
    Seeded,
    Terminal,
    Unresolved,
)
from wharfinger.runtime.fixpoint.state import Done, Fixpoint, Parked, Rules, Runnable, Running, Waiting


def _reads(outcome: Outcome) -> tuple[Id, ...] | None:
    """Return the ids that an ended body reads, or None if it still reads the same ids as before."""
    match outcome:
        case Terminal(reads=reads) | Outside(reads=reads):
            return reads
        case DependencyFailed(failed=failed):
            return failed
        case Crashed():
            return ()
        case Blocked() | Noop():
            return None


@dataclass(slots=True)
class Watcher:
    """A check of every step of the engine. Its AssertionError names the broken rule."""

    rules: Rules
    clock: int = 0
    known: set[Id] = field(default_factory=set)
    runs: dict[Id, int] = field(default_factory=dict)
    ordered: dict[Id, int] = field(default_factory=dict)
    ended: dict[Id, int] = field(default_factory=dict)
    last: dict[Id, Outcome] = field(default_factory=dict)
    reads: dict[Id, tuple[Id, ...]] = field(default_factory=dict)
    sweeping: set[Id] = field(default_factory=set)
    digests: dict[Id, str] = field(default_factory=dict)
    results: dict[Id, str] = field(default_factory=dict)
    """Published results."""
    said: dict[Id, str] = field(default_factory=dict)
    """Results that bodies reported, overtaken or not."""
    shown: set[Id] = field(default_factory=set)
    """Nodes whose overtaken run reported another result than the published one. Other nodes may have seen the reported result."""
    changed: dict[Id, int] = field(default_factory=dict)
    finished: dict[Id, int] = field(default_factory=dict)
    nudged: dict[Id, int] = field(default_factory=dict)
    """The clock at the last request, answer, or new content of each node."""
    removed: dict[Id, int] = field(default_factory=dict)
    arrived: int = 0
    came: int = 0
    """The number of arrivals with new content."""
    quiet: int = 0
    swept: int = 0

    def saw(
        self,
        before: Fixpoint,
        event: Event,
        after: Fixpoint,
        effects: tuple[Effect, ...],
        running: Collection[Id],
        *,
        cancelled: bool,
    ) -> None:
        """Check one step. ``running`` contains the bodies that have not reported yet."""
        self.clock += 1
        if isinstance(event, Pulled) and not any(
            isinstance(before.phase(one), Runnable | Running | Waiting) for one in self.known
        ):
            self.quiet = self.clock
        accepted = self._take(before, event, after, running)
        assert not (cancelled and effects), f"after a cancellation: {effects}"
        for effect in effects:
            self._effect(before, event, effect, after, running)
        self._phases(before, event, after, running, effects)
        if accepted and not cancelled:
            assert isinstance(event, Finished)
            self._due(event.id, after)

    # --- the watcher's own stamps ---------------------------------------------------------------------------------------------

    def _take(self, before: Fixpoint, event: Event, after: Fixpoint, running: Collection[Id]) -> bool:
        match event:
            case Seeded(ids=ids):
                for one in set(ids) - {one for one in ids if before.phase(one) is not None}:
                    self.known.add(one)
                    self.digests.pop(one, None)
                    self.changed[one] = self.arrived = self.clock
                    self.came += 1
            case Arrived(emission=emission):
                self._arrive(emission)
            case Removed(id=one):
                self.removed[one] = self.clock
                self.changed[one] = self.clock
                self.digests.pop(one, None)
                self.results.pop(one, None)
                self.said.pop(one, None)
                self.shown.discard(one)
            case Asked(id=one):
                self.nudged[one] = self.clock
            case Answered(id=one, run=run):
                if self.runs.get(one) == run:
                    self.nudged[one] = self.clock
            case Finished(id=one, run=run, outcome=outcome):
                # The driver removes a body from its list when the body reports.
                current = (
                    self.runs.get(one) == run and self.ended.get(one, 0) < self.ordered[one] and one not in running
                )
                if current and self.removed.get(one, 0) > self.ordered[one]:
                    self.ended[one] = self.clock
                    return False
                if current:
                    # If the end exhausts a node that this node reads, the node ends and is woken again in one step.
                    is_published = before.result(one) != after.result(one)
                    overtaken = isinstance(after.phase(one), Runnable) and not is_published
                    self._end(one, outcome, sweep=event.sweep, overtaken=overtaken)
                return current
            case _:
                pass
        return False

    def _arrive(self, emission: Emission) -> None:
        if self.digests.get(emission.id) == emission.digest:
            return
        self.digests[emission.id] = emission.digest
        self.came += 1
        self.changed[emission.id] = self.nudged[emission.id] = self.arrived = self.clock
        if emission.runnable:
            self.known.add(emission.id)

    def _end(self, one: Id, outcome: Outcome, *, sweep: bool, overtaken: bool) -> None:
        self.ended[one] = self.clock
        self.last[one] = outcome
        if sweep:
            self.sweeping.add(one)
        else:
            self.sweeping.discard(one)
        if isinstance(outcome, Terminal):
            for emission in outcome.emissions:
                self._arrive(emission)
        reads = _reads(outcome)
        if reads is not None:
            self.reads[one] = reads
        if isinstance(outcome, Blocked | Outside):
            return
        said = self.said.get(one, "")
        match outcome:
            case Terminal(result=result) | DependencyFailed(result=result):
                said = self.said[one] = result
            case Crashed(message=message):
                said = f"crashed: {message}"
            case Noop():
                pass
        if overtaken:
            # The result is not published, but a body that stores its results itself has shown it.
            if self.results.get(one) != said:
                self.shown.add(one)
            return
        self.finished[one] = self.clock
        if self.results.get(one) != said or one in self.shown:
            self.changed[one] = self.clock
        self.shown.discard(one)
        self.results[one] = said

    # --- effects --------------------------------------------------------------------------------------------------------------

    def _effect(self, before: Fixpoint, event: Event, effect: Effect, after: Fixpoint, running: Collection[Id]) -> None:
        match effect:
            case Dispatch(id=one, run=run, level=level):
                assert isinstance(event, Pulled), f"{one} is dispatched without a pull"
                assert one not in running, f"{one} is dispatched while it runs"
                assert run > self.runs.get(one, 0), f"{one} is dispatched with an old number"
                if level is not Level.NONE:
                    self._judged(effect)
                self._caused(one)
                self.runs[one], self.ordered[one] = run, self.clock
                assert after.phase(one) == Running(run, level)
                self._loop(effect)
            case Unresolved(id=one, lacks=lacks):
                assert self.quiet == self.clock, f"{one} is unresolved without a fixpoint"
                assert isinstance(before.phase(one), Parked), f"{one} is unresolved without being parked"
                blocked = self.last[one]
                assert isinstance(blocked, Blocked)
                assert sorted(set(blocked.lacks)) == sorted(lacks)
                self.finished[one] = self.changed[one] = self.clock
                self.reads[one] = lacks
                self.results[one] = "unresolved"
            case Exhausted(id=one):
                self.finished[one] = self.changed[one] = self.clock
                self.results[one] = "exhausted"
            case Converged():
                assert self.quiet == self.clock, "the engine has not converged: there is no fixpoint"
                if self.rules.drain:
                    parked = [one for one in self.known if isinstance(after.phase(one), Parked)]
                    assert not parked, f"the engine has not converged: {parked}"

    def _judged(self, order: Dispatch) -> None:
        """Check a dispatch of a node at a level above NONE. The node must have been parked at a fixpoint, and none of the ids
        that it lacks may have arrived since then.
        """
        one = order.id
        assert self.rules.drain
        blocked = self.last.get(one)
        assert isinstance(blocked, Blocked), f"{one} is judged without being blocked"
        assert self.quiet > self.ended[one], f"{one} is judged without a fixpoint since it blocked"
        come = [lack for lack in blocked.lacks if self._came(lack) > self.quiet]
        assert not come, f"{one} is judged for ids that have arrived: {come}"

    def _came(self, one: Id) -> int:
        return self.changed.get(one, 0) if one not in self.results else 0

    def _caused(self, one: Id) -> None:
        since = self.ordered.get(one)
        if (
            since is None
            or self.nudged.get(one, 0) > since
            or self.changed.get(one, 0) > max(since, self.ended.get(one, 0))
        ):
            return
        last = self.last[one]
        if isinstance(last, Blocked):
            fresh = any(max(self.changed.get(lack, 0), self.finished.get(lack, 0)) > since for lack in last.lacks)
            assert fresh or self.quiet > self.ended[one], f"{one} is dispatched again without a cause: it blocked"
            return
        if any(self.changed.get(read, 0) > since for read in self.reads.get(one, ())):
            return
        assert one in self.sweeping, f"{one} is dispatched again without a cause: {last}"
        assert self.quiet > self.ended[one], f"{one} is dispatched again without a fixpoint"
        if self.quiet > self.swept:
            assert self.arrived > self.swept, f"{one} is swept again without an arrival"
            self.swept = self.quiet

    def _loop(self, order: Dispatch) -> None:
        if order.loop:
            assert order.level is Level.FORCE
            assert order.loop[0] == order.id
            for one, lacked in zip(order.loop, (*order.loop[1:], order.id), strict=True):
                blocked = self.last[one]
                assert isinstance(blocked, Blocked), f"{one} is in a loop, but not blocked"
                assert lacked in blocked.lacks, f"{one} is in a loop, but does not lack {lacked}"

    # --- phases ---------------------------------------------------------------------------------------------------------------

    def _phases(
        self, before: Fixpoint, event: Event, after: Fixpoint, running: Collection[Id], effects: tuple[Effect, ...]
    ) -> None:
        inside = {one for one in self.known if isinstance(after.phase(one), Running)}
        ordered = {effect.id for effect in effects if isinstance(effect, Dispatch)}
        assert inside == set(running) | ordered, "the running nodes differ"
        assert len(ordered) <= 1, "there are more dispatches than pulls"
        queued = any(isinstance(after.phase(one), Runnable) for one in self.known)
        assert after.at_rest() == (not queued and not inside)
        for one in self.known:
            if before.result(one) != after.result(
                one
            ):  # A node may end and be woken again in one step. Then only its result shows this.
                self.changed[one] = self.clock
        for one in sorted(self.known):
            was, now = before.phase(one), after.phase(one)
            if after.charges(one) > self.rules.budget:
                raise AssertionError(f"{one} is charged {after.charges(one)} times")
            if isinstance(now, Parked):
                self._parked(one, now, after)
            if was is now or was == now or not isinstance(was, Parked | Done | Waiting):
                continue
            self._left(one, was, event)

    def _parked(self, one: Id, now: Parked, after: Fixpoint) -> None:
        blocked = self.last[one]
        assert isinstance(blocked, Blocked)
        assert list(after.lacks(one)) == sorted(set(blocked.lacks)), f"{one} is parked on other ids"
        assert tuple(sorted(now.lacks)) == after.lacks(one)
        for lack in after.lacks(one):
            assert one in after.waiters(lack), f"{one} is not on the list of {lack}"

    def _left(self, one: Id, was: Parked | Done | Waiting, event: Event) -> None:
        if self.nudged.get(one) == self.clock or self.changed.get(one) == self.clock or self.quiet == self.clock:
            return
        if isinstance(was, Parked):
            woken = any(self.clock in (self.changed.get(lack), self.finished.get(lack)) for lack in was.lacks)
        else:
            woken = any(self.changed.get(read) == self.clock for read in self.reads.get(one, ()))
        assert woken, f"{one} is no longer {was} after {event}"

    def _due(self, one: Id, after: Fixpoint) -> None:
        """Check after a report that the node runs once more if and only if there is a cause for it."""
        now, since, outcome = after.phase(one), self.ordered[one], self.last[one]
        stamps: Mapping[Id, int] = self.changed
        due = self.nudged.get(one, 0) > since
        match outcome:
            case Blocked(lacks=lacks):
                due |= any(max(stamps.get(lack, 0), self.finished.get(lack, 0)) > since for lack in lacks)
            case Terminal() | DependencyFailed() | Outside() | Noop():
                due |= any(stamps.get(read, 0) > since for read in self.reads.get(one, ()) if read != one)
            case Crashed():
                pass
        if due:
            spent = isinstance(now, Done) and now.result.startswith("exhausted")
            assert isinstance(now, Runnable) or spent, f"{one} has missed a cause: {now} after {outcome}"
        else:
            quiet: dict[type[Outcome], type] = {Blocked: Parked, Outside: Waiting}
            assert isinstance(now, quiet.get(type(outcome), Done)), f"{one} is {now} after {outcome}"
