"""The times of status writes: soon enough, not too often, and without a lost status.

In a *check*, the controller compares the status of a package with the written status, and writes it if the writer allows this.
`Story` uses the writer as the controller does, with a model of the work queue and a simulated clock. Invariants:

1. No status is lost: after all due checks, the written status is the last status.
2. If two writes of a package are less than PAUSE_S apart, the second one is urgent.
3. An urgent change is written at the next check.
4. A change that is not visible in the written status requests no check.
5. A failed write is repeated.
"""

import math

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from msgspec.structs import replace

from tests.runtime.support.statuses import T0, T1, ready
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import PackageStatus, Stage
from wharfinger.runtime.status.reasons import Reason
from wharfinger.runtime.status.summary import summarize
from wharfinger.runtime.status.writer import (
    BEGUN_S,
    MAX_PAUSE_S,
    MINOR_PER_S,
    PAUSE_S,
    RESYNC_S,
    Begun,
    Changed,
    Differs,
    Event,
    Left,
    Looked,
    LookIn,
    StatusWriter,
    Write,
    Writes,
    step,
)

WRITTEN = Writes(10.0)
DUE = Writes(10.0, 10.0 + BEGUN_S)


@pytest.mark.parametrize(
    ("writes", "event", "after", "effect"),
    [
        (Writes(), Changed(1.0, urgent=False), Writes(), LookIn(0.0)),
        (Writes(), Changed(1.0, urgent=True), Writes(), LookIn(0.0)),
        (WRITTEN, Changed(10.1, urgent=True), Writes(), LookIn(0.0)),
        (WRITTEN, Changed(10.5, urgent=False), WRITTEN, LookIn(1.5)),
        (WRITTEN, Changed(12.0, urgent=False), WRITTEN, LookIn(0.0)),
        (Writes(), Left(1.0), Writes(1.0, 1.0 + MAX_PAUSE_S), LookIn(2.0)),
        (WRITTEN, Left(10.25), Writes(10.25, 10.25 + MAX_PAUSE_S), LookIn(2.0)),
        (Writes(9.0, 12.0), Left(11.5), Writes(11.5, 12.0), LookIn(0.5)),
        (Writes(), Begun(10.0), DUE, LookIn(BEGUN_S)),
        (WRITTEN, Begun(10.25), Writes(10.25, 10.25 + BEGUN_S), LookIn(BEGUN_S)),
        (DUE, Changed(10.5, urgent=True), Writes(), LookIn(0.0)),
        (DUE, Changed(10.5, urgent=False), DUE, LookIn(0.5)),
        (DUE, Differs(10.5), DUE, LookIn(0.5)),
        (DUE, Differs(11.0), Writes(11.0), Write()),
        (WRITTEN, Differs(10.5), WRITTEN, LookIn(1.5)),
        (WRITTEN, Differs(12.0), Writes(12.0), Write()),
        (Writes(), Differs(0.0), Writes(0.0), Write()),
        (WRITTEN, Looked(), WRITTEN, LookIn(RESYNC_S)),
    ],
)
def test_each_row_of_the_table_gives_its_state_and_effect(
    writes: Writes, event: Event, after: Writes, effect: LookIn | Write
) -> None:
    assert step(writes, event) == (after, (effect,))


def test_an_interval_of_zero_disables_the_resync() -> None:
    assert step(WRITTEN, Looked(), resync_s=0) == (WRITTEN, ())


class Asked:
    """A writer of statuses, and a list of the checks that it requests. The list takes the place of the queue of the
    controller.
    """

    def __init__(self, *, resync_s: float = RESYNC_S) -> None:
        self.looks: list[tuple[str, float]] = []
        self.writer = StatusWriter(
            lambda name: self.looks.append((name, 0.0)),
            lambda name, delay_s: self.looks.append((name, delay_s)),
            resync_s=resync_s,
        )

    def taken(self) -> list[tuple[str, float]]:
        taken, self.looks = self.looks, []
        return taken


