"""The parts that controllers share."""

from pathlib import Path

from wharfinger.offline.controllers.controller import RunContext, RunOptions
from wharfinger.offline.discovery.tree import Tree
from wharfinger.offline.store.store import ObjectStore


def test_scratch_folders_are_unique(tmp_path: Path) -> None:
    tree = Tree(tmp_path, (".",), (), (), {}, (), (), frozenset())
    run = RunContext(tree, ObjectStore(), RunOptions("v1.34.0"), tmp_path)
    assert run.new_folder() != run.new_folder()
