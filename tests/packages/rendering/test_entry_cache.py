"""The cache of packed results, in memory and in a folder."""

from pathlib import Path

import pytest

from wharfinger.packages.rendering.entry_cache import CacheLimits, Entry, EntryCache

A, B = "a" * 64, "b" * 64


@pytest.mark.parametrize("short_lived", [True, False])
async def test_an_entry_is_stored_in_memory_and_on_disk(tmp_path: Path, *, short_lived: bool) -> None:
    cache = EntryCache(tmp_path / "renders", short_lived=short_lived)
    assert await cache.get(A) is None
    await cache.put(A, b"one")
    assert await cache.get(A) == Entry(b"one", in_memory=True)
    other = EntryCache(tmp_path / "renders", short_lived=short_lived)
    assert await other.get(A) == Entry(b"one", in_memory=False)
    assert await other.get(A) == Entry(b"one", in_memory=True)


async def test_a_dropped_entry_is_deleted_from_memory_and_disk(tmp_path: Path) -> None:
    cache = EntryCache(tmp_path / "renders")
    await cache.put(A, b"one")
    await cache.drop(A)
    assert await cache.get(A) is None
    assert (cache.statistics().entries, cache.statistics().bytes, cache.statistics().disk.entries) == (0, 0, 0)


async def test_the_least_recently_used_entry_is_evicted_from_memory(tmp_path: Path) -> None:
    cache = EntryCache(tmp_path / "renders", CacheLimits(memory_bytes=6))
    await cache.put(A, b"one")
    await cache.put(B, b"two")
    await cache.get(A)
    await cache.put("c" * 64, b"six")
    assert cache.statistics().bytes == 6
    assert await cache.get(A) == Entry(b"one", in_memory=True)
    assert await cache.get(B) == Entry(b"two", in_memory=False)


async def test_a_large_entry_is_stored_only_on_disk(tmp_path: Path) -> None:
    cache = EntryCache(tmp_path / "renders", CacheLimits(memory_bytes=2))
    await cache.put(A, b"one")
    assert await cache.get(A) == Entry(b"one", in_memory=False)


async def test_a_short_lived_process_scans_the_folder_only_before_writing(tmp_path: Path) -> None:
    await EntryCache(tmp_path / "renders").put(A, b"one")
    cache = EntryCache(tmp_path / "renders", CacheLimits(disk_entries=1), short_lived=True)
    assert await cache.get(B) is None
    assert cache.statistics().disk.entries == 0
    await cache.put(B, b"two")
    assert [path.stem for path in (tmp_path / "renders").iterdir()] == [B]


async def test_entries_learned_from_another_process_are_found_in_memory(tmp_path: Path) -> None:
    cache = EntryCache(tmp_path / "renders", CacheLimits(memory_bytes=6))
    await cache.put(A, b"one")
    cache.learn({A: b"old", B: b"two", "c" * 64: b"six"})
    assert await cache.get(A) == Entry(b"one", in_memory=True)
    assert cache.used() == {A: b"one"}  # B is in memory, but has not been used yet.
    assert await cache.get(B) == Entry(b"two", in_memory=True)
    assert cache.used() == {A: b"one", B: b"two"}
    assert await cache.get("c" * 64) is None  # This entry did not fit into the memory.
    cache.forget(A)
    assert await cache.get(A) == Entry(b"one", in_memory=False)


async def test_an_entry_that_became_too_large_is_removed_from_memory(tmp_path: Path) -> None:
    cache = EntryCache(tmp_path / "renders", CacheLimits(memory_bytes=4))
    cache.learn({A: b"old"})
    await cache.put(A, b"larger")
    assert await cache.get(A) == Entry(b"larger", in_memory=False)
    assert cache.statistics().bytes == 0