APPLYING = statuses.progressing(ready(), Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying 1 object", T1)
SLOWER = statuses.progressing(APPLYING, Stage.APPLIED, Reason.APPLYING_MANIFESTS, "applying 2 objects", T1)
BROKEN = statuses.failed(ready(), Stage.APPLIED, Reason.APPLY_FAILED, "no", T1, permanent=True)
GOING = statuses.removing(ready(), Reason.REMOVING, "going", T1)
PAUSED = statuses.suspended(ready(), T1, suspended=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (APPLYING, ready()),
        (APPLYING, BROKEN),
        (ready(), PAUSED),
        (ready(), GOING),
        (APPLYING, replace(SLOWER, generation=2)),
    ],
)
def test_urgent_changes_are_checked_at_once(before: PackageStatus, after: PackageStatus) -> None:
    asked = Asked()
    assert asked.writer.may_write("a", 100.0)
    asked.writer.changed("a", before, after, 100.1)
    assert asked.taken() == [("a", 0.0)]


def test_a_package_being_reconciled_is_not_checked_at_once() -> None:
    asked = Asked()
    with asked.writer.in_hand("a"):
        asked.writer.changed("a", APPLYING, BROKEN, 100.0)
        asked.writer.changed("b", APPLYING, BROKEN, 100.0)
    assert asked.taken() == [("b", 0.0)]
    assert asked.writer.unwritten == {"a", "b"}
    assert asked.writer.may_write("a", 100.0), "the change was urgent"
    asked.writer.changed("a", BROKEN, APPLYING, 100.1)
    assert asked.taken() == [("a", 0.0)]


def test_progress_of_one_package_waits_for_its_own_pause() -> None:
    asked = Asked()
    assert asked.writer.may_write("a", 100.0)
    asked.writer.changed("a", APPLYING, SLOWER, 100.125)
    asked.writer.changed("b", APPLYING, SLOWER, 100.125)
    assert asked.taken() == [("a", 1.875), ("b", 0.0)]
    assert not asked.writer.may_write("a", 100.25)
    assert asked.taken() == [("a", 1.75)]
    assert asked.writer.may_write("a", 102.0)
    assert asked.taken() == []


def test_a_changing_package_is_written_once_per_longest_pause() -> None:
    writes, written, check_s = Writes(), 0, math.inf
    for second in range(600):
        if check_s <= second:
            writes, effects = step(writes, Differs(float(second)))
            written, check_s = written + effects.count(Write()), math.inf
        writes, (effect,) = step(writes, Left(float(second)))
        assert isinstance(effect, LookIn)
        check_s = min(check_s, second + effect.delay_s)
    assert written == 600 // MAX_PAUSE_S - 1


def test_invisible_changes_request_no_check() -> None:
    asked = Asked()
    unseen = replace(ready(), wanted="1.0.0", scale_checked=True, started=T1)
    asked.writer.changed("a", ready(), unseen, 1.0)
    asked.writer.changed("a", ready(), ready(), 1.0)
    assert asked.taken() == []


@pytest.mark.parametrize(
    "after",
    [
        statuses.warned(ready(), ("a",), T0),
        statuses.tracking(APPLYING, (), ("a",), T0),
        statuses.released(ready(), "1.0.0", "sha256:aa", 2),
        statuses.released(ready(), "1.0.0", "sha256:bb", 1),
        statuses.placed(ready(), "test"),
        statuses.set_maintenance(ready(), Reason.NO_RECONCILIATION, T0),
    ],
)
def test_visible_changes_request_a_check(after: PackageStatus) -> None:
    asked = Asked()
    asked.writer.changed("a", APPLYING if after.progress else ready(), after, 1.0)
    assert asked.taken() == [("a", 0.0)]


def test_a_checked_package_is_checked_again_after_the_resync_interval() -> None:
    asked = Asked()
    asked.writer.looked("a")
    assert asked.taken() == [("a", RESYNC_S)]
    never = Asked(resync_s=0)
    never.writer.looked("a")
    assert never.taken() == []


def test_obsolete_entries_are_dropped() -> None:
    asked = Asked()
    for number in range(1000):
        assert asked.writer.may_write(f"a{number}", float(number))
        assert len(asked.writer._writes) <= 64
    # An urgent change leaves no entry if its package is deleted before the write.
    asked.writer.changed("a999", ready(), BROKEN, 999.1)
    assert "a999" not in asked.writer._writes


