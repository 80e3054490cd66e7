"""The readers of Chart.yaml and the packing of folders, compared with the real helm."""

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.packages.support.charts import WEB_SERVICE, WEB_VERSION, chart, helm, write
from tests.scale import scaled
from wharfinger.formats.yaml.writer import write_yaml
from wharfinger.packages.charts.chart import (
    MAX_CHART_FILE,
    ChartDependency,
    pack_chart,
    pack_folder,
    read_chart,
    read_chart_file,
    synthetic_chart,
)
from wharfinger.packages.errors import ArtifactError, PackageError

WHERE = Path("web")


def contents(archive: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as opened:
        for member in opened:
            file = opened.extractfile(member)
            assert file is not None
            found[member.name] = file.read()
    return found


def test_the_example_chart_is_read() -> None:
    found = read_chart(WEB_SERVICE)
    assert (found.name, found.app_version, found.type) == ("web-service", "1.27", "application")
    assert found.metadata["keywords"] == ["web", "example"]
    assert found.dependencies == ()


def test_all_fields_of_a_chart_file_are_read() -> None:
    text = b"""apiVersion: v1
name: Web.old_1
version: v1.2
appVersion: 1.5
type: library
dependencies:
- {name: db, version: ">1", repository: "oci://registry.example/charts", alias: main, condition: db.enabled}
- {name: cache}
"""
    found = read_chart_file(text, WHERE)
    assert (found.api_version, found.name, found.version, found.app_version, found.type) == (
        "v1",
        "Web.old_1",
        "v1.2",
        "1.5",
        "library",
    )
    assert found.dependencies == (
        ChartDependency("db", ">1", "oci://registry.example/charts", "main", "db.enabled"),
        ChartDependency("cache", "", "", "", ""),
    )


@pytest.mark.parametrize("version", ["1.2.3", "1", "v2", "1.2", "0.0.0-0", "1.2.3-a.b-c.1+d.e", "10.20.30"])
def test_versions_accepted_by_helm_are_accepted(version: str) -> None:
    assert read_chart_file(f"apiVersion: v2\nname: a\nversion: '{version}'\n".encode(), WHERE).version == version


def test_a_synthetic_chart_file_can_be_read() -> None:
    for app_version in ("v1.2.3", ""):
        made = synthetic_chart(WHERE, "web-shop", app_version)
        assert (made.name, made.version, made.app_version) == ("web-shop", "0.2.0", app_version)
        assert read_chart_file(write_yaml(made.metadata).encode(), WHERE) == made


HEAD = "apiVersion: v2\nname: web\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Chart.yaml: expected an object, found null"),
        ("[]", "expected an object"),
        ("a: [", "Chart.yaml.* line"),
        ("apiVersion: v2\nversion: 1.0.0", "name: required"),
        (HEAD, "version: required"),
        (HEAD + "version: one", "line 3: version: 'one' is not a valid semantic version"),
        (HEAD + "version: [1.0]", "line 3: version: expected a string, found a list"),
        (HEAD + "version: 1.0.0-01", "not a valid semantic version"),
        (HEAD + "version: 18446744073709551616.0.0", "not a valid semantic version"),
        (HEAD + "version: 1.0.0.0", "not a valid semantic version"),
        (HEAD + "version: 1.0.0-", "not a valid semantic version"),
        (HEAD + "version: '" + "1" * 300 + "'", "not a valid semantic version"),
        ("apiVersion: v2\nversion: 1.0.0\nname: ../web", "line 3: name: '../web' is not a valid chart name"),
        (HEAD + "version: 1.0.0\ntype: app", "line 4: type: 'app'"),
        (HEAD + "version: 1.0.0\ndependencies: {}", "line 4: dependencies: expected a list"),
        (
            HEAD + "version: 1.0.0\ndependencies: [{name: a, alias: a b}]",
            "line 4: dependencies: a: alias: 'a b' has other",
        ),
        (HEAD + "version: 1.0.0\ndependencies: [{name: a}, {name: a}]", "line 4: dependencies: 'a' is listed twice"),
        (HEAD + "version: 1.0.0\ndependencies: [null]", "line 4: dependencies: expected an object, found null"),
        (
            HEAD + "version: 1.0.0\nmaintainers: [{name: [a]}]",
            "line 4: maintainers.name: expected a string, found a list",
        ),
        (HEAD + "version: 1.0.0\ndeprecated: 1", "line 4: deprecated: expected true or false, found an integer"),
        (HEAD + "version: 1.0.0\ndependencies: [a]", "line 4: dependencies: expected an object"),
        ("#" * (MAX_CHART_FILE + 1), "more than"),
    ],
)
def test_invalid_chart_files_are_refused_with_file_and_line(text: str, why: str) -> None:
    with pytest.raises(ArtifactError, match=why) as caught:
        read_chart_file(text.encode(), WHERE)
    assert str(caught.value).count("web/Chart.yaml") == 1


