"""The cache of the versions of programs, such as helm."""

from pathlib import Path

from wharfinger.packages.rendering.entry_cache import EntryCache
from wharfinger.packages.rendering.program_versions import ProgramVersions
from wharfinger.packages.rendering.render_entry import pack_value


class Asked:
    """A program that returns a version and counts its calls."""

    def __init__(self, version: str = "v1.0.0") -> None:
        self.version = version
        self.times = 0

    async def __call__(self) -> str:
        self.times += 1
        return self.version


def binary(path: Path, text: bytes = b"") -> Path:
    path.write_bytes(b"\x7fELF" + text)
    return path


async def test_the_version_of_a_binary_is_cached_for_all_processes(tmp_path: Path) -> None:
    program, asked = binary(tmp_path / "helm"), Asked()
    for _ in range(3):
        assert await ProgramVersions(EntryCache(tmp_path / "renders")).version_of(program, asked) == "v1.0.0"
    assert asked.times == 1
    asked.version = "v2.0.0"
    binary(program, b"more")
    assert await ProgramVersions(EntryCache(tmp_path / "renders")).version_of(program, asked) == "v2.0.0"
    assert asked.times == 2


async def test_the_version_of_a_script_is_read_each_time(tmp_path: Path) -> None:
    program, asked = tmp_path / "helm", Asked()
    program.write_text("#!/bin/sh\n")
    versions = ProgramVersions(EntryCache(tmp_path / "renders"))
    for path in (program, program, tmp_path / "absent"):
        assert await versions.version_of(path, asked) == "v1.0.0"
    assert asked.times == 3


async def test_an_empty_version_is_not_cached(tmp_path: Path) -> None:
    program, asked = binary(tmp_path / "helm"), Asked("")
    versions = ProgramVersions(EntryCache(tmp_path / "renders"))
    assert [await versions.version_of(program, asked) for _ in range(2)] == ["", ""]
    assert asked.times == 2


async def test_entries_of_another_kind_are_ignored(tmp_path: Path) -> None:
    program, asked = binary(tmp_path / "helm"), Asked()
    entries = EntryCache(tmp_path / "renders")
    versions = ProgramVersions(entries)
    await versions.version_of(program, asked)
    (file,) = (tmp_path / "renders").iterdir()
    for packed in (pack_value([1]), b"no entry"):
        await entries.put(file.stem, packed)
        assert await versions.version_of(program, asked) == "v1.0.0"
    assert asked.times == 3
