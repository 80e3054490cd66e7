"""The cache folder: its statistics, and the removal of entries."""

import os
import time
from pathlib import Path

import pytest

from wharfinger.offline.sources.cache_folder import IN_USE_S, AreaStatistics, collect, mark_used, statistics
from wharfinger.packages.rendering.render_folder import USE_AGE_S

DAY_S = 86_400.0
MANY = 10**9


def result(cache: Path, name: str, size: int, age_s: float = 0.0) -> Path:
    path = cache / "renders" / f"{name}.render"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return aged(path, age_s)


def folder(cache: Path, area: str, name: str, size: int, age_s: float = 0.0) -> Path:
    path = cache / area / name
    (path / "deep").mkdir(parents=True)
    (path / "deep" / "file").write_bytes(bytes(size))
    return aged(path, age_s)


def aged(path: Path, age_s: float) -> Path:
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_a_missing_cache_is_empty_and_not_created(tmp_path: Path) -> None:
    assert set(statistics(tmp_path / "absent").values()) == {AreaStatistics()}
    removed = collect(tmp_path / "absent", max_bytes=0, unused_s=0)
    assert (removed.entries, removed.problems) == (0, [])
    assert not (tmp_path / "absent").exists()


def test_statistics_count_entries_and_bytes_by_kind(tmp_path: Path) -> None:
    result(tmp_path, "a", 10)
    result(tmp_path, "b", 5)
    folder(tmp_path, "charts", "c", 7)
    folder(tmp_path, "commits", "d", 8)
    folder(tmp_path, "git", "e", 9)
    folder(tmp_path, "packages", "blobs", 3)
    (tmp_path / "renders" / "README").write_text("of a user")
    assert statistics(tmp_path) == {
        "results": AreaStatistics(2, 15),
        "charts": AreaStatistics(1, 7),
        "commits": AreaStatistics(1, 8),
        "git": AreaStatistics(1, 9),
        "packages": AreaStatistics(1, 3),
    }


def test_entries_unused_for_the_limit_are_removed(tmp_path: Path) -> None:
    old, new = result(tmp_path, "a", 10, 31 * DAY_S), result(tmp_path, "b", 10, DAY_S)
    old_commit, commit = folder(tmp_path, "commits", "a", 5, 31 * DAY_S), folder(tmp_path, "commits", "b", 5, DAY_S)
    removed = collect(tmp_path, max_bytes=MANY, unused_s=30 * DAY_S)
    assert (removed.entries, removed.bytes, removed.problems) == (2, 15, [])
    assert [path.exists() for path in (old, new, old_commit, commit)] == [False, True, False, True]
    assert [path.name for path in (tmp_path / "commits").iterdir()] == ["b"]


def test_the_least_recently_used_entries_are_removed_first(tmp_path: Path) -> None:
    paths = [result(tmp_path, str(number), 10, number * DAY_S) for number in range(5)]
    chart = folder(tmp_path, "charts", "a", 10, 3.5 * DAY_S)
    assert collect(tmp_path, max_bytes=30, unused_s=MANY).entries == 3
    assert [path.exists() for path in paths] == [True, True, True, False, False]
    assert not chart.exists()


def test_a_recently_used_source_is_not_removed(tmp_path: Path) -> None:
    used, unused = folder(tmp_path, "commits", "a", 10), folder(tmp_path, "commits", "b", 10, IN_USE_S + 60)
    made = result(tmp_path, "a", 10)
    assert collect(tmp_path, max_bytes=0, unused_s=0).entries == 2
    assert [path.exists() for path in (used, unused, made)] == [True, False, False]


def test_leftovers_of_a_crash_are_removed_and_the_store_is_not(tmp_path: Path) -> None:
    left, being_written = folder(tmp_path, "charts", ".tmp-a", 1, DAY_S), folder(tmp_path, "charts", ".tmp-b", 1)
    blobs = folder(tmp_path, "packages", "blobs", 3, 100 * DAY_S)
    link = tmp_path / "charts" / "link"
    link.symlink_to(blobs)
    collect(tmp_path, max_bytes=MANY, unused_s=30 * DAY_S)
    assert [path.exists() for path in (left, being_written, blobs, link)] == [False, True, True, True]


def test_the_time_of_use_is_updated_at_most_hourly(tmp_path: Path) -> None:
    used = folder(tmp_path, "commits", "a", 1, 2 * USE_AGE_S)
    mark_used(used)
    marked = used.stat().st_mtime_ns
    assert time.time() - marked / 1e9 < USE_AGE_S
    mark_used(used)
    assert used.stat().st_mtime_ns == marked
    mark_used(tmp_path / "absent")


def test_entries_that_cannot_be_removed_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, other = result(tmp_path, "a", 10, DAY_S), result(tmp_path, "b", 10)
    unlink = Path.unlink

    def refused(self: Path, *, missing_ok: bool = False) -> None:
        if self == path:
            raise OSError(30, "Read-only file system", str(self))
        unlink(self, missing_ok=missing_ok)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refused)
        removed = collect(tmp_path, max_bytes=0, unused_s=MANY)
    assert removed.problems == [f"{path}: cannot be removed: Read-only file system"]
    assert (removed.entries, path.exists(), other.exists()) == (1, True, False)