@given(st.binary(max_size=100) | st.text(alphabet="apiVersionme: v12.0\n-[]{}", max_size=100).map(str.encode))
def test_arbitrary_bytes_are_refused_with_a_package_error(data: bytes) -> None:
    with pytest.raises(PackageError):
        read_chart_file(data, WHERE)


def test_a_folder_without_a_chart_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="expected a chart's folder"):
        read_chart(tmp_path)
    (tmp_path / "Chart.yaml").mkdir()
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_chart(tmp_path)


def test_packing_is_deterministic(tmp_path: Path) -> None:
    files = {"b/x.txt": "1", "a.txt": "2", "values.yaml": "", "ünï.txt": "3", "l" * 150: "4"}
    one = chart(tmp_path / "one", files=files)
    other = chart(tmp_path / "other", files=dict(reversed(files.items())))
    for path in other.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700 if path.is_dir() else 0o600)
    (other / "empty").mkdir()
    assert pack_chart(one) == pack_chart(other)
    (other / "a.txt").chmod(0o700)
    assert pack_chart(one) != pack_chart(other)


def test_the_archive_contains_all_files_with_fixed_metadata(tmp_path: Path) -> None:
    archive = pack_chart(chart(tmp_path, files={"run.sh": "#!"}))
    assert list(contents(archive)) == ["web/Chart.yaml", "web/run.sh", "web/templates/config.yaml"]
    with tarfile.open(fileobj=io.BytesIO(archive)) as opened:
        assert {(member.mtime, member.mode, member.uid, member.uname) for member in opened} == {(0, 0o644, 0, "")}
    assert archive[4:8] == bytes(4)


def test_ignored_files_are_not_packed(tmp_path: Path) -> None:
    files = {
        ".helmignore": "\ufeff*.swp\n/secret/\nChart.yaml\n",
        "x.swp": "",
        "secret/a": "",
        "deep/secret/b": "",
        "templates/.x": "",
    }
    found = contents(pack_chart(chart(tmp_path, files=files)))
    assert sorted(found) == ["web/.helmignore", "web/Chart.yaml", "web/deep/secret/b", "web/templates/config.yaml"]


def test_a_package_archive_includes_files_hidden_from_helm(tmp_path: Path) -> None:
    own = [
        "crds/a.yaml",
        "enabled",
        "hooks/a.sh",
        "hooks/lib/b.sh",
        "openapi/values.yaml",
        "package.yaml",
        "values.yaml",
    ]
    ignored = "crds\nenabled\nhooks/\nopenapi\npackage.yaml\nvalues.yaml\n*.md\n*.sh\n"
    folder = write(tmp_path, {**dict.fromkeys(own, "x"), ".helmignore": ignored, "README.md": "", "bin/tool.sh": ""})
    assert sorted(contents(pack_folder(folder))) == [".helmignore", *own]


