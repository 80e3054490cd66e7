"""Manifests written to a folder."""

from pathlib import Path

import pytest

from tests.offline.support import flux_id
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.orchestrator.result import Manifest
from wharfinger.offline.output.folder import INDEX, FolderError, file_of, write_folder
from wharfinger.offline.store.identity import object_id
from wharfinger.runtime.fixpoint.model import Id

OBJECT: JsonObject = {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}}
MADE = (Manifest(object_id(OBJECT), OBJECT),)


def test_each_producer_has_a_file_and_old_files_are_deleted(tmp_path: Path) -> None:
    one, two = flux_id("HelmRelease", "web", "apps"), flux_id("Kustomization", "apps")
    assert write_folder(tmp_path / "out", {one: MADE, two: MADE}) == (
        "apps/helmrelease-web.yaml",
        "flux-system/kustomization-apps.yaml",
    )
    write_folder(tmp_path / "out", {one: MADE})
    assert not (tmp_path / "out" / "flux-system" / "kustomization-apps.yaml").exists()
    assert (tmp_path / "out" / "apps" / "helmrelease-web.yaml").read_text().startswith("---\napiVersion: v1\n")


def test_a_folder_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    with pytest.raises(FolderError, match="choose an empty folder"):
        write_folder(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["precious.txt"]


def test_an_index_entry_outside_of_the_folder_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("x")
    out = tmp_path / "out"
    out.mkdir()
    (out / INDEX).write_text("../precious.txt\n")
    write_folder(out, {})
    assert (tmp_path / "precious.txt").exists()


def test_file_names_contain_only_plain_characters() -> None:
    assert file_of(Id("Files", "", "a/b c.yaml")) == "files-a-b-c.yaml.yaml"


@pytest.mark.parametrize("namespace", ["../../away", "/tmp/away", "..", "a/b"])
def test_a_hostile_namespace_does_not_leave_the_folder(tmp_path: Path, namespace: str) -> None:
    out = tmp_path / "deep" / "out"
    (file,) = write_folder(out, {flux_id("Kustomization", "web", namespace): MADE})
    assert (out / file).resolve().is_relative_to(out)
    assert {path.name for path in tmp_path.iterdir()} == {"deep"}


def test_a_link_in_the_folder_is_not_followed(tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_folder(out, {})
    (tmp_path / "elsewhere").mkdir()
    (out / "apps").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FolderError, match="remove the link"):
        write_folder(out, {flux_id("HelmRelease", "web", "apps"): MADE})
    assert not any((tmp_path / "elsewhere").iterdir())