def test_a_reconciliation_without_changes_is_not_written() -> None:
    asked = Asked()
    well = ready()
    looking = statuses.reconfigure_started(well, well.generation, T1)
    asked.writer.changed("a", well, looking, 10.0)
    assert not asked.writer.may_write("a", 10.1)
    asked.writer.changed("a", looking, well, 10.2)  # the package is Ready again, as in the written status
    assert asked.writer.may_write("a", 10.2)


def test_stages_of_a_verification_are_checked_once_in_a_pause() -> None:
    asked = Asked()
    restored = statuses.restored(1, statuses.external(ready()), T1)
    fetched = statuses.succeeded(restored, Stage.FETCHED, T1)
    loading = statuses.progressing(fetched, Stage.LOADED, Reason.PENDING, "loading", T1)
    asked.writer.changed("a", restored, fetched, 10.0)
    asked.writer.changed("a", fetched, loading, 10.25)
    assert asked.taken() == [("a", PAUSE_S), ("a", PAUSE_S)]
    broken = statuses.failed(loading, Stage.LOADED, Reason.PENDING, "no", T1, permanent=True)
    asked.writer.changed("a", loading, broken, 10.5)
    assert asked.taken() == [("a", 0.0)]


def test_stages_of_a_verification_request_no_check_while_one_is_planned() -> None:
    asked = Asked()
    asked.writer.planned_until_s = 10.25
    restored = statuses.restored(1, statuses.external(ready()), T1)
    fetched = statuses.succeeded(restored, Stage.FETCHED, T1)
    loading = statuses.progressing(fetched, Stage.LOADED, Reason.PENDING, "loading", T1)
    asked.writer.changed("a", restored, fetched, 10.0)
    assert asked.taken() == []
    broken = statuses.failed(fetched, Stage.LOADED, Reason.PENDING, "no", T1, permanent=True)
    asked.writer.changed("b", fetched, broken, 10.0)
    assert asked.taken() == [("b", 0.0)], "the package is not Ready any more"
    asked.writer.changed("a", fetched, loading, 10.25)
    assert asked.taken() == [("a", PAUSE_S)]


def test_a_generation_that_is_soon_complete_is_written_once() -> None:
    asked = Asked()
    begun = statuses.reconfigure_started(ready(), ready().generation + 1, T1)
    asked.writer.changed("a", ready(), begun, 20.0)
    assert asked.taken() == [("a", BEGUN_S)]
    assert not asked.writer.may_write("a", 20.25)
    asked.taken()
    asked.writer.changed("a", begun, replace(ready(), generation=begun.generation), 20.5)
    assert asked.taken() == [("a", 0.0)]
    assert asked.writer.may_write("a", 20.5)


@pytest.mark.slow
def test_a_slow_generation_is_written_after_its_limit_even_among_many() -> None:
    asked = Asked()
    for number in range(500):
        begun = statuses.reconfigure_started(ready(), ready().generation + 1, T1)
        asked.writer.changed(f"a{number}", ready(), begun, 20.0)
        assert asked.writer._pause_s() <= MAX_PAUSE_S
    assert asked.writer._pause_s() == MAX_PAUSE_S
    assert not any(asked.writer.may_write(f"a{number}", 20.5) for number in range(500))
    assert all(asked.writer.may_write(f"a{number}", 20.0 + BEGUN_S) for number in range(500))


def test_a_generation_of_an_unready_package_is_written_at_once() -> None:
    asked = Asked()
    asked.writer.changed("a", BROKEN, statuses.reconfigure_started(BROKEN, BROKEN.generation + 1, T1), 20.0)
    assert asked.taken() == [("a", 0.0)]


def test_pauses_grow_with_the_number_of_packages() -> None:
    asked = Asked()
    for number in range(100):
        assert asked.writer.may_write(f"a{number}", 10.0)
    assert not asked.writer.may_write("a7", 10.0 + 19.5)
    assert asked.writer.may_write("a7", 10.0 + 100 / MINOR_PER_S)
    assert asked.writer.may_write("never written", 10.0)
    # Once most packages are idle, the others are written as often as before.
    assert asked.writer.may_write("a8", 100.0)
    assert asked.writer.may_write("a8", 100.0 + PAUSE_S)


