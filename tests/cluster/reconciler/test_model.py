"""Random histories of several machines on one table: no change is lost, no done row is attempted again, and the work ends.

The model of a target is the effect of the last operation for each key. An operation may take effect at any time while it runs,
even if it fails. While a prune runs, it may delete objects that its snapshot does not have, at any time and more than once.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.cluster.reconciler.samples import RefusedError, Row, RowAttempt, RowTable, a_table, drop, owner_of, put
from tests.scale import scaled
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.machine import Machine
from wharfinger.cluster.reconciler.options import ReconcilerOptions
from wharfinger.cluster.reconciler.records import Place
from wharfinger.cluster.reconciler.status import Kind
from wharfinger.cluster.tables.changes import ChangeStream
from wharfinger.cluster.tables.errors import TrackerExpiredError
from wharfinger.cluster.tables.snapshot import Snapshot

KEYS = st.integers(1, 6)
OWNERS = st.sampled_from(["a", "b", "c"])
MACHINES = st.integers(0, 1)
OPTIONS = ReconcilerOptions(
    concurrency=3, slow_concurrency=2, owner_concurrency=2, round_size=3, refresh_per_s=2.0, give_up=3
)
ROUNDS = 500
"""The limit of rounds until no work is left. No history needs that many."""


@dataclass
class Reconciled:
    """A machine, its stream of changes, and the state of its target: the applied revision of each key."""

    table: RowTable
    machine: Machine[int, Row] = field(default_factory=lambda: Machine(owner_of, OPTIONS))
    stack: ExitStack = field(default_factory=ExitStack)
    running: list[RowAttempt] = field(default_factory=list)
    there: dict[int, int] = field(default_factory=dict)
    asked: set[tuple[int, int]] = field(default_factory=set)
    pruning: Snapshot[int, Row] | None = None
    missed: bool = False
    stream: ChangeStream[int, Row] = field(init=False)

    def __post_init__(self) -> None:
        self.stream = self.stack.enter_context(self.table.changes("model"))

    def take_in(self, now: float) -> None:
        try:
            changes = self.stream.take(OPTIONS.round_size)
        except TrackerExpiredError:
            self.stack.close()
            self.stream = self.stack.enter_context(self.table.changes("model"))
            self.machine.missed(self.table.snapshot(), now)
            self.missed = True
            return
        self.machine.take_in(changes, self.stream.revision, now)

    def take(self, now: float) -> None:
        attempt = self.machine.take(now)
        if attempt is None:
            return
        assert all(attempt.key != other.key for other in self.running), "two operations at once for one key"
        assert sum(owner_of(other.row) == owner_of(attempt.row) for other in self.running) < OPTIONS.owner_concurrency
        entry = self.table.snapshot().get(attempt.key)
        current = entry is not None and entry.revision == attempt.revision and not attempt.deleting
        done = current and self.there.get(attempt.key) == attempt.revision
        assert not done or (attempt.key, attempt.revision) in self.asked, "done twice without a request"
        self.asked.discard((attempt.key, attempt.revision))
        self.running.append(attempt)

    def tick(self, now: float) -> None:
        """Advance the time of the machine. End each operation that the machine then cuts off because it takes too long, with an
        error.
        """
        for key in self.machine.tick(now):
            [at] = [at for at, attempt in enumerate(self.running) if attempt.key == key]
            self.finish(at, ClusterError("cut off"), now)

    def act(self, attempt: RowAttempt) -> None:
        """Change the target as the attempted operation does. The end of the attempt is reported separately."""
        if attempt.deleting:
            self.there.pop(attempt.key, None)
        else:
            self.there[attempt.key] = attempt.revision

    def finish(self, at: int, error: ClusterError | None, now: float) -> None:
        attempt = self.running.pop(at % len(self.running))
        entry = self.table.snapshot().get(attempt.key)
        if error is None:
            self.act(attempt)
        else:
            self.asked.add((attempt.key, attempt.revision))
        self.machine.finish(attempt, entry.revision if entry else 0, error, now=now, draw=0.5)

    def sweep(self) -> None:
        if self.pruning is not None:
            for key in [key for key in self.there if key not in self.pruning]:
                del self.there[key]


class Reconcilers(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.table = a_table(graves=3)
        self.all = [Reconciled(self.table), Reconciled(self.table)]
        self.now = 0.0
        self.writes = 0

    @rule(key=KEYS, owner=OWNERS)
    def insert(self, key: int, owner: str) -> None:
        self.writes += 1
        put(self.table, Row(key, owner, str(self.writes)))

    @rule(key=KEYS)
    def delete(self, key: int) -> None:
        drop(self.table, key)

    @rule(key=KEYS, owner=OWNERS, which=MACHINES)
    def insert_what_is_there(self, key: int, owner: str, which: int) -> None:
        """Insert a row that the target already matches, and tell the machine to assume that the row is done."""
        self.writes += 1
        revision = put(self.table, Row(key, owner, str(self.writes)))
        one = self.all[which]
        one.there[key] = revision
        one.asked.add((key, revision))  # the machine may ignore the assumption, and attempt the row once more
        one.machine.assume_done(key, revision, self.now)

    @rule(key=KEYS, which=MACHINES)
    def assume(self, key: int, which: int) -> None:
        entry, one = self.table.snapshot().get(key), self.all[which]
        if entry is not None:
            one.there[key] = entry.revision
            one.asked.add((key, entry.revision))
            one.machine.assume_done(key, entry.revision, self.now)

    @rule(which=MACHINES)
    def take_in(self, which: int) -> None:
        self.all[which].take_in(self.now)

    @rule(which=MACHINES)
    def take(self, which: int) -> None:
        if len(self.all[which].running) < OPTIONS.concurrency + OPTIONS.slow_concurrency:
            self.all[which].take(self.now)

    @rule(which=MACHINES, at=st.integers(0, 3))
    def act(self, which: int, at: int) -> None:
        if running := self.all[which].running:
            self.all[which].act(running[at % len(running)])

    @rule(
        which=MACHINES,
        at=st.integers(0, 3),
        error=st.sampled_from([None, None, ClusterError("again"), RefusedError("never")]),
    )
    def finish(self, which: int, at: int, error: ClusterError | None) -> None:
        if self.all[which].running:
            self.all[which].finish(at, error, self.now)

    @rule(seconds=st.sampled_from([0.05, 0.3, 5.0, 700.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for one in self.all:
            one.tick(self.now)

    @rule(key=KEYS, which=MACHINES)
    def refresh(self, key: int, which: int) -> None:
        one = self.all[which]
        entry = self.table.snapshot().get(key)
        if entry is not None:
            one.asked.add((key, entry.revision))
        one.machine.refresh(key, self.now)

    @rule(which=MACHINES)
    def prune_begins(self, which: int) -> None:
        one = self.all[which]
        if one.pruning is None:
            one.pruning = self.table.snapshot()
            one.machine.hold(one.pruning)

    @precondition(lambda self: any(one.pruning for one in self.all))
    @rule(which=MACHINES)
    def prune_works(self, which: int) -> None:
        self.all[which].sweep()

    @precondition(lambda self: any(one.pruning for one in self.all))
    @rule(which=MACHINES)
    def prune_ends(self, which: int) -> None:
        one = self.all[which]
        if one.pruning is not None:
            one.sweep()
            one.pruning = None
            one.machine.release()

    @invariant()
    def whatever_is_not_done_will_be_attempted(self) -> None:
        for one in self.all:
            check(one.machine)

    @invariant()
    def progress_is_as_a_naive_look_has_it(self) -> None:
        for one in self.all:
            for owner in ("a", "b", "c"):
                mine = [record for record in one.machine._records.values() if record.owner.name == owner]
                failing = [record.revision for record in mine if one.machine.retries.get(record.key)]
                open_ = [record.revision for record in mine if record.kind is Kind.PENDING]
                assert one.machine.low_watermark(owner) == min(failing, default=0)
                attempted = min([one.machine.consumed, *(revision - 1 for revision in open_)])
                assert one.machine.attempted(owner) == attempted

    def teardown(self) -> None:
        for one in self.all:
            self.come_to_rest(one)
            if one.missed:  # the next prune deletes objects of rows that were never read; the service requests it
                one.pruning = self.table.snapshot()
                one.sweep()
            rows = {entry.row.key: entry.revision for entry in self.table.snapshot().entries()}
            assert one.there == rows
            for key in rows:
                status = one.machine.status(key)
                assert status is not None
                assert status.kind is Kind.DONE
            assert one.machine.counts().rows == len(rows)
            assert not len(one.machine.retries)
            for owner in ("a", "b", "c"):
                assert one.machine.settled(owner, self.table.snapshot().revision)
                assert not one.machine.open_keys(owner)
            one.stack.close()

    def come_to_rest(self, one: Reconciled) -> None:
        """Let time pass and all operations succeed, until no work is left."""
        one.sweep()
        one.pruning = None
        one.machine.release()
        for _ in range(ROUNDS):
            self.now += 1000
            one.tick(self.now)
            one.take_in(self.now)
            one.take(self.now)
            if one.running:
                one.finish(0, None, self.now)
            elif not one.stream.behind and not one.machine.ready and one.machine.next_at() == float("inf"):
                return
        raise AssertionError("the reconciler is still busy")


def check(machine: Machine[int, Row]) -> None:
    """Check that each key is in exactly one list of the machine, the one that its state requires."""
    for record in machine._records.values():
        owner = record.owner
        assert machine._owners[owner.name] is owner
        assert (record.key in (owner.fresh or ())) is (record.place is Place.FRESH)
        assert (record.key in (owner.due or ())) is (record.place is Place.DUE)
        assert (record.key in machine._held) is (record.place is Place.HELD)
        assert (record.key in machine._refreshes._limited) is (record.place is Place.LIMITED)
        assert (record.key in machine._retries._queued) is (record.place is Place.RETRY)
        assert (record.place is Place.RESTING) <= (record.kind is Kind.DONE and not record.deleting)
        assert (record.kind is Kind.DONE) <= (record.place in {Place.RESTING, Place.RUNNING, Place.AWAITING})
        assert (record.kind is Kind.ERROR) <= (machine._retries.get(record.key) is not None)
    turns, works = machine._turns, {record.work for record in machine._records.values() if record.work}
    assert turns.places.ordinary == sum(not work.slow for work in works) <= OPTIONS.concurrency
    assert turns.places.slow == sum(work.slow for work in works) <= OPTIONS.slow_concurrency
    assert set(turns._timely) == {work for work in works if not work.slow}
    assert set(turns._late) <= {work for work in works if work.slow}
    for owner in machine._owners.values():
        share = OPTIONS.owner_concurrency
        retries = owner.running < share and owner.due and owner.retrying < max(1, share - 1)
        assert (owner.name in turns._changes) is bool(owner.fresh and owner.running < share)
        assert (owner.name in turns._retries) is bool(retries and not owner.late)
        assert (owner.name in turns._slow_retries) is bool(retries and owner.late)
        assert owner.running == sum(work.left for work in works if work.owner is owner)
        assert owner.retrying == sum(work.retry for work in works if work.owner is owner)
        assert owner.rows == sum(record.owner is owner for record in machine._records.values())
        assert owner.rows or owner.running
        concerns = [*owner.waiting.by_revision(), *owner.failing.by_revision(), *owner.refreshing.by_revision()]
        assert len(concerns) == len(set(concerns)), "a key is open in two ways"
        assert set(owner.hopeless.by_revision()) <= set(owner.failing.by_revision())
        mine = {record.key for record in machine._records.values() if record.owner is owner}
        done = {key for key in mine if machine._records[key].kind is Kind.DONE}
        assert set(concerns) == mine - done
    places = [record.place for record in machine._records.values()]
    assert machine.running == places.count(Place.RUNNING)


TestReconcilers = Reconcilers.TestCase
TestReconcilers.settings = settings(max_examples=scaled(3000, 150), stateful_step_count=scaled(80, 50), deadline=None)
