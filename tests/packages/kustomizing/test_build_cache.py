"""Cached builds. A build is found if the files that it has read still have the same content. The tests run no builder."""

import hashlib
import os
from pathlib import Path

import pytest

from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.kustomizing.build_cache import MAX_LISTS, BuildCache, BuildKey
from wharfinger.packages.rendering.entry_cache import EntryCache

ONE: tuple[JsonObject, ...] = ({"kind": "One"},)
TWO: tuple[JsonObject, ...] = ({"kind": "Two"}, {"kind": "Three"})


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def key(start: Path, version: str = "v5.8.1", name: str = "apps", **files: str) -> BuildKey:
    return BuildKey(version, name, files, start)


def write(start: Path, text: str) -> dict[str, str]:
    """Write a file, and return the paths that a build of its folder would read, each with its state."""
    start.mkdir(exist_ok=True)
    (start / "a.yaml").write_text(text)
    return {str(start): "folder", str(start / "a.yaml"): digest(text), str(start / "b.yaml"): "absent"}


@pytest.fixture
def cache(tmp_path: Path) -> BuildCache:
    return BuildCache(EntryCache(tmp_path / "renders"))


async def test_equal_content_returns_the_cached_objects(cache: BuildCache, tmp_path: Path) -> None:
    start = tmp_path / "tree"
    assert await cache.get(key(start)) is None
    await cache.put(key(start), write(start, "one"), ONE)
    await cache.put(key(start), write(start, "two"), TWO)
    assert await cache.get(key(start)) == TWO
    write(start, "one")
    assert await cache.get(key(start)) == ONE
    write(start, "three")
    assert await cache.get(key(start)) is None


@pytest.mark.parametrize("change", ["another file", "a folder", "nothing", "a pipe", "unreadable"])
async def test_changed_files_are_not_found_in_the_cache(cache: BuildCache, tmp_path: Path, change: str) -> None:
    start = tmp_path / "tree"
    await cache.put(key(start), write(start, "one"), ONE)
    if change == "another file":
        (start / "b.yaml").write_text("")
    else:
        (start / "a.yaml").unlink()
    match change:
        case "a folder":
            (start / "a.yaml").mkdir()
        case "a pipe":
            os.mkfifo(start / "a.yaml")
        case "unreadable":
            (start / "a.yaml").symlink_to("a.yaml")
        case _:
            pass
    assert await cache.get(key(start)) is None


async def test_each_part_of_the_key_selects_another_entry(cache: BuildCache, tmp_path: Path) -> None:
    start = tmp_path / "tree"
    await cache.put(key(start), write(start, "one"), ONE)
    for other in (key(start, "v5.8.2"), key(start, name="other"), key(start, made="x")):
        assert await cache.get(other) is None
    start.rename(tmp_path / "moved")
    assert await cache.get(key(tmp_path / "moved")) == ONE


async def test_only_the_latest_lists_of_paths_are_stored(cache: BuildCache, tmp_path: Path) -> None:
    start = tmp_path / "tree"
    start.mkdir()
    for number in range(MAX_LISTS + 1):
        (start / str(number)).write_text("")
        await cache.put(key(start), {str(start / str(number)): digest("")}, ({"number": number},))
    assert await cache.get(key(start)) == ({"number": MAX_LISTS},)
    for number in range(MAX_LISTS, 0, -1):
        assert await cache.get(key(start)) == ({"number": number},)
        (start / str(number)).unlink()
    assert await cache.get(key(start)) is None


async def test_objects_that_cannot_be_encoded_are_not_cached(cache: BuildCache, tmp_path: Path) -> None:
    start = tmp_path / "tree"
    await cache.put(key(start), write(start, "one"), ({"text": "\ud800"},))
    assert await cache.get(key(start)) is None


async def test_entries_of_another_kind_are_ignored(cache: BuildCache, tmp_path: Path) -> None:
    start, entries = tmp_path / "tree", EntryCache(tmp_path / "renders")
    await cache.put(key(start), write(start, "one"), ONE)
    for file in (tmp_path / "renders").iterdir():
        await entries.put(file.stem, b"no entry")
    assert await BuildCache(entries).get(key(start)) is None
