"""The command ``wharfinger cache`` as a user runs it."""

import json
import os
import time
from pathlib import Path

import pytest

from tests.offline.support import cli, cli_process, config_map, write_tree
from wharfinger.__main__ import main
from wharfinger.formats.json.value import JsonObject, as_object, find, find_int, find_object


@pytest.mark.slow
def test_a_build_fills_the_cache_and_gc_empties_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = write_tree(tmp_path / "tree", {"kustomization.yaml": "resources: [a.yaml]\n", "a.yaml": config_map("a")})
    cache = tmp_path / "cache"
    first = cli_process("build", str(tree), cache=cache)
    assert first.returncode == 0
    (cache / "renders").mkdir(exist_ok=True)
    (cache / "renders" / f"{'a' * 64}.render").write_bytes(bytes(100))
    found = statistics(cache, capsys)
    assert find_int(found, "areas", "results", "bytes") >= 100
    areas = find_object(found, "areas")
    assert find_int(found, "bytes") == sum(find_int(areas, name, "bytes") for name in areas)

    assert main(["cache", "gc", "--max-mib", "0", "-o", "json", "--cache-dir", str(cache)]) == 0
    removed = as_object(json.loads(capsys.readouterr().out), "the answer")
    assert removed["removed"] == find(found, "areas", "results", "entries")
    assert find(statistics(cache, capsys), "areas", "results") == {"entries": 0, "bytes": 0}
    assert cli_process("build", str(tree), cache=cache).stdout == first.stdout


def statistics(cache: Path, capsys: pytest.CaptureFixture[str]) -> JsonObject:
    assert main(["cache", "stats", "-o", "json", "--cache-dir", str(cache)]) == 0
    return as_object(json.loads(capsys.readouterr().out), "the answer")


def test_cache_statistics_are_printed_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "stats", "--cache-dir", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["KIND", "ENTRIES", "SIZE"]
    assert lines[-1].split() == ["total", "0", "0.0", "MiB"]
    assert main(["cache", "gc", "--cache-dir", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "removed 0 entries, 0.0 MiB\n"


def test_a_cache_that_is_not_a_folder_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "renders").write_text("")
    for action in ("stats", "gc"):
        assert main(["cache", action, "--cache-dir", str(tmp_path)]) == 1
        assert f"error: {tmp_path}/renders: Not a directory; check --cache-dir" in capsys.readouterr().err


def test_invalid_numbers_are_refused(tmp_path: Path) -> None:
    done = cli("cache", "gc", "--max-mib", "many", cache=tmp_path)
    assert done.returncode == 2
    assert "'many' is not a number from 0" in done.stderr


def test_gc_removes_entries_unused_for_the_given_days(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = tmp_path / "renders" / f"{'a' * 64}.render"
    entry.parent.mkdir()
    entry.write_bytes(bytes(100))
    two_days_ago = time.time() - 2 * 86_400
    os.utime(entry, (two_days_ago, two_days_ago))
    gc = ["cache", "gc", "-o", "json", "--cache-dir", str(tmp_path)]
    assert main([*gc, "--unused-days", "3"]) == 0
    assert entry.exists()
    assert main([*gc, "--unused-days", "1"]) == 0
    assert not entry.exists()
    capsys.readouterr()
