"""The programs, pools and folders of offline commands."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.support import open_test_tools, tool_options
from wharfinger.offline.orchestrator.toolbox import find_program, open_tools
from wharfinger.packages.errors import StoreError


async def test_scratch_files_are_removed_and_separate_for_each_command(tmp_path: Path) -> None:
    async with open_test_tools(tmp_path) as one, open_test_tools(tmp_path) as other:
        assert one.scratch != other.scratch
        assert one.scratch.is_dir()
    assert not one.scratch.exists()
    assert not other.scratch.exists()


async def test_a_cache_that_cannot_be_created_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    options = replace(tool_options(tmp_path), cache=tmp_path / "file" / "cache")
    with pytest.raises(StoreError, match="check --cache-dir"):
        async with open_tools(options):
            pass


def test_programs_are_found_by_name() -> None:
    assert find_program("sh") is not None
    assert find_program("no-such-program") is None


def test_a_relative_program_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "engine").write_text("#!/bin/sh\n")
    (tmp_path / "engine").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert find_program("./engine") == tmp_path / "engine"
