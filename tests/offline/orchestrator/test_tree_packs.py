"""Packs: a pack is one cache entry that contains the other entries that a build of a tree has used."""

from pathlib import Path

import pytest

from wharfinger.offline.orchestrator.tree_packs import TreePacks, pack_name
from wharfinger.packages.rendering.entry_cache import Entry, EntryCache

A, B, NAME = "a" * 64, "b" * 64, "c" * 64


def opened(folder: Path) -> tuple[EntryCache, TreePacks]:
    entries = EntryCache(folder, short_lived=True)
    return entries, TreePacks(entries)


async def filled(folder: Path) -> None:
    entries, packs = opened(folder)
    await packs.open(NAME)
    await entries.put(A, b"one")
    packs.texts.document(b"a: 1", what="x")
    await packs.save(NAME)


async def test_a_pack_contains_the_used_entries(tmp_path: Path) -> None:
    await filled(tmp_path)
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    assert await entries.get(A) == Entry(b"one", in_memory=True)
    assert packs.texts.document(b"a: 1", what="x") == {"a": 1}
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    await packs.save(NAME)
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


async def test_a_pack_contains_the_newest_value_of_an_entry(tmp_path: Path) -> None:
    await filled(tmp_path)
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    await entries.put(A, b"two")
    await packs.save(NAME)
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    assert await entries.get(A) == Entry(b"two", in_memory=True)


async def test_unused_entries_are_removed_from_the_pack(tmp_path: Path) -> None:
    await filled(tmp_path)
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    await entries.put(B, b"two")
    await packs.save(NAME)
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    assert await entries.get(A) == Entry(b"one", in_memory=False)
    assert await entries.get(B) == Entry(b"two", in_memory=True)


@pytest.mark.parametrize("damaged", [b"", b"no pack", b"\x81\xa5texts\x01"])
async def test_a_damaged_pack_is_replaced(tmp_path: Path, damaged: bytes) -> None:
    entries, packs = opened(tmp_path)
    await entries.put(NAME, damaged)
    await packs.open(NAME)
    assert await EntryCache(tmp_path).get(NAME) is None
    await packs.save(NAME)
    await filled(tmp_path)


async def test_packs_without_a_cache_are_not_saved() -> None:
    packs = TreePacks()
    await packs.open(NAME)
    assert packs.texts.document(b"a: 1", what="x") == {"a": 1}
    await packs.save(NAME)


def test_the_pack_name_does_not_depend_on_the_order_of_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    assert pack_name((one, two)) == pack_name((two, one)) != pack_name((one,))
    monkeypatch.chdir(tmp_path)
    assert pack_name((Path("one"),)) == pack_name((one,))


async def test_a_pack_is_rewritten_for_changed_values_but_not_for_few_additions(tmp_path: Path) -> None:
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    for number in range(20):
        await entries.put(f"{number:064}", b"one")
    await packs.save(NAME)
    written = (tmp_path / f"{NAME}.render").stat().st_mtime_ns
    for value, is_written in ((b"two", False), (b"three", True)):
        entries, packs = opened(tmp_path)
        await packs.open(NAME)
        for number in range(20):
            await entries.get(f"{number:064}")
        await entries.put(A if not is_written else f"{1:064}", value)
        await packs.save(NAME)
        assert ((tmp_path / f"{NAME}.render").stat().st_mtime_ns != written) is is_written
    entries, packs = opened(tmp_path)
    await packs.open(NAME)
    assert await entries.get(f"{1:064}") == Entry(b"three", in_memory=True)
