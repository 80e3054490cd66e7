"""The status of a package after random histories. The *external* conditions are those that the resource shows; the other ones are
the conditions of stages.

These invariants hold after every step:

1. The summary has one of the states, and a message. If there is a tip, it is one line.
2. At most one of Ready, Reconciling and Stalled is True. The exception is a package that stays Ready during a rollout, or while a
   new process checks it: Ready and Reconciling are both True, and the summary is Ready or Updating. If none of the three is True,
   the package is suspended, or it is not wanted. Apart from suspended packages and the exception, the summary is Ready if and
   only if the condition Ready is True.
3. Each external condition would be accepted by the API server, and is reported at most once.
4. The transition time of a condition changes if and only if its status does. It then becomes the current time. Conditions that
   are stored, for example during a suspension, keep their time.
5. Only `uninstalled` and a removal reset Installed.
6. Once a package is being removed, only the removal itself changes anything.
7. The same step, repeated later, makes an equal status. Equal statuses make equal bodies, and an equal body is not written.
8. The next process restores a written status with the same version, namespace and Installed.
9. `is_stalled` agrees with the condition Stalled, except if a user has to correct the resource first, and except while a removal
   is held.
10. The generation of a condition is one that existed. The generation of Ready is the newest one, unless the package is suspended
    or is being removed, or the exception of item 2 holds.
"""

from collections.abc import Callable
from datetime import datetime, timedelta

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from tests.runtime.support.statuses import T0
from wharfinger.formats.json.value import JsonObject, find, find_list, find_str
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.conditions import KINDS
from wharfinger.runtime.status.package_status import PackageStatus, Stage, Truth, open_condition
from wharfinger.runtime.status.reasons import HELD, OFF, Again, Reason
from wharfinger.runtime.status.summary import State, summarize

Step = Callable[[PackageStatus, datetime], PackageStatus]

FAILURES = sorted(reason for reason in Reason if reason.again is not Again.NOTHING)
PROGRESS = sorted(reason for reason in Reason if reason.again is Again.NOTHING and reason.text)
GATES = [Reason.DEPENDENCY_NOT_ENABLED, Reason.NONE_OF_UNMET, Reason.SCRIPT_PENDING, Reason.SCRIPT_ERROR, *sorted(OFF)]
STAGES = st.sampled_from(list(Stage))
MESSAGES = st.sampled_from(["", "one", "two"])
VERSIONS = st.sampled_from(["1.0.0", "2.0.0"])


