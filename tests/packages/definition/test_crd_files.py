"""The CustomResourceDefinitions in ``crds/``."""

from pathlib import Path

import pytest

from tests.packages.support.charts import write
from wharfinger.formats.json.value import JsonValue, find
from wharfinger.packages.definition.crd_files import read_crds
from wharfinger.packages.errors import RenderError

CRD = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: %s}\n"


def names(package: Path) -> list[JsonValue]:
    return [find(crd, "metadata", "name") for crd in read_crds(package)]


def test_all_documents_of_all_manifest_files_are_read(tmp_path: Path) -> None:
    files = {
        "crds/b.yaml": "---\n" + CRD % "b1" + "---\n# nothing\n---\n" + CRD % "b2",
        "crds/a/z.yml": CRD % "a",
        "crds/c.json": '{"apiVersion": "v1", "kind": "K", "metadata": {"name": "c"}}',
        "crds/empty.yaml": "",
        "crds/doc-ru-a.yaml": "spec: in another language",
        "crds/a/_draft.yaml": "draft",
        "crds/.hidden.yaml": "hidden",
        "crds/README.md": "text",
        "other/d.yaml": CRD % "d",
    }
    write(tmp_path / "tree", files)
    (tmp_path / "deployed").symlink_to("tree")
    assert names(tmp_path / "deployed") == ["a", "b1", "b2", "c"]


def test_a_package_without_crds_has_none(tmp_path: Path) -> None:
    assert names(write(tmp_path, {"a": ""})) == []
    assert names(write(tmp_path, {"crds": ""})) == []


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: [", r"^crds/a\.yaml: line 2, column 1: "),
        ("[]", r"^crds/a\.yaml: an object without apiVersion or kind"),
        ("apiVersion: v1", "an object without apiVersion or kind"),
        ("apiVersion: 1\nkind: K", "apiVersion: expected a string"),
    ],
)
def test_a_document_that_is_not_an_object_is_refused_with_its_file(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(RenderError, match=why) as caught:
        read_crds(write(tmp_path, {"crds/a.yaml": text}))
    assert "crds/a.yaml" in str(caught.value)
    assert not caught.value.transient


def test_links_that_leave_the_package_are_refused(tmp_path: Path) -> None:
    write(tmp_path, {"host.yaml": CRD % "host", "tree/crds/a.yaml": CRD % "a"})
    (tmp_path / "tree/crds/b.yaml").symlink_to("../../host.yaml")
    with pytest.raises(RenderError, match=r"^crds/b\.yaml: a link that leaves the package"):
        read_crds(tmp_path / "tree")
    with pytest.raises(RenderError, match="its folder is missing"):
        read_crds(tmp_path / "gone")


def test_the_size_and_number_of_crd_files_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = write(tmp_path, {f"crds/{number}.yaml": CRD % number for number in range(3)})
    monkeypatch.setattr("wharfinger.packages.definition.crd_files.MAX_TOTAL", 200)
    with pytest.raises(RenderError, match=r"^crds/: more than 200 bytes"):
        read_crds(package)
    monkeypatch.setattr("wharfinger.packages.definition.crd_files.MAX_FILES", 2)
    with pytest.raises(RenderError, match=r"^crds/: more than 2 files"):
        read_crds(package)
