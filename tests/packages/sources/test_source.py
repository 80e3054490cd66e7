"""Sources opened as the daemon opens them: folders, and a registry with a login and a private certificate authority."""

from dataclasses import replace
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import chart
from tests.packages.support.registry_contract import push
from tests.packages.support.signing import POLICY, sign
from tests.registry_server import PASSWORD, USER, make_certificate, open_registry_server
from wharfinger.packages.errors import AddressError, ArtifactNotFoundError, RegistryError, TrustError
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.sources.source import (
    FolderSource,
    LayoutSource,
    RegistrySource,
    Source,
    open_source,
    source_text,
    with_expected_version,
    without_policy,
)

LOGIN = Credentials(USER, PASSWORD)


async def test_a_registry_source_uses_its_login_and_authority(tmp_path: Path) -> None:
    certificate = await trio.to_thread.run_sync(make_certificate, tmp_path / "tls")
    ca = certificate.file.read_text()
    async with open_registry_server(tmp_path, with_password=True, certificate=certificate) as address:
        async with open_registry(address, scheme="https", credentials=LOGIN, ca=ca) as registry:
            pushed = await push(registry, "1.0.0", repository="packages/team/web")
        there = RepositoryAddress(address, "packages/team", "https")
        async with open_source(RegistrySource(there, LOGIN, ca), "web") as (opened, path):
            assert path == "packages/team/web"
            assert await opened.resolve(path, "1.0.0") == pushed
        async with open_source(RegistrySource(there, None, ca), "web") as (opened, path):
            with pytest.raises(RegistryError, match="check user name and password"):
                await opened.resolve(path, "1.0.0")
        async with open_source(RegistrySource(there, LOGIN), "web") as (opened, path):
            with pytest.raises(RegistryError, match="certificate is not trusted"):
                await opened.resolve(path, "1.0.0")


async def test_a_layout_source_is_read(tmp_path: Path) -> None:
    pushed = await push(OciLayout(tmp_path), "1.0.0", repository="web")
    async with open_source(LayoutSource(tmp_path), "web") as (opened, path):
        assert path == "web"
        assert await opened.resolve(path, "1.0.0") == pushed


async def test_a_folder_source_is_read(tmp_path: Path) -> None:
    chart(tmp_path / "web", version="1.0.0")
    async with open_source(FolderSource(tmp_path), "web") as (opened, path):
        assert (await opened.manifest(path, (await opened.resolve(path, "1.0.0")).digest)).layers
        with pytest.raises(ArtifactNotFoundError):
            await opened.resolve(path, "2.0.0")


SOURCES: list[Source] = [
    LayoutSource(Path("/packages")),
    FolderSource(Path("/packages")),
    RegistrySource(RepositoryAddress(RegistryAddress("a.example"), "packages")),
]


@pytest.mark.parametrize("name", ["", "..", "../web", "/etc", "Web", "a b", "web:1", "web@x", "a//b", "a" * 300])
@pytest.mark.parametrize("source", SOURCES, ids=source_text)
async def test_invalid_package_names_are_refused(name: str, source: Source) -> None:
    with pytest.raises(AddressError):
        async with open_source(source, name):
            raise AssertionError("must not open")


def test_a_policy_is_part_of_its_source() -> None:
    layout = LayoutSource(Path("/packages"), POLICY)
    assert with_expected_version(layout, "1.0.0") == LayoutSource(Path("/packages"), replace(POLICY, version="1.0.0"))
    assert without_policy(layout) == LayoutSource(Path("/packages"))
    assert source_text(with_expected_version(layout, "1.0.0")) == source_text(layout)
    assert source_text(layout) != source_text(without_policy(layout))
    for source in SOURCES:
        assert with_expected_version(source, "1.0.0") is source
        assert without_policy(source) == source


async def test_a_source_with_a_policy_returns_only_signed_packages(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    pushed, other = await push(layout, "1.0.0", repository="web"), await push(layout, "2.0.0", b"two", repository="web")
    await sign(layout, "web", pushed.digest)
    async with open_source(LayoutSource(tmp_path, POLICY), "web") as (opened, path):
        assert await opened.resolve(path, "1.0.0") == pushed
        with pytest.raises(TrustError, match="expected a signature, found none"):
            await opened.resolve(path, "2.0.0")
    async with open_source(without_policy(LayoutSource(tmp_path, POLICY)), "web") as (opened, path):
        assert await opened.resolve(path, "2.0.0") == other


def test_texts_of_sources_are_distinct_and_contain_no_secrets() -> None:
    registry = SOURCES[2]
    assert isinstance(registry, RegistrySource)
    secret = RegistrySource(registry.address, Credentials("porter", "s3cret"), "PEM")
    assert source_text(secret) == source_text(registry) == "https://a.example/packages"
    assert "s3cret" not in repr(secret)
    assert [source_text(source) for source in SOURCES[:2]] == ["oci-layout:/packages", "folder:/packages"]