def test_no_pause_is_longer_than_a_minute() -> None:
    asked = Asked()
    for number in range(1000):
        assert asked.writer.may_write(f"a{number}", 10.0)
    assert not asked.writer.may_write("a7", 10.0 + MAX_PAUSE_S - 1)
    assert asked.writer.may_write("a7", 10.0 + MAX_PAUSE_S)


def test_pauses_of_many_simultaneous_writes_are_retained() -> None:
    asked = Asked()
    for number in range(1000):
        assert asked.writer.may_write(f"a{number}", 1.0)
    assert not any(asked.writer.may_write(f"a{number}", 1.25) for number in range(1000))


class Story(RuleBasedStateMachine):
    """One package, its controller, and a model of the work queue between them, which holds the time of the next check."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.status = statuses.fresh(1, T0)
        self.written: PackageStatus | None = None
        self.writes: list[tuple[float, bool]] = []
        self.urgent = True
        self.writer = StatusWriter(self.add, lambda _name, delay_s: self.add_at(self.now_s + delay_s))
        self.due_s = 0.0

    def add(self, _name: str) -> None:
        self.due_s = self.now_s

    def add_at(self, at_s: float) -> None:
        self.due_s = min(self.due_s, at_s)

    def become(self, status: PackageStatus, *, urgent: bool) -> None:
        before, self.status = self.status, status
        if statuses.external(before) == statuses.external(status):
            earlier = self.due_s
            self.writer.changed("a", before, status, self.now_s)
            assert self.due_s == earlier
        else:
            self.urgent = self.urgent or urgent
            self.writer.changed("a", before, status, self.now_s)
            assert self.due_s <= self.now_s + PAUSE_S
            assert self.due_s == self.now_s or not self.urgent

    @rule(objects=st.integers(1, 3))
    def progress(self, objects: int) -> None:
        message = f"applying {objects} objects"
        status = statuses.progressing(self.status, Stage.FETCHED, Reason.APPLYING_MANIFESTS, message, T1)
        self.become(status, urgent=summarize(self.status).state == "Failed")

    @rule()
    def fail(self) -> None:
        status = statuses.failed(self.status, Stage.FETCHED, Reason.APPLY_FAILED, "no", T1, permanent=False)
        self.become(status, urgent=summarize(self.status).state != "Failed")

    @rule()
    def new_generation(self) -> None:
        self.become(statuses.observed(self.status, self.status.generation + 1, T1), urgent=True)

    @rule(warning=st.sampled_from("ab"))
    def warn(self, warning: str) -> None:
        self.become(statuses.warned(self.status, (warning,), T1), urgent=False)

    @rule(by_s=st.sampled_from([0.0, 0.125, 0.5, 2.0, 12.0]))
    def pass_time(self, by_s: float) -> None:
        until_s = self.now_s + by_s
        while self.due_s <= until_s:
            self.now_s = max(self.now_s, self.due_s)
            self.look(fails=False)
        self.now_s = until_s

    @rule(fails=st.booleans())
    def look(self, fails: bool) -> None:
        """Check the package as the controller does. The story also does so when no check is due."""
        self.due_s = math.inf
        if self.written is None or statuses.external(self.written) != statuses.external(self.status):
            may = self.writer.may_write("a", self.now_s)
            assert may or not self.urgent
            if may:
                self.writes.append((self.now_s, self.urgent))
                self.urgent = False
                if fails:
                    self.add_at(self.now_s + 1)
                else:
                    self.written = self.status
        self.writer.looked("a")

    @invariant()
    def keeps_pauses(self) -> None:
        for (earlier_s, _), (later_s, urgent) in zip(self.writes, self.writes[1:], strict=False):
            assert urgent or later_s - earlier_s >= PAUSE_S

    @invariant()
    def loses_nothing(self) -> None:
        if self.written is None or statuses.external(self.written) != statuses.external(self.status):
            assert self.due_s <= self.now_s + PAUSE_S

    def teardown(self) -> None:
        self.pass_time(12.0)
        assert self.written is not None
        assert statuses.external(self.written) == statuses.external(self.status)


Story.TestCase.settings = settings(deadline=None)
TestStory = Story.TestCase
