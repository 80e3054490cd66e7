"""The files of a tree."""

import os
from pathlib import Path

import pytest

from tests.offline.support import config_map, write_tree
from wharfinger.offline.discovery import walk
from wharfinger.offline.discovery.walk import TreeError, list_tree


def test_charts_and_packages_are_listed_but_not_entered(tmp_path: Path) -> None:
    write_tree(
        tmp_path,
        {
            "a.yaml": "",
            "apps/b.yml": "",
            "apps/notes.txt": "",
            "apps/kustomization.yaml": "",
            "charts/web/Chart.yaml": "",
            "charts/web/values.yaml": "",
            "packages/p/package.yaml": "",
            ".hidden/c.yaml": "",
            "skipped/d.yaml": "",
            ".sourceignore": "skipped/\n",
        },
    )
    found = list_tree(tmp_path)
    assert found.files == ("a.yaml", "apps/b.yml")
    assert found.kustomizations == ("apps",)
    assert found.packages == ("charts/web", "packages/p")
    assert list_tree(tmp_path, "apps").files == ("apps/b.yml",)


def test_links_out_of_the_tree_and_to_folders_are_skipped(tmp_path: Path) -> None:
    write_tree(tmp_path, {"out.yaml": "", "tree/in.yaml": ""})
    (tmp_path / "tree" / "out.yaml").symlink_to(tmp_path / "out.yaml")
    (tmp_path / "tree" / "self").symlink_to(tmp_path / "tree")
    (tmp_path / "tree" / "link.yaml").symlink_to(tmp_path / "tree" / "in.yaml")
    assert list_tree(tmp_path / "tree").files == ("in.yaml", "link.yaml")


def test_a_missing_or_too_large_tree_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TreeError, match="cannot be read"):
        list_tree(tmp_path / "absent")
    write_tree(tmp_path, {"a/b/c.yaml": "", "a/b/d.yaml": ""})
    monkeypatch.setattr(walk, "MAX_FILES", 1)
    with pytest.raises(TreeError, match="more than 1 files"):
        list_tree(tmp_path)
    monkeypatch.setattr(walk, "MAX_DEPTH", 1)
    with pytest.raises(TreeError, match="more than 1 nested folders"):
        list_tree(tmp_path)


def test_a_manifest_named_package_yaml_is_not_a_package(tmp_path: Path) -> None:
    provider = "apiVersion: pkg.crossplane.io/v1\nkind: Provider\nmetadata: {name: x}\n"
    write_tree(tmp_path, {"a/package.yaml": provider, "a/map.yaml": config_map("x"), "b/module.yaml": "name: b\n"})
    found = list_tree(tmp_path)
    assert (found.files, found.packages) == (("a/map.yaml", "a/package.yaml"), ("b",))


def test_ignore_patterns_of_parent_folders_apply(tmp_path: Path) -> None:
    write_tree(tmp_path, {".sourceignore": "apps/*/no.yaml\n", "apps/.sourceignore": "never.yaml\n"})
    write_tree(tmp_path, {"apps/web/no.yaml": "", "apps/web/never.yaml": "", "apps/web/yes.yaml": ""})
    assert list_tree(tmp_path, "apps/web").files == ("apps/web/yes.yaml",)


def test_pipes_are_skipped_and_dangling_links_are_listed(tmp_path: Path) -> None:
    write_tree(tmp_path, {"in.yaml": "", "folder/x.yaml": ""})
    for name in ("pipe.yaml", "folder/kustomization.yaml", "folder/Chart.yaml"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "to-a-pipe.yaml").symlink_to("pipe.yaml")
    (tmp_path / "dangling.yaml").symlink_to("absent.yaml")
    found = list_tree(tmp_path)
    assert found.files == ("dangling.yaml", "folder/x.yaml", "in.yaml")
    assert found.kustomizations == found.packages == ()
