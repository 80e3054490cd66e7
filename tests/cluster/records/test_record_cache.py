"""Histories of releases that are cached in memory."""

from tests.cluster.support.large_records import record
from wharfinger.cluster.objects.ownership import Owner
from wharfinger.cluster.records.record_cache import RECORD_BYTES, UNPACKED, RecordCache, Stored, slim
from wharfinger.cluster.records.release import ReleaseStatus
from wharfinger.formats.json.value import JsonObject

A, B, C = Owner("a", "x"), Owner("b", "x"), Owner("c", "x")


def stored(revision: int, status: str = "deployed", *, packed: int = 100) -> Stored:
    metadata: JsonObject = {"name": f"s{revision}", "uid": "u", "resourceVersion": "1"}
    return Stored(record(revision, status=ReleaseStatus(status)), metadata, {"cut": True}, None, packed)


def test_revisions_before_the_last_deployed_are_summaries() -> None:
    history = [stored(1, "superseded"), stored(2, "deployed"), stored(3, "failed"), stored(4), stored(5, "failed")]
    assert [one.release.whole for one in slim(history)] == [False, False, False, True, True]
    assert slim(history)[0].cut is None
    assert slim(slim(history)) == slim(history)
    none_deployed = [stored(1, "failed"), stored(2, "failed")]
    assert slim(none_deployed) == tuple(none_deployed)
    assert slim([]) == ()


def test_single_records_are_written_and_deleted() -> None:
    cache = RecordCache()
    assert (cache.get(A), cache.state(A)) == (None, None)
    cache.put_one(A, stored(1))
    assert cache.get(A) is None, "the other records are unknown"
    cache.put(A, [])
    assert (cache.get(A), cache.state(A)) == ((), frozenset())
    cache.put_one(A, stored(2, "pending-upgrade"))
    cache.put_one(A, stored(1, "superseded"))
    cache.put_one(A, stored(2, "failed"))
    known = cache.get(A)
    assert known is not None
    assert [one.release.status.value for one in known] == ["superseded", "failed"]
    assert cache.state(A) == frozenset({("s1", "u", "1"), ("s2", "u", "1")})
    assert cache.count == 2
    cache.drop_one(A, 1)
    cache.drop_one(B, 1)
    assert cache.count == 1
    assert cache.state(A) == frozenset({("s2", "u", "1")})
    cache.drop(A)
    cache.drop(A)
    assert (cache.get(A), cache.held_bytes) == (None, 0)


def test_a_release_is_dropped_if_only_a_summary_of_its_current_revision_remains() -> None:
    cache = RecordCache()
    cache.put(A, [stored(1, "superseded"), stored(2, "superseded"), stored(3)])
    cache.drop_one(A, 1)
    assert cache.get(A) is not None
    cache.drop_one(A, 3)
    assert (cache.get(A), cache.held_bytes) == (None, 0)
    cache.put(A, [stored(1, "superseded"), stored(2)])
    cache.put_one(A, stored(2, "uninstalling"))
    assert cache.get(A) is None


def test_the_cache_is_bounded() -> None:
    one = 2 * RECORD_BYTES + 100 * UNPACKED
    cache = RecordCache(max_bytes=2 * one)
    for owner in (A, B):
        cache.put(owner, [stored(1)])
    assert cache.held_bytes == 2 * one
    cache.get(A)
    cache.put(C, [stored(1)])
    assert [cache.get(owner) is None for owner in (A, B, C)] == [False, True, False]
    cache.put(A, [stored(1, packed=10 * one)])
    assert (cache.get(A), cache.held_bytes) == (None, 0)
