"""The run of an operation: its context, its time limit, and the ClusterErrors that replace exceptions of other types."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext

import pytest
import trio
import trio.testing

from tests.cluster.reconciler.samples import OPTIONS, BatchTarget, Row, RowAttempt, Target, a_table, put
from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.reconciler.operations import (
    Attempt,
    BadRowError,
    NoOutcomeError,
    OperationTimeoutError,
    UnexpectedError,
)
from wharfinger.cluster.reconciler.performing import Performer
from wharfinger.formats.errors import FormatError

UPDATE = Attempt(1, Row(1, "a"), 1, 1)
DELETE = Attempt(2, Row(2, "b"), 2, 1, deleting=True)


class Odd(BatchTarget):
    """A target that raises a given exception, or omits the outcome of the first row."""

    raises: Exception | None = None

    async def update(self, attempt: RowAttempt) -> None:
        if self.raises:
            raise self.raises

    async def update_batch(self, attempts: Sequence[RowAttempt]) -> Mapping[int, ClusterError | None]:
        if self.raises:
            raise self.raises
        return {attempt.key: None for attempt in attempts[1:]}

    async def prune(self, snapshot: object) -> None:
        if self.raises:
            raise self.raises


def performer(target: Target) -> Performer[int, Row]:
    batch = target if isinstance(target, BatchTarget) else None
    return Performer(target, batch, lambda _: nullcontext(), OPTIONS)


async def test_operations_run_in_the_context_of_their_owner() -> None:
    whose: list[str] = []

    @contextmanager
    def during(row: Row) -> Iterator[None]:
        whose.append(row.owner)
        yield
        whose.append("over")

    target = BatchTarget()
    mine = Performer(target, target, during, OPTIONS)
    assert mine.in_batches
    assert await mine.perform(UPDATE) is None
    assert await mine.perform(DELETE) is None
    assert await mine.perform_batch([UPDATE]) == {1: None}
    assert await mine.perform_batch([]) == {}
    assert whose == ["a", "over", "b", "over", "a", "over"]
    assert (mine.updates.snapshot().count, mine.deletions.snapshot().count) == (2, 1)


async def test_a_target_without_batches_performs_none() -> None:
    mine = performer(Target())
    assert not mine.in_batches
    assert await mine.perform_batch([UPDATE]) == {}


async def test_operations_that_are_too_slow_time_out(autojump_clock: trio.testing.MockClock) -> None:
    target = BatchTarget(gates={1: trio.Event()}, prune_gate=trio.Event())
    mine, table = performer(target), a_table()
    put(table, 1)
    began = trio.current_time()
    error = await mine.perform(UPDATE)
    assert isinstance(error, OperationTimeoutError)
    assert str(error) == "updating 1 took longer than 120 s"
    assert trio.current_time() - began == pytest.approx(120)
    [error] = (await mine.perform_batch([UPDATE])).values()
    assert str(error) == "updating 1 and 0 others took longer than 120 s"
    error = await mine.prune(table.snapshot())
    assert str(error) == "pruning took longer than 600 s"
    told = mine.updates.snapshot()
    assert (told.count, told.errors) == (2, 2)
    assert told.seconds == pytest.approx(240)
    assert not target.busy


@pytest.mark.parametrize(
    ("raised", "kind"), [(ClusterError("no"), ClusterError), (FormatError("not an object"), BadRowError)]
)
async def test_cluster_errors_are_returned_unchanged(raised: Exception, kind: type[ClusterError]) -> None:
    target = Odd()
    target.raises = raised
    mine, table = performer(target), a_table()
    for error in (
        await mine.perform(UPDATE),
        (await mine.perform_batch([UPDATE]))[1],
        await mine.prune(table.snapshot()),
    ):
        assert type(error) is kind
        assert str(error) == str(raised)


async def test_unexpected_exceptions_are_failures_that_name_them() -> None:
    target, table = Odd(), a_table()
    target.raises = KeyError("a bug")
    mine = performer(target)
    for error in (
        await mine.perform(UPDATE),
        (await mine.perform_batch([UPDATE]))[1],
        await mine.prune(table.snapshot()),
    ):
        assert isinstance(error, UnexpectedError)
        assert str(error) == "KeyError: 'a bug'"
        assert error.transient
        assert error.__cause__ is target.raises
    target.raises = TimeoutError()
    assert str(await mine.perform(UPDATE)) == "TimeoutError"


async def test_a_late_operation_may_be_cut_off(autojump_clock: trio.testing.MockClock) -> None:
    target = BatchTarget(gates={1: trio.Event()})
    mine = performer(target)
    errors: list[ClusterError | None] = []

    async def single() -> None:
        errors.append(await mine.perform(UPDATE))

    async def batch() -> None:
        errors.extend((await mine.perform_batch([UPDATE])).values())

    for start in (single, batch):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            await trio.sleep(3)
            mine.cut_off([2, 1])
    assert [str(error) for error in errors] == [
        "updating 1 took longer than 2 s and was cut off, because too many other operations hang",
        "updating 1 and 0 others took longer than 2 s and was cut off, because too many other operations hang",
    ]
    assert all(isinstance(error, OperationTimeoutError) for error in errors)
    mine.cut_off([1])


async def test_an_object_without_an_outcome_in_its_batch_has_failed() -> None:
    other = Attempt(3, Row(3), 3, 1)
    outcomes = await performer(Odd()).perform_batch([UPDATE, other])
    assert isinstance(outcomes[1], NoOutcomeError)
    assert outcomes[3] is None


async def test_each_object_of_a_batch_has_its_own_outcome() -> None:
    target = BatchTarget(errors={3: ClusterError("no")})
    mine = performer(target)
    outcomes = await mine.perform_batch([UPDATE, Attempt(3, Row(3), 3, 1)])
    assert [str(outcomes[key]) for key in (1, 3)] == ["None", "no"]
    assert (mine.updates.snapshot().count, mine.updates.snapshot().errors) == (2, 1)
    assert await mine.perform_batch([DELETE]) == {2: None}
