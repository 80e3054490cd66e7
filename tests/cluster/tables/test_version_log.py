"""Logs of versions: how ended versions are removed, and how much of this work a single write does."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from wharfinger.cluster.tables.entry import FORGOTTEN, GRAVE, PRESENT, Version
from wharfinger.cluster.tables.version_log import COPIES, SLACK, VersionLog

Log = VersionLog[int, str]


def version(key: int, revision: int, ended: int = PRESENT) -> Version[int, str]:
    return Version(key, f"{key} of {revision}", revision, revision, ended)


def filled(count: int) -> Log:
    log = Log()
    for number in range(count):
        log.append(version(number, number + 1))
    return log


def end(log: Log, one: Version[int, str], by: int) -> None:
    one.ended = by
    log.live -= 1


def test_a_snapshot_sees_versions_begun_and_not_ended() -> None:
    log = filled(4)
    end(log, log.versions[1], 5)
    log.append(version(1, 5))
    assert [one.revision for one in log.seen(4, 4)] == [1, 2, 3, 4]
    assert [one.revision for one in log.seen(5, 5)] == [1, 3, 4, 5]
    assert [one.revision for one in log.seen(4, 4, after=2)] == [3, 4]
    assert [one.revision for one in log.seen(5, 5, after=5)] == []


def test_graves_are_reported_as_changes_and_not_seen() -> None:
    log = filled(2)
    log.append(version(7, 3, GRAVE))
    log.append(version(8, 4, FORGOTTEN))
    assert [one.key for one in log.seen(4, 4)] == [0, 1]
    assert [one.key for one in log.changes_since(0)] == [0, 1, 7]
    assert [one.key for one in log.changes_since(2)] == [7]


def test_a_log_with_few_ended_versions_is_not_compacted() -> None:
    log = filled(100)
    for one in log.versions[: 50 // 3]:
        end(log, one, 101)
    assert log.tidied(1) is log


def test_the_compacted_log_has_all_versions_not_ended() -> None:
    log = filled(100)
    old = log.versions
    for one in old[1::2]:
        end(log, one, 101)
    old[2].ended = GRAVE
    assert log.tidied(1) is log
    end(log, old[0], 101)
    after, turns = log.tidied(1), 2
    while after is log:
        after, turns = log.tidied(1), turns + 1
    assert turns == -(-100 // (COPIES + SLACK))
    assert after.versions == old[::2], "and versions that ended only after they were copied"
    assert (after.live, len(old)) == (49, 100)


def replacing(keys: Iterable[int]) -> None:
    """Write a row for each of these keys, which replaces the key's former row. Check the log after each write."""
    log, rows = Log(), dict[int, Version[int, str]]()
    for revision, key in enumerate(keys, start=1):
        if key in rows:
            end(log, rows[key], revision)
        rows[key] = version(key, revision)
        log.append(rows[key])
        log = log.tidied(1)
        assert log.live == len(rows) == sum(one.ended == PRESENT for one in log.versions)
        assert len(log.versions) <= 2 * len(rows) + 4 * SLACK
        newest = sorted(rows.values(), key=lambda one: one.revision)
        assert list(log.changes_since(0)) == newest
        assert list(log.seen(revision, len(log.versions))) == newest


@given(st.lists(st.integers(0, 30), max_size=500))
def test_ended_versions_never_far_outnumber_the_others(keys: list[int]) -> None:
    replacing(keys)


def test_versions_may_end_while_the_log_is_compacted() -> None:
    replacing(number * number % 97 for number in range(1000))
    replacing([*range(200), *range(50, 200), *range(50, 100)])
    replacing([*range(200), *reversed(range(200))])
