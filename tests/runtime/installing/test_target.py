"""The argument of `wharfinger install`: a folder, an archive, or a reference to a package."""

import os
from pathlib import Path

import pytest

from tests.packages.support.charts import chart, manifest, write
from wharfinger.packages.charts.chart import pack_chart
from wharfinger.packages.errors import PackageError
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.sources.archives import MAX_CARRIED, pack_files
from wharfinger.runtime.installing.target import ANY, Carried, InRegistry, InRepository, Target, read_target

TEAM = RepositoryAddress(RegistryAddress("r.example", 5000), "team")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("oci://r.example:5000/team/web:1.0.0", InRegistry(TEAM, "web", "1.0.0")),
        ("oci://r.example:5000/team/web", InRegistry(TEAM, "web", "", ANY)),
        ("web", InRepository("web", "", ANY)),
        ("web@1.2.3", InRepository("web", "1.2.3")),
        ("web@v1.2.3-rc.1", InRepository("web", "v1.2.3-rc.1")),
        ("web@^1", InRepository("web", "", "^1")),
        ("web@1.2", InRepository("web", "", "1.2")),
        ("web@latest", InRepository("web", "latest")),
    ],
)
def test_folders_archives_and_references_are_recognized(
    text: str, target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert read_target(text) == target


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "'': expected a folder, such as ./chart"),
        ("Web", "expected a folder, such as ./chart, oci://HOST/PATH/NAME"),
        ("web@", "expected a folder"),
        ("web@^1 nonsense", "web@"),
        ("oci://r.example/web:1", "with a PATH between the host and the name"),
        (f"oci://r.example/a/web@sha256:{'1' * 64}", "expected a tag, found a digest"),
        ("./absent", "absent: cannot be read"),
    ],
)
def test_invalid_targets_are_refused(text: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PackageError, match=why):
        read_target(text)


def carried(path: Path) -> Carried:
    found = read_target(str(path))
    assert isinstance(found, Carried)
    return found


def test_a_local_folder_or_archive_is_packed(tmp_path: Path) -> None:
    folder = chart(tmp_path / "chart", "web", "1.2.3")
    archive = tmp_path / "web-1.2.3.tgz"
    archive.write_bytes(pack_chart(folder))
    for path in (folder, archive):
        found = carried(path)
        assert (found.name, found.version) == ("web", "1.2.3")
        assert pack_files(found.data, found.name, found.version, "").version == "1.2.3"
    assert carried(folder) == carried(folder)
    plain = carried(write(tmp_path / "plain", {"a.yaml": manifest("a")}))
    assert (plain.name, plain.version) == ("plain", f"0.0.0-sha.{plain.digest.hex[:12]}")


def test_folders_that_cannot_be_installed_are_refused(tmp_path: Path) -> None:
    module = write(tmp_path / "ingress", {"package.yaml": "type: Module\n", "hooks/a.sh": ""})
    with pytest.raises(
        PackageError,
        match=r"ingress: the package is a Module, but this command installs Applications; create a Module resource",
    ):
        read_target(str(module))
    with pytest.raises(PackageError, match=r"expected package\.yaml"):
        read_target(str(write(tmp_path / "empty", {"README": ""})))
    large = chart(tmp_path / "large", "web", "1.0.0")
    (large / "noise").write_bytes(os.urandom(MAX_CARRIED + 1))
    with pytest.raises(PackageError, match="push the package to a registry with `wharfinger package push`"):
        read_target(str(large))
