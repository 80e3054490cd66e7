"""Random transactions, readers, snapshots and watches on two tables, compared with a simple model that copies dictionaries.

These tests cover the cases Fuzz and Quick of ``tests/spec_table_cases.py``.
"""

from contextlib import ExitStack
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tests.cluster.tables.model import Kept, Model, Reader, State, Told, deleting, putting, replay
from tests.cluster.tables.samples import Row, RowTable, a_table
from tests.scale import scaled
from wharfinger.cluster.tables.changes import ChangeStream
from wharfinger.cluster.tables.entry import GRAVE, PRESENT
from wharfinger.cluster.tables.errors import (
    DuplicateKeyError,
    RevisionChangedError,
    RowNotFoundError,
    TrackerExpiredError,
)
from wharfinger.cluster.tables.snapshot import Snapshot
from wharfinger.cluster.tables.table import Initializer
from wharfinger.cluster.tables.transaction import Transaction, write
from wharfinger.cluster.tables.version_log import SLACK
from wharfinger.cluster.tables.watch import Watch

GRAVES = 3
KEEP = 6
"""The number of older snapshots, and of older watches, that are kept."""
TAGS = ("red", "blue")
SEATS = (1, 2)
sides = st.sampled_from(("left", "right"))
keys = st.sampled_from("abcdefgh")
rows = st.builds(
    Row, keys, st.integers(0, 9), st.sampled_from([(), ("red",), ("blue",), TAGS]), st.sampled_from((0, *SEATS))
)


def merged(old: Row, new: Row) -> Row:
    return Row(old.key, old.value + new.value, new.tags, old.seat)


def copied(row: Row) -> Row:
    """Return a copy of the row. Hypothesis may supply the same object twice, but each insert needs a new object."""
    return replace(row)


class Watched:
    """A watch, and the state of its rows at the time when the watch began."""

    def __init__(self, watch: Watch, side: str, kind: str, of: str) -> None:
        self.watch, self.side, self.kind, self.of = watch, side, kind, of
        self.then: object = None
        self.whole: object = None


class TableMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.tables: dict[str, RowTable] = {side: a_table(side, GRAVES) for side in ("left", "right")}
        self.models = {side: Model(GRAVES) for side in self.tables}
        self.streams: list[tuple[str, Reader, ChangeStream[str, Row], ExitStack]] = []
        self.initializers: dict[tuple[str, str], Initializer] = {}
        self.snapshots: list[tuple[Snapshot[str, Row], State, bool]] = []
        self.watched: list[Watched] = []
        self.tx: Transaction | None = None
        self.drafts: dict[str, State] = {}

    def teardown(self) -> None:
        for _, _, _, stack in self.streams:
            stack.close()

    # -- transactions

    @precondition(lambda self: self.tx is None)
    @rule(chosen=st.sets(sides, min_size=1))
    def begin(self, chosen: set[str]) -> None:
        self.tx = write(*(self.tables[side] for side in sorted(chosen)))
        self.tx.__enter__()
        self.drafts = {side: self.models[side].state for side in chosen}

    @precondition(lambda self: self.tx is not None)
    @rule()
    def commit(self) -> None:
        assert self.tx is not None
        self.tx.__exit__(None, None, None)
        for side, state in self.drafts.items():
            assert state.revision >= self.models[side].state.revision
            self.models[side].commit(state)
        self.tx, self.drafts = None, {}

    @precondition(lambda self: self.tx is not None)
    @rule(how=st.sampled_from(("abort", "raise")))
    def abort(self, how: str) -> None:
        assert self.tx is not None
        if how == "raise":
            self.tx.__exit__(ValueError, ValueError(), None)
        self.tx.abort()
        self.tx, self.drafts = None, {}

    def on(self, side: str) -> tuple[Transaction, RowTable, State, bool]:
        """Return a transaction on a table, the table, the state of its model, and whether the transaction is new. If an open
        transaction covers the table, it is returned. A new transaction has to be committed by the caller.
        """
        alone = side not in self.drafts
        if alone:
            if self.tx is not None:
                self.commit()
            self.begin_one(side)
        assert self.tx is not None
        return self.tx, self.tables[side], self.drafts[side], alone

    def begin_one(self, side: str) -> None:
        self.tx = write(self.tables[side])
        self.tx.__enter__()
        self.drafts = {side: self.models[side].state}

    def over(self, side: str, state: State, alone: bool) -> None:
        self.drafts[side] = state
        if alone:
            self.commit()

    @rule(side=sides, row=rows)
    def insert(self, side: str, row: Row) -> None:
        tx, table, state, alone = self.on(side)
        if state.taken(row) is not None:
            with pytest.raises(DuplicateKeyError) as taken:
                tx.insert(table, copied(row))
            assert taken.value.key == state.taken(row)
        else:
            old = tx.insert(table, copied(row))
            assert (old and old.row) == (state.rows[row.key].row if row.key in state.rows else None)
            state = putting(state, row)
        self.over(side, state, alone)

    @rule(side=sides, row=rows)
    def modify(self, side: str, row: Row) -> None:
        tx, table, state, alone = self.on(side)
        result = merged(state.rows[row.key].row, row) if row.key in state.rows else row
        if state.taken(result) is not None:
            with pytest.raises(DuplicateKeyError):
                tx.modify(table, copied(row), merged)
        else:
            tx.modify(table, copied(row), merged)
            state = putting(state, result)
        self.over(side, state, alone)

    @rule(side=sides, row=rows, off=st.sampled_from((0, 0, 1)))
    def compare_and_swap(self, side: str, row: Row, off: int) -> None:
        tx, table, state, alone = self.on(side)
        old = state.rows.get(row.key)
        revision = (old.revision if old else 1) + off
        if old is None:
            with pytest.raises(RowNotFoundError):
                tx.compare_and_swap(table, revision, copied(row))
        elif off:
            with pytest.raises(RevisionChangedError) as changed:
                tx.compare_and_swap(table, revision, copied(row))
            assert (changed.value.entry.row, changed.value.entry.revision) == old[:2]
        elif state.taken(row) is None:
            assert tx.compare_and_swap(table, revision, copied(row)).row == old.row
            state = putting(state, row)
        self.over(side, state, alone)

    @rule(side=sides, key=keys, off=st.sampled_from((None, 0, 1)))
    def delete(self, side: str, key: str, off: int | None) -> None:
        tx, table, state, alone = self.on(side)
        old = state.rows.get(key)
        if off and old:
            with pytest.raises(RevisionChangedError):
                tx.compare_and_delete(table, old.revision + off, key)
        else:
            gone = (
                tx.delete(table, key) if off is None else tx.compare_and_delete(table, old.revision if old else 1, key)
            )
            assert (gone and gone.row) == (old and old.row)
            state = deleting(state, key)
        self.over(side, state, alone)

    @rule(side=sides)
    def delete_all(self, side: str) -> None:
        tx, table, state, alone = self.on(side)
        assert tx.delete_all(table) == len(state.rows)
        for row, _ in state.entries():
            state = deleting(state, row.key)
        self.over(side, state, alone)

    # -- readers

    @precondition(lambda self: len(self.streams) < 5)
    @rule(side=sides)
    def follow(self, side: str) -> None:
        stack = ExitStack()
        model = self.models[side]
        stream = stack.enter_context(self.tables[side].changes(f"reader of {side}"))
        reader = Reader(begun=model.state.revision)
        model.readers.append(reader)
        self.streams.append((side, reader, stream, stack))

    @precondition(lambda self: self.streams)
    @rule(which=st.integers(0, 4), limit=st.sampled_from((None, 0, 1, 2, 5)))
    def take(self, which: int, limit: int | None) -> None:
        side, reader, stream, _ = self.streams[which % len(self.streams)]
        model = self.models[side]
        if reader.expired:
            with pytest.raises(TrackerExpiredError):
                stream.take(limit)
            return
        told = [Told(*change) for change in stream.take(limit)]
        assert told == model.take(reader, limit)
        revisions = [one.revision for one in told]
        assert revisions == sorted(set(revisions))
        replay(reader.copy, told)
        assert stream.revision == reader.mark
        if not stream.behind:
            assert reader.copy == model.state.rows

    @precondition(lambda self: self.streams)
    @rule(which=st.integers(0, 4))
    def leave(self, which: int) -> None:
        side, reader, _, stack = self.streams.pop(which % len(self.streams))
        stack.close()
        self.models[side].readers.remove(reader)

    # -- initializers, snapshots, watches

    @rule(side=sides, name=st.sampled_from(("records", "charts")))
    def initialize(self, side: str, name: str) -> None:
        pending = self.models[side].pending
        self.models[side].turns += 1
        if name in pending:
            self.initializers.pop((side, name)).done()
            pending.remove(name)
        else:
            self.initializers[side, name] = self.tables[side].initializer(name)
            pending.add(name)

    @rule(side=sides)
    def keep(self, side: str) -> None:
        model = self.models[side]
        self.snapshots = [*self.snapshots[-KEEP:], (self.tables[side].snapshot(), model.state, not model.pending)]

    @rule(side=sides, kind=st.sampled_from(("table", "key", "tag", "seat")), pick=st.integers(0, 7))
    def observe(self, side: str, kind: str, pick: int) -> None:
        table = self.tables[side]
        of = {"table": "", "key": "abcdefgh"[pick], "tag": TAGS[pick % 2], "seat": str(SEATS[pick % 2])}[kind]
        if kind == "table":
            watch = table.watch()
        elif kind == "key":
            watch = table.watch_key(of)
        else:
            watch = table.watch_index(kind, int(of) if kind == "seat" else of)
        watched = Watched(watch, side, kind, of)
        watched.then, watched.whole = self.looked(watched), self.looked(Watched(watch, side, "table", ""))
        self.watched = [*self.watched[-KEEP:], watched]

    def looked(self, watched: Watched) -> object:
        """Return the current state of the watched rows."""
        model = self.models[watched.side]
        match watched.kind:
            case "key":
                return model.state.rows.get(watched.of)
            case "tag":
                return model.state.find(watched.of)
            case "seat":
                return model.state.seated(int(watched.of))
            case _:
                return model.state.revision, model.turns

    # -- what holds after every step

    @invariant()
    def what_is_committed_is_the_model(self) -> None:
        for side, table in self.tables.items():
            model = self.models[side]
            check(table.snapshot(), model.state)
            assert table.snapshot().pending_initializers == tuple(sorted(model.pending))
            statistics = table.statistics()
            graves = len(model.graves())
            assert statistics.graves == graves <= GRAVES
            assert len(statistics.trackers) == sum(not reader.expired for reader in model.readers)
            assert statistics.versions <= 2 * (len(model.state.rows) + graves) + 4 * SLACK

    @invariant()
    def every_log_knows_how_much_of_it_is_not_over(self) -> None:
        """Check that each log counts its versions that have not ended. The count decides when the log is compacted."""
        for table in self.tables.values():
            logs = [table._contents._log]
            for buckets in table.snapshot().buckets.values():
                logs += [buckets[value] for value in buckets]
            for log in logs:
                assert log.live == sum(version.ended in {PRESENT, GRAVE} for version in log.versions)
            assert all(log.live for log in logs[1:])

    @invariant()
    def what_was_read_stays(self) -> None:
        for snapshot, state, initialized in self.snapshots:
            check(snapshot, state)
            assert snapshot.initialized == initialized

    @invariant()
    def a_transaction_reads_what_it_wrote(self) -> None:
        for side, state in self.drafts.items():
            assert self.tx is not None
            table = self.tables[side]
            assert self.tx.revision(table) == state.revision
            assert [(one.row, one.revision) for one in self.tx.entries(table)] == state.entries()
            for tag in TAGS:
                assert [(one.row, one.revision) for one in self.tx.find(table, "tag", tag)] == state.find(tag)
            for key in "abcdefgh":
                entry = self.tx.get(table, key)
                assert (Kept(entry.row, entry.revision, entry.created) if entry else None) == state.rows.get(key)

    @invariant()
    def no_watch_misses_anything(self) -> None:
        for watched in self.watched:
            if self.looked(watched) != watched.then:
                assert watched.watch.fired
            if self.looked(Watched(watched.watch, watched.side, "table", "")) == watched.whole:
                assert not watched.watch.fired, "nothing at all changed"


def check(snapshot: Snapshot[str, Row], state: State) -> None:
    assert (len(snapshot), snapshot.revision) == (len(state.rows), state.revision)
    entries = [(one.row, one.revision) for one in snapshot.entries()]
    assert entries == state.entries()
    for key in "abcdefgh":
        entry = snapshot.get(key)
        assert (Kept(entry.row, entry.revision, entry.created) if entry else None) == state.rows.get(key)
    for tag in TAGS:
        assert [(one.row, one.revision) for one in snapshot.find("tag", tag)] == state.find(tag)
    for seat in SEATS:
        assert [(one.row, one.revision) for one in snapshot.find("seat", seat)] == state.seated(seat)
    middle = state.revision // 2
    assert [(one.row, one.revision) for one in snapshot.since(middle)] == [one for one in entries if one[1] > middle]


TestTables = TableMachine.TestCase
TestTables.settings = settings(max_examples=scaled(2000, 60), stateful_step_count=scaled(120, 50), deadline=None)
