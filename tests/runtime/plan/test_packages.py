"""Definitions from a local folder, loaded as the daemon would load them."""

from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import WEB_SERVICE, WEB_VERSION
from tests.runtime.support.planned import write_package
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.errors import AddressError, ArtifactError, ArtifactNotFoundError
from wharfinger.packages.registry.folder_registry import FolderRegistry
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.runtime.plan.packages import open_package_folder


async def pushed(source: Path, layouts: Path, name: str) -> None:
    package = await load_package(source, name)
    await push_package(package, OciLayout(layouts), name, package.tag)


async def test_package_folders_are_read_in_place(tmp_path: Path) -> None:
    write_package(tmp_path, "web", "1.2.0", "Application", requirements={"modules": {"ingress": ">=1"}})
    async with open_package_folder(tmp_path) as packages:
        found = await packages.definition("web", "1.2.0")
    assert (found.name, found.version, found.type) == ("web", "1.2.0", PackageType.APPLICATION)
    assert [each.name for each in found.requirements.mandatory] == ["ingress"]


async def test_a_layout_has_several_versions(tmp_path: Path) -> None:
    for version in ("1.0.0", "2.0.0"):
        source = write_package(tmp_path / version, "web", version, "Application")
        await pushed(source, tmp_path / "layouts", "web")
    async with open_package_folder(tmp_path / "layouts") as packages:
        for version in ("1.0.0", "2.0.0", "1.0.0"):
            assert (await packages.definition("web", version)).version == version
        with pytest.raises(ArtifactNotFoundError, match=r"web:3\.0\.0: not found"):
            await packages.definition("web", "3.0.0")


async def test_versions_of_a_layout_are_listed(tmp_path: Path) -> None:
    for version in ("1.0.0", "2.0.0"):
        needs: JsonObject = {"modules": {"ingress": f">={version}"}}
        source = write_package(tmp_path / version, "web", version, "Application", requirements=needs)
        await pushed(source, tmp_path / "layouts", "web")
    write_package(tmp_path / "layouts", "shop")
    (tmp_path / "layouts" / "broken").mkdir()
    (tmp_path / "layouts" / "broken" / "oci-layout").write_text("{")
    async with open_package_folder(tmp_path / "layouts") as packages:
        index = await packages.index("web")
        assert index is not None
        assert index.versions == ("2.0.0", "1.0.0")
        assert index.details["1.0.0"].requirements == {"modules": {"ingress": ">=1.0.0"}}
        for name in ("shop", "broken", "../web"):
            assert await packages.index(name) is None


async def test_package_folders_and_layouts_may_be_in_one_folder(tmp_path: Path) -> None:
    write_package(tmp_path, "web", "1.2.0")
    await pushed(WEB_SERVICE, tmp_path, "web-service")
    async with open_package_folder(tmp_path) as packages, trio.open_nursery() as nursery:
        nursery.start_soon(packages.definition, "web", "1.2.0")
        nursery.start_soon(packages.definition, "web-service", WEB_VERSION)


async def test_unpacked_packages_are_deleted_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "tmp"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    await pushed(WEB_SERVICE, tmp_path / "layouts", "web-service")
    async with open_package_folder(tmp_path / "layouts") as packages:
        await packages.definition("web-service", WEB_VERSION)
        assert list(scratch.iterdir()) != []
    assert list(scratch.iterdir()) == []


async def test_a_folder_without_a_version_has_any_version(tmp_path: Path) -> None:
    folder = tmp_path / "010-web"
    (folder / "templates").mkdir(parents=True)
    (folder / "openapi").mkdir()
    async with open_package_folder(tmp_path) as packages:
        found = await packages.definition("010-web", "dev")
    assert (found.name, found.version, found.weight) == ("web", "dev", 10)


@pytest.mark.parametrize("asked", ["1.2.1", "v1.2.0", "latest"])
async def test_a_wrong_version_is_refused_with_the_daemons_message(tmp_path: Path, asked: str) -> None:
    write_package(tmp_path, "web", "1.2.0")
    with pytest.raises(ArtifactNotFoundError) as theirs:
        await FolderRegistry(tmp_path).resolve("web", asked)
    async with open_package_folder(tmp_path) as packages:
        with pytest.raises(ArtifactNotFoundError) as ours:
            await packages.definition("web", asked)
    assert str(ours.value) == str(theirs.value)


async def test_missing_and_invalid_packages_are_reported_with_their_place(tmp_path: Path) -> None:
    write_package(tmp_path, "bad", "1.0.0", requirments={})
    async with open_package_folder(tmp_path) as packages:
        with pytest.raises(ArtifactNotFoundError, match="gone: not found; there is no such folder"):
            await packages.definition("gone", "1.0.0")
        with pytest.raises(ArtifactError, match=r"bad: package\.yaml: .*requirments"):
            await packages.definition("bad", "1.0.0")
        with pytest.raises(AddressError, match="not a valid package name"):
            await packages.definition("../etc", "1.0.0")
