"""Copy operations of ArtifactGenerators."""

import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.offline.support import write_tree
from wharfinger.formats.json.value import JsonObject, JsonValue
from wharfinger.offline.building.artifact_copies import CopyError, copy_all, read_copies

FILES = {
    "apps/base/web.yaml": "base: 1\n",
    "apps/base/sub/deep.yaml": "deep: 1\n",
    "apps/base/.hidden": "hidden",
    "apps/production/web.yaml": "production: 1\n",
    "apps/README.md": "text",
    "values.yaml": "a: {b: 1, c: [1, 2]}\nkept: true\n",
    "more.yaml": "a: {c: [3]}\n---\na: {d: 4}\n",
}


def copied(tmp_path: Path, *operations: JsonObject, files: Mapping[str, str] = FILES) -> dict[str, str]:
    """Carry out the copy operations, and return the files of the artifact."""
    source, into = write_tree(tmp_path / "source", files), tmp_path / "artifact"
    listed: list[JsonValue] = [*operations]
    copy_all(read_copies({"copy": listed}, "spec.artifacts[0]"), {"repo": source}, into)
    return {path.relative_to(into).as_posix(): path.read_text() for path in into.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("source", "to", "found"),
    [
        ("apps/**", "", ["README.md", "base/.hidden", "base/sub/deep.yaml", "base/web.yaml", "production/web.yaml"]),
        ("apps/base/**", "base/", ["base/.hidden", "base/sub/deep.yaml", "base/web.yaml"]),
        ("apps/base/", "x/", ["x/base/.hidden", "x/base/sub/deep.yaml", "x/base/web.yaml"]),
        ("apps/base", "x", ["x/base/.hidden", "x/base/sub/deep.yaml", "x/base/web.yaml"]),
        ("values.yaml", "x/", ["x/values.yaml"]),
        ("values.yaml", "x/y.yaml", ["x/y.yaml"]),
        ("values.yaml", "", ["values.yaml"]),
        ("*.yaml", "x", ["x/more.yaml", "x/values.yaml"]),
        ("apps/*/web.yaml", "", ["apps/base/web.yaml", "apps/production/web.yaml"]),
        ("apps/prod*", "", ["apps/production/web.yaml"]),
    ],
)
def test_patterns_determine_the_copied_files_and_their_targets(
    source: str, to: str, found: list[str], tmp_path: Path
) -> None:
    assert sorted(copied(tmp_path, {"from": f"@repo/{source}", "to": f"@artifact/{to}"})) == found


def test_a_file_is_copied_into_an_existing_folder(tmp_path: Path) -> None:
    found = copied(
        tmp_path,
        {"from": "@repo/apps/base/**", "to": "@artifact/x/"},
        {"from": "@repo/values.yaml", "to": "@artifact/x"},
    )
    assert "x/values.yaml" in found


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (["*.md"], ["base/.hidden", "base/sub/deep.yaml", "base/web.yaml", "production/web.yaml"]),
        (["**/sub/**"], ["README.md", "base/.hidden", "base/web.yaml", "production/web.yaml"]),
        (["base/**"], ["README.md", "production/web.yaml"]),
        (["apps/production"], ["README.md", "base/.hidden", "base/sub/deep.yaml", "base/web.yaml"]),
        (["web.yaml", "README.*"], ["base/.hidden", "base/sub/deep.yaml"]),
    ],
)
def test_excluded_files_are_not_copied(exclude: list[str], left: list[str], tmp_path: Path) -> None:
    asked: JsonObject = {"from": "@repo/apps/**", "to": "@artifact/", "exclude": [*exclude]}
    assert sorted(copied(tmp_path, asked)) == left


