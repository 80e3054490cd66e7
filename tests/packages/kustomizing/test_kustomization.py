"""Kustomizations that are generated for a build."""

from pathlib import Path

from tests.offline.support import config_map, write_tree
from wharfinger.formats.json.value import JsonObject
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.packages.kustomizing.kustomization import Folder, Manifests, Overlay, names_in_messages

FIELDS: JsonObject = {"components": ["../c"], "namespace": "x"}


def test_an_overlay_lies_outside_of_its_folder(tmp_path: Path) -> None:
    folder = write_tree(tmp_path / "tree" / "apps", {"a.yaml": config_map("a")})
    overlay = Overlay(folder, "apps", ("a.yaml",), FIELDS)
    files = overlay.files(tmp_path.resolve() / "work" / "1")
    assert {name: read_yaml(text.encode(), what=name) for name, text in files.items()} == {
        "kustomization.yaml": {
            "apiVersion": "kustomize.config.k8s.io/v1beta1",
            "kind": "Kustomization",
            "resources": ["../../tree/apps/a.yaml"],
            "components": ["../../tree/c"],
            "namespace": "x",
        }
    }
    assert [path.name for path in folder.iterdir()] == ["a.yaml"]


def test_given_manifests_become_the_resource(tmp_path: Path) -> None:
    files = Manifests("postRenderers", config_map("a"), {"images": []}).files(tmp_path)
    assert files["manifests.yaml"] == config_map("a")
    assert "- manifests.yaml" in files["kustomization.yaml"]


def test_messages_use_the_folder_names_of_the_caller(tmp_path: Path) -> None:
    folder = tmp_path.resolve() / "tree" / "apps"
    folder.mkdir(parents=True)
    assert names_in_messages(Folder(folder, "apps"), folder)[0] == (str(folder), "apps")
    pairs = names_in_messages(Overlay(folder, "apps", (".",), {}), folder.parent / "made")
    assert pairs[:2] == (("'../apps/", "'apps/"), ("'../apps'", "'apps'"))
    assert names_in_messages(Manifests("postRenderers", "", {}), folder) == ((str(folder), "postRenderers"),)
