"""The sources of an Argo CD Application, and the folders of the tree that they build."""

from pathlib import Path

import pytest

from tests.offline.controllers.test_argo_application import FLEET, REMOTE, application
from tests.offline.support import config_map, write_tree
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.discovery.argo import argo_folders, argo_sources
from wharfinger.offline.discovery.tree import discover


def test_the_sources_field_wins_over_the_source_field() -> None:
    one: JsonObject = {"repoURL": "a", "path": "x", "targetRevision": "v1"}
    two: JsonObject = {"repoURL": "b", "ref": "values"}
    (source,) = argo_sources({"spec": {"source": one}})
    assert (source.repository, source.revision, source.path, source.field) == ("a", "v1", "x", "spec.source")
    several = argo_sources({"spec": {"source": one, "sources": [two, one, {"repoURL": "c", "chart": "web"}]}})
    assert [each.field for each in several] == ["spec.sources[0]", "spec.sources[1]", "spec.sources[2]"]
    assert [each.is_values_only for each in several] == [True, False, False]
    assert argo_sources({"spec": {}}) == ()
    assert list(argo_folders({"spec": {"sources": [two, one, {"repoURL": "c", "chart": "web", "path": "."}]}})) == [
        ("a", "x")
    ]


def test_a_source_of_another_shape_is_refused() -> None:
    with pytest.raises(FormatError):
        argo_sources({"spec": {"sources": ["a"]}})


def test_files_built_by_an_application_are_read_but_not_loaded(tmp_path: Path) -> None:
    files = {
        **REMOTE,
        "clusters/a/app.yaml": application("one", f"{{repoURL: '{FLEET}', path: apps/one}}"),
        "clusters/a/other.yaml": application("other", "{repoURL: 'https://git.example.com/x/y', path: clusters/a}"),
        "apps/one/map.yaml": config_map("one"),
    }
    tree = discover(write_tree(tmp_path, files) / "clusters" / "a", root=tmp_path)
    assert [each.id.name for each in tree.loaded] == ["one", "other"]
    assert "one" in {who.name for who in tree.declared if who.kind == "ConfigMap"}


def test_an_application_that_builds_its_own_folder_reveals_the_tree_address(tmp_path: Path) -> None:
    files = {
        "root/app.yaml": application("root", f"{{repoURL: '{FLEET}', path: root}}"),
        "root/map.yaml": config_map("one"),
    }
    tree = discover(write_tree(tmp_path, files), root=tmp_path)
    assert [each.id.name for each in tree.loaded] == ["root"]
    assert tree.local_addresses == {"git.example.com/platform/fleet"}