def test_later_copies_overwrite_or_merge_with_earlier_files(tmp_path: Path) -> None:
    first: JsonObject = {"from": "@repo/values.yaml", "to": "@artifact/v.yaml"}
    second: JsonObject = {"from": "@repo/more.yaml", "to": "@artifact/v.yaml"}
    assert copied(tmp_path / "one", first, second) == {"v.yaml": FILES["more.yaml"]}
    merged = copied(tmp_path / "two", first, {**second, "strategy": "Merge"})
    assert merged == {"v.yaml": "a:\n  b: 1\n  c:\n  - 3\n  d: 4\nkept: true\n"}


def test_archives_are_unpacked(tmp_path: Path) -> None:
    inner = write_tree(tmp_path / "inner", {"web/Chart.yaml": "name: web\n"})
    charts = tmp_path / "source" / "charts" / "deep"
    charts.mkdir(parents=True)
    with tarfile.open(charts / "web-1.0.0.tgz", "w:gz") as archive:
        archive.add(inner / "web", "web")
    one: JsonObject = {"from": "@repo/charts/deep/web-1.0.0.tgz", "to": "@artifact/x/", "strategy": "Extract"}
    assert copied(tmp_path, one) == {"x/web/Chart.yaml": "name: web\n"}
    many: JsonObject = {"from": "@repo/charts/**/*.tgz", "to": "@artifact/", "strategy": "Extract"}
    copy_all(read_copies({"copy": [many]}, "x"), {"repo": tmp_path / "source"}, tmp_path / "many")
    assert (tmp_path / "many" / "web" / "Chart.yaml").is_file()


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        ({"from": "@other/x", "to": "@artifact/"}, "copy[0].from: no source has the alias 'other'"),
        ({"from": "@repo/nothing", "to": "@artifact/"}, "copy[0].from: the source has no 'nothing'"),
        ({"from": "@repo/nothing/**", "to": "@artifact/"}, "has nothing that matches 'nothing/**'"),
        ({"from": "@repo/apps/**", "to": "@artifact/", "exclude": ["*"]}, "excludes everything that matches"),
        ({"from": "repo/apps", "to": "@artifact/"}, "expected @ALIAS/PATH, found 'repo/apps'"),
        ({"from": "@repo/apps", "to": "apps"}, "expected @artifact/PATH, found 'apps'"),
        ({"from": "@repo/apps", "to": "@artifact/../x"}, "copy[0].to: ../x"),
        ({"from": "@repo/../x", "to": "@artifact/"}, "copy[0].from: ../x leads out of the source"),
        ({"from": "@repo/link", "to": "@artifact/"}, "copy[0].from: link leads out of the source"),
        ({"from": "@repo/linked/**", "to": "@artifact/"}, "linked/inner is a link to a folder"),
        (
            {"from": "@repo/apps", "to": "@artifact/", "strategy": "Extract"},
            "Extract needs an archive, and apps is a folder",
        ),
        (
            {"from": "@repo/values.yaml", "to": "@artifact/", "strategy": "Extract"},
            "Extract needs an archive (.tar.gz or .tgz)",
        ),
        ({"from": "@repo/values.yaml", "to": "@artifact/", "strategy": "Move"}, "expected Overwrite, Merge or Extract"),
    ],
)
def test_invalid_copy_operations_are_refused(operation: JsonObject, told: str, tmp_path: Path) -> None:
    source = write_tree(tmp_path / "source", {**FILES, "linked/x/a.yaml": "a: 1"})
    (source / "link").symlink_to("/etc")
    (source / "linked" / "x" / "inner").symlink_to(source / "apps")
    write_tree(tmp_path, {"x": "outside"})
    if "linked" in told:
        told = told.replace("linked/inner", "linked/x/inner")
    with pytest.raises(CopyError) as caught:
        copied(tmp_path, operation)
    assert told in str(caught.value)
    assert not (tmp_path / "artifact" / "passwd").exists()


def test_an_artifact_without_operations_is_refused() -> None:
    with pytest.raises(CopyError, match="needs at least one operation"):
        read_copies({}, "spec.artifacts[0]")
