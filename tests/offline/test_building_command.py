"""Builds for commands: an error is raised without an exception group around it."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.offline.support import OPTIONS, config_map, names, tool_options, write_tree
from tests.packages.support.charts import chart
from wharfinger.offline.building_command import BuildError, print_message, run_build
from wharfinger.offline.options import OfflineOptions
from wharfinger.offline.orchestrator.orchestrator import Config


def options(path: Path, scratch: Path) -> OfflineOptions:
    return OfflineOptions(Config(path, OPTIONS), tool_options(scratch), {}, "")


def test_trees_and_packages_are_distinguished(tmp_path: Path) -> None:
    tree = write_tree(tmp_path / "tree", {"map.yaml": config_map("x")})
    assert names(run_build(options(tree, tmp_path))) == ["x"]
    assert run_build(options(chart(tmp_path / "web"), tmp_path)).objects


def test_an_unreadable_path_raises_a_single_error(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="does not exist"):
        run_build(options(tmp_path / "absent", tmp_path))
    (tmp_path / "file").write_text("")
    wrong = options(tmp_path, tmp_path)
    with pytest.raises(BuildError, match="check --cache-dir"):
        run_build(replace(wrong, tools=replace(wrong.tools, cache=tmp_path / "file" / "x")))


def test_control_characters_are_escaped_in_messages(capsys: pytest.CaptureFixture[str]) -> None:
    print_message("one\x1b[31m\ntwo\n")
    assert capsys.readouterr().err == "one\\x1b[31m\ntwo\n"