class Story(RuleBasedStateMachine):
    """A random sequence of steps of one status."""

    def __init__(self) -> None:
        super().__init__()
        self.now = T0
        self.status = statuses.fresh(1, self.now)
        self.written: JsonObject = {}

    def tell(self, step: Step) -> None:
        """Apply a step, and check the invariants 4 and 7, which are about the step itself. All other invariants are about the
        state after a step.
        """
        before, self.now = self.status, self.now + timedelta(seconds=1)
        self.status = step(before, self.now)
        self._hold_times(before)
        later = step(self.status, self.now + timedelta(seconds=1))
        assert later == self.status
        assert statuses.external(later) == statuses.external(self.status)
        if self.written and statuses.external(before) == statuses.external(self.status):
            assert statuses.difference(self.status, self.written) == statuses.difference(before, self.written)

    def _hold_times(self, before: PackageStatus) -> None:
        for kind, told in self.status.external.items():
            known = before.external.get(kind)
            if known is None:
                assert told.since == self.now
            elif told in (before.ready_kept, self.status.ready_kept, before.reconciling_kept):
                continue  # stored conditions keep their time
            else:
                assert told.since == (known.since if known.truth is told.truth else self.now)
        for stage, condition in self.status.stages.items():
            moved = condition.truth is not before.stages[stage].truth
            assert condition.since == (self.now if moved else before.stages[stage].since)

    @rule(version=VERSIONS, named=st.booleans(), newer=st.booleans())
    def update(self, version: str, named: bool, newer: bool) -> None:
        generation = self.status.generation + newer
        self.tell(
            lambda status, now: statuses.update_started(status, generation, now, version=version if named else "")
        )

    @rule(newer=st.booleans())
    def reconfigure(self, newer: bool) -> None:
        generation = self.status.generation + newer
        self.tell(lambda status, now: statuses.reconfigure_started(status, generation, now))

    @rule(newer=st.booleans())
    def observe(self, newer: bool) -> None:
        generation = self.status.generation + newer
        self.tell(lambda status, now: statuses.observed(status, generation, now))

    @rule(stage=STAGES, reason=st.sampled_from(PROGRESS), message=MESSAGES)
    def progress(self, stage: Stage, reason: str, message: str) -> None:
        self.tell(lambda status, now: statuses.progressing(status, stage, reason, message, now))

    @rule(stage=STAGES)
    def succeed(self, stage: Stage) -> None:
        self.tell(lambda status, now: statuses.succeeded(status, stage, now))

    @rule(version=VERSIONS, revision=st.integers(0, 3))
    def succeed_at_everything(self, version: str, revision: int) -> None:
        self.tell(lambda status, _: statuses.released(statuses.placed(status, "prod"), version, "sha256:aa", revision))
        for stage in Stage:
            self.succeed(stage)

    @rule(stage=STAGES, reason=st.sampled_from(FAILURES), message=MESSAGES, permanent=st.booleans())
    def fail(self, stage: Stage, reason: str, message: str, permanent: bool) -> None:
        self.tell(lambda status, now: statuses.failed(status, stage, reason, message, now, permanent=permanent))

    @rule(reason=st.sampled_from(GATES), message=MESSAGES, met=st.booleans())
    def require(self, reason: str, message: str, met: bool) -> None:
        self.tell(lambda status, now: statuses.required(status, reason, message, now, met=met))

    @rule()
    def stop(self) -> None:
        self.tell(statuses.stopped)

    @rule()
    def uninstall(self) -> None:
        self.tell(statuses.uninstalled)
        assert self.status.removal is not None or self.status.installed_since is None

    @rule(message=MESSAGES)
    def block(self, message: str) -> None:
        generation = self.status.generation
        self.tell(lambda status, now: statuses.blocked(status, generation, Reason.SPEC_INVALID, message, now))

    @rule(suspended=st.booleans())
    def suspend(self, suspended: bool) -> None:
        self.tell(lambda status, now: statuses.suspended(status, now, suspended=suspended))

    @rule(mode=st.sampled_from(["", Reason.NO_RECONCILIATION]))
    def maintain(self, mode: str) -> None:
        self.tell(lambda status, now: statuses.set_maintenance(status, mode, now))

    @rule(completed=st.lists(MESSAGES, max_size=2), remaining=st.lists(MESSAGES, max_size=2))
    def track(self, completed: list[str], remaining: list[str]) -> None:
        self.tell(lambda status, now: statuses.tracking(status, completed, remaining, now))

    @rule(warnings=st.lists(MESSAGES, max_size=2))
    def warn(self, warnings: list[str]) -> None:
        self.tell(lambda status, now: statuses.warned(status, warnings, now))

    @rule(reason=st.sampled_from([Reason.REMOVING, Reason.CLUSTER_FAILED]), message=MESSAGES, really=st.integers(0, 9))
    def remove(self, reason: str, message: str, really: int) -> None:
        if really == 0 or self.status.removal is not None:
            self.tell(lambda status, now: statuses.removing(status, reason, message, now))

    @rule(reason=st.sampled_from(sorted(HELD)), message=MESSAGES, newer=st.booleans())
    def hold(self, reason: str, message: str, newer: bool) -> None:
        generation = self.status.generation + newer
        self.tell(lambda status, now: statuses.removal_held(status, generation, reason, message, now))

    @rule()
    def write(self) -> None:
        patch = statuses.difference(self.status, self.written)
        merged: JsonObject = {name: value for name, value in (self.written | patch).items() if value is not None}
        assert merged == statuses.external(self.status)
        assert statuses.difference(self.status, merged) == {}
        self.written = merged

    @rule()
    def restart(self) -> None:
        if self.status.removal is not None:
            return
        before, self.now = self.status, self.now + timedelta(seconds=1)
        self.status = statuses.restored(before.generation, statuses.external(before), self.now)
        assert (self.status.version, self.status.namespace) == (before.version, before.namespace)
        assert (self.status.installed_since is None) == (before.installed_since is None)

    @invariant()
    def has_one_state(self) -> None:
        state, message, tip = summarize(self.status)
        assert state in set(State)
        assert message
        assert "\n" not in tip

    @invariant()
    def is_what_the_api_accepts(self) -> None:
        entries = find_list(statuses.external(self.status), "conditions")
        kinds = [find_str(entry, "type") for entry in entries]
        assert kinds == [kind for kind in KINDS if kind in kinds]
        assert kinds[:4] == list(KINDS[:4])
        for entry in entries:
            assert find_str(entry, "reason")
            assert find_str(entry, "status") in set(Truth)
            assert find_str(entry, "lastTransitionTime").endswith("Z")
            assert isinstance(find(entry, "observedGeneration"), int)

    @invariant()
    def agrees_with_kstatus(self) -> None:
        told, status = self.status.external, self.status
        held = [kind for kind in ("Ready", "Reconciling", "Stalled") if told[kind].truth is Truth.TRUE]
        state = summarize(status).state
        if status.suspended and status.blocked is None and status.removal is None and status.held is None:
            assert held in ([], ["Ready"])
            assert state == State.SUSPENDED
            return
        if held == ["Ready", "Reconciling"]:  # an earlier process reported Ready, and nothing has failed since then
            problem = status.held or status.blocked or open_condition(status)
            assert status.rollout is not None if problem is None else status.stays_ready(problem)
            assert state in (State.READY, State.UPDATING)
            return
        assert len(held) == 1 or (held == [] and told["Ready"].reason in OFF)
        assert (held == ["Ready"]) == (state == State.READY)
        assert held != ["Ready"] or told["Installed"].truth is Truth.TRUE
        elsewhere = told["Ready"].reason in {*OFF, Reason.NOT_READY}  # no task fails permanently with these reasons
        assert held != ["Stalled"] or elsewhere or state in (State.FAILED, State.DEGRADED)
        if status.removal is None:
            assert told["Ready"].generation == status.generation
        if status.held is None or status.removal is not None:
            assert statuses.is_stalled(status) == (held == ["Stalled"] and status.blocked is None)

    @invariant()
    def keeps_installed(self) -> None:
        installed = self.status.external["Installed"].truth is Truth.TRUE
        assert installed == (self.status.installed_since is not None) or self.status.removal is not None

    @invariant()
    def is_of_a_generation_that_there_was(self) -> None:
        assert all(told.generation <= self.status.generation for told in self.status.external.values())

    @invariant()
    def is_frozen_once_it_is_removed(self) -> None:
        if self.status.removal is None:
            return
        later = self.now + timedelta(seconds=1)
        assert statuses.uninstalled(self.status, later) == self.status
        assert statuses.update_started(self.status, self.status.generation + 1, later) == self.status
        told = {kind: one.truth for kind, one in self.status.external.items()}
        assert {kind for kind, truth in told.items() if truth is Truth.TRUE} == {"Reconciling"}
        assert replace(self.status, removal=None) != self.status


Story.TestCase.settings = settings(deadline=None, stateful_step_count=30)
TestStory = Story.TestCase