def test_links_inside_are_followed_and_links_outside_are_refused(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", files={"files/a.txt": "A"})
    (folder / "link.txt").symlink_to("files/a.txt")
    (folder / "more").symlink_to("files")
    found = contents(pack_chart(folder))
    assert found["web/link.txt"] == found["web/more/a.txt"] == b"A"
    write(tmp_path, {"secret.txt": "S"})
    for target in ("../secret.txt", str(tmp_path / "secret.txt"), "/etc/hostname", ".."):
        (folder / "out").symlink_to(target)
        with pytest.raises(ArtifactError, match="out: a link that leaves the chart's folder"):
            pack_chart(folder)
        (folder / "out").unlink()
    (folder / "out").symlink_to("absent")
    with pytest.raises(ArtifactError, match="a broken link"):
        pack_chart(folder)
    write(folder, {".helmignore": "out\n"})
    pack_chart(folder)


def test_circular_and_broken_links_and_special_files_are_refused(tmp_path: Path) -> None:
    folder = chart(tmp_path)
    (folder / "files").mkdir()
    (folder / "files" / "up").symlink_to("..")
    with pytest.raises(ArtifactError, match="a link to a folder that contains it"):
        pack_chart(folder)
    (folder / "files" / "up").unlink()
    (folder / "self").symlink_to("self")
    with pytest.raises(ArtifactError, match="a broken link"):
        pack_chart(folder)
    (folder / "self").unlink()
    (folder / "far").symlink_to("x" * 300)
    with pytest.raises(ArtifactError, match="far: cannot be read: File name too long"):
        pack_chart(folder)
    (folder / "far").unlink()
    os.mkfifo(folder / "pipe")
    with pytest.raises(ArtifactError, match="neither file nor folder"):
        pack_chart(folder)


def test_archives_are_limited_in_files_size_and_depth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = chart(tmp_path, files={"a/b/c/d": "x" * 1000})
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_FILES", 2)
    with pytest.raises(ArtifactError, match="more than 2 files"):
        pack_chart(folder)
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_FILES", 3)
    pack_chart(folder)
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_TOTAL", 1000)
    with pytest.raises(ArtifactError, match="too big"):
        pack_chart(folder)
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_TOTAL", 10_000)
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_FOLDERS_DEEP", 3)
    with pytest.raises(ArtifactError, match="inside each other"):
        pack_chart(folder)
    write(folder, {".helmignore": "#" * 100_000})
    with pytest.raises(ArtifactError, match="too big"):
        pack_chart(folder)
    (folder / ".helmignore").write_bytes(b"\xff")
    with pytest.raises(ArtifactError, match="not UTF-8"):
        pack_chart(folder)


def test_a_file_name_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    folder = chart(tmp_path)
    (folder / os.fsdecode(b"\xff")).touch()
    with pytest.raises(ArtifactError, match="is not UTF-8"):
        pack_chart(folder)


def test_an_unreadable_folder_is_refused(tmp_path: Path) -> None:
    folder = chart(tmp_path / "x")
    (folder / "gone").mkdir(mode=0o000)
    if os.geteuid() == 0:
        assert contents(pack_chart(folder))
    else:
        with pytest.raises(ArtifactError, match="cannot be read"):
            pack_chart(folder)


@pytest.mark.parametrize("program", ["helm", "helm3"])
def test_helm_reads_packed_charts(program: str, tmp_path: Path) -> None:
    archive = tmp_path / f"web-service-{WEB_VERSION}.tgz"
    archive.write_bytes(pack_chart(WEB_SERVICE))
    assert f"version: {WEB_VERSION}" in helm(program, "show", "chart", str(archive), home=tmp_path)
    from_archive = helm(program, "template", "web", str(archive), home=tmp_path)
    assert from_archive == helm(program, "template", "web", str(WEB_SERVICE), home=tmp_path)


@pytest.mark.parametrize("program", ["helm", "helm3"])
def test_ignored_files_are_those_that_helm_ignores(program: str, tmp_path: Path) -> None:
    """A template prints the names of all files that Helm reads. They must equal the names of the packed files."""
    rules = ["*.swp", "/top.txt", "docs/", "files/*.md", "[ab].txt", "!*.t?t\n"]
    names = [
        "x.swp",
        "d/y.swp",
        "top.txt",
        "d/top.txt",
        "docs/a.txt",
        "d/docs/a.txt",
        "files/a.md",
        "files/d/b.md",
        "a.txt",
        "c.txt",
    ]
    template = """apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data:
{{- range $path, $_ := .Files.Glob "**" }}
  f{{ $path | sha256sum }}: {{ $path | quote }}
{{- end }}
"""
    for count in range(1, len(rules)):
        folder = chart(
            tmp_path / str(count),
            files={
                ".helmignore": "\n".join(rules[:count]) + "\n",
                "templates/list.yaml": template,
                "values.yaml": "",
                **dict.fromkeys(names, "x"),
            },
        )
        printed = helm(program, "template", "x", str(folder), "--show-only=templates/list.yaml", home=tmp_path)
        packed = contents(pack_chart(folder))
        assert [name for name in names if f'"{name}"' in printed] == [name for name in names if f"web/{name}" in packed]


@pytest.mark.parametrize("trial", range(scaled(20, 2)))
def test_packed_files_have_their_content(trial: int, tmp_path: Path) -> None:
    files = {f"f{number}/{trial}.txt": "x" * number * trial for number in range(20)}
    archive = pack_chart(chart(tmp_path, files=files))
    found = contents(archive)
    assert all(found[f"web/{name}"] == text.encode() for name, text in files.items())
    assert gzip.decompress(archive)


def test_links_that_multiply_paths_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty levels of folders with two links each make a billion paths, so the listing must stop at its limit."""
    chart(tmp_path, files={"d0/x.txt": "x"})
    for number in range(1, 31):
        folder = tmp_path / f"d{number}"
        folder.mkdir()
        (folder / "a").symlink_to(f"../d{number - 1}")
        (folder / "b").symlink_to(f"../d{number - 1}")
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_PATHS", 2_000)

    with pytest.raises(ArtifactError, match="more than 2000 paths if links to folders are followed"):
        pack_chart(tmp_path)
    monkeypatch.setattr("wharfinger.packages.charts.chart.MAX_FILES", 5)
    with pytest.raises(ArtifactError, match="more than 5 files"):
        pack_folder(tmp_path)
    (tmp_path / ".helmignore").write_text("d*/\n")
    assert pack_chart(tmp_path)
