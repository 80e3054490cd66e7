"""Folders of plain manifests: the files that are read, and the errors of invalid folders."""

from pathlib import Path

import pytest

from tests.packages.support.charts import manifest, write
from wharfinger.packages.definition.definition import Layout, read_definition
from wharfinger.packages.definition.manifest_folder import is_kustomization, is_manifest_folder, read_manifests
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.package_files import open_files

A, B = manifest("a"), manifest("b")
LIST = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: c}}\n"


def test_all_manifests_below_a_folder_are_read(tmp_path: Path) -> None:
    files = open_files(
        write(tmp_path, {"b.yaml": f"{B}---\n{LIST}", "sub/a.yml": A, "notes.json": "[]", ".ci/x.yaml": "no"}), "web"
    )
    assert is_manifest_folder(files)
    assert not is_kustomization(files)
    found = [(name, str(each["kind"]), each["metadata"]) for name, each in read_manifests(files)]
    assert found == [
        ("b.yaml", "ConfigMap", {"name": "b"}),
        ("b.yaml", "ConfigMap", {"name": "c"}),
        ("sub/a.yml", "ConfigMap", {"name": "a"}),
    ]


@pytest.mark.parametrize(
    ("files", "why"),
    [
        (
            {"a.yaml": "kind: ConfigMap\n"},
            r"^a.yaml: expected an object with apiVersion, kind and metadata.name; correct it, or",
        ),
        ({"a.yaml": "- 1\n"}, r"^a.yaml: expected an object"),
        ({"a.yaml": "a: [\n"}, r"^a.yaml: line \d"),
        ({"a.yaml": A, "b.yaml": A}, r"^b.yaml: ConfigMap a is also in a.yaml; remove one of them$"),
        (
            {"a.yaml": A, "x/Chart.yaml": ""},
            r"^x: expected only manifests, found Chart.yaml; make this folder a package of",
        ),
        ({"a.yaml": A, "x/kustomization.yaml": ""}, r"^x: expected only manifests, found kustomization.yaml"),
        (
            {"a.yaml": A, "version.json": '{"version": "2.0.0"}'},
            r"^version.json: version: 2.0.0 was published as 1.0.0",
        ),
        ({"sub/a.yaml": A}, "expected package.yaml"),
    ],
)
def test_errors_of_a_manifest_folder_name_the_file(tmp_path: Path, files: dict[str, str], why: str) -> None:
    with pytest.raises(ArtifactError, match=why):
        read_definition(write(tmp_path, files), name="web", version="1.0.0")


def test_a_link_out_of_the_package_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret.yaml").write_text(A)
    (write(tmp_path / "web", {"a.yaml": B}) / "z.yaml").symlink_to(tmp_path / "secret.yaml")
    with pytest.raises(ArtifactError, match=r"^z.yaml: a link that leaves the package"):
        read_definition(tmp_path / "web", name="web", version="1.0.0")


@pytest.mark.parametrize("name", ["kustomization.yaml", "kustomization.yml", "Kustomization", "all.yaml"])
def test_a_manifest_folder_has_the_requested_version(tmp_path: Path, name: str) -> None:
    definition = read_definition(write(tmp_path, {name: A}), name="web", version="v1.2.3")
    assert (definition.layout, definition.name, definition.version, definition.type) == (
        Layout.MANIFESTS,
        "web",
        "v1.2.3",
        None,
    )
    assert definition.recorded_chart["version"] == "v1.2.3"
    assert (definition.hooks, definition.crds, definition.static_values) == (False, False, {})


@pytest.mark.parametrize(
    ("file", "layout"),
    [("Chart.yaml", Layout.CHART), ("package.yaml", Layout.PACKAGE), ("hooks/a.sh", Layout.MODULE_FOLDER)],
)
def test_other_layouts_win_over_a_manifest_folder(tmp_path: Path, file: str, layout: Layout) -> None:
    texts = {"Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.0.0\n", "package.yaml": "type: Application\n"}
    folder = write(tmp_path, {"a.yaml": A, "kustomization.yaml": "resources: [a.yaml]\n", file: texts.get(file, "")})
    assert read_definition(folder, name="web", version="1.0.0").layout is layout
