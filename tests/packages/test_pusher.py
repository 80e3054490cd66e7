"""Pushed here, pulled by helm; pushed by helm, installed here: both with a real registry."""

import os
from pathlib import Path

import pytest
import trio

from tests.packages.charts import WEB_SERVICE, WEB_VERSION, chart, helm
from tests.packages.memory_registry import MemoryRegistry
from tests.registry_server import open_registry_server
from wharfinger.packages.chart import pack_chart, read_chart
from wharfinger.packages.disk_store import open_store
from wharfinger.packages.errors import AddressError, ArtifactError
from wharfinger.packages.manifest import HELM_CHART, HELM_CONFIG
from wharfinger.packages.oci_registry import open_registry
from wharfinger.packages.pusher import load_package, push_chart


async def helm_in_thread(program: str, *arguments: str, home: Path) -> str:
    return await trio.to_thread.run_sync(lambda: helm(program, *arguments, home=home))


@pytest.mark.parametrize("program", ["helm", "helm3"])
async def test_helm_pulls_what_is_pushed_here(program: str, tmp_path: Path) -> None:
    async with open_registry_server(tmp_path) as address, open_registry(address, scheme="http") as registry:
        pushed = await push_chart(WEB_SERVICE, registry, "charts/web-service", WEB_VERSION)
        out = await helm_in_thread(
            program,
            "pull",
            f"oci://{address}/charts/web-service",
            f"--version={WEB_VERSION}",
            "--plain-http",
            f"--destination={tmp_path}",
            home=tmp_path,
        )
        shown = await helm_in_thread(
            program,
            "show",
            "chart",
            f"oci://{address}/charts/web-service",
            f"--version={WEB_VERSION}",
            "--plain-http",
            home=tmp_path,
        )
    assert (tmp_path / f"web-service-{WEB_VERSION}.tgz").read_bytes() == pack_chart(WEB_SERVICE)
    assert f"version: {WEB_VERSION}" in shown
    assert f"Digest: {pushed.digest}" in out


@pytest.mark.parametrize("program", ["helm", "helm3"])
@pytest.mark.parametrize("version", ["1.2.3", "1.2.3-rc.1+build.5"])
async def test_what_helm_pushes_is_installed_here(program: str, version: str, tmp_path: Path) -> None:
    folder = chart(
        tmp_path / "web",
        version=version,
        files={"files/a.txt": "A", "charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"},
    )
    await helm_in_thread(program, "package", str(folder), f"--destination={tmp_path}", home=tmp_path)
    async with open_registry_server(tmp_path) as address, open_registry(address, scheme="http") as registry:
        archive = tmp_path / f"web-{version}.tgz"
        await helm_in_thread(program, "push", str(archive), f"oci://{address}/charts", "--plain-http", home=tmp_path)
        [tag] = await registry.tags("charts/web")
        assert tag == version.replace("+", "_")
        manifest = await registry.manifest("charts/web", (await registry.resolve("charts/web", tag)).digest)
        async with open_store(tmp_path / "state") as store:
            await store.download(registry, "charts/web", manifest)
            installed = await store.install(manifest)
            await store.deploy("prod.web", manifest)
    found = read_chart(installed)
    assert (found.name, found.version) == ("web", version)
    assert (tmp_path / "state" / "deployed" / "prod.web" / "files" / "a.txt").read_text() == "A"


async def test_what_is_pushed() -> None:
    registry = MemoryRegistry()
    pushed = await push_chart(WEB_SERVICE, registry, "charts/web-service", WEB_VERSION)
    manifest = await registry.manifest("charts/web-service", pushed.digest)
    assert manifest.config.media_type == manifest.artifact_type == HELM_CONFIG
    assert [layer.media_type for layer in manifest.layers] == [HELM_CHART]
    assert dict(manifest.annotations) == {
        "org.opencontainers.image.title": "web-service",
        "org.opencontainers.image.version": WEB_VERSION,
        "org.opencontainers.image.description": read_chart(WEB_SERVICE).description,
    }


async def test_home_and_source_become_annotations(tmp_path: Path) -> None:
    folder = chart(tmp_path)
    with (folder / "Chart.yaml").open("a") as file:
        file.write("home: https://example.test\nsources: [https://example.test/code, other]\n")
    registry = MemoryRegistry()
    pushed = await push_chart(folder, registry, "web", "1")
    annotations = dict((await registry.manifest("web", pushed.digest)).annotations)
    assert annotations["org.opencontainers.image.url"] == "https://example.test"
    assert annotations["org.opencontainers.image.source"] == "https://example.test/code"


async def test_the_same_chart_has_the_same_digest_as_folder_and_archive(tmp_path: Path) -> None:
    archive = tmp_path / "x.tgz"
    archive.write_bytes(pack_chart(WEB_SERVICE))
    one, other = MemoryRegistry(), MemoryRegistry()
    assert await push_chart(WEB_SERVICE, one, "web", "1") == await push_chart(archive, other, "web", "1")


async def test_the_tag_of_a_version(tmp_path: Path) -> None:
    assert (await load_package(chart(tmp_path / "a", version="1.0.0+b"))).tag == "1.0.0_b"
    with pytest.raises(AddressError):
        _ = (await load_package(chart(tmp_path / "b", version="1.0.0-" + "b" * 150))).tag


async def test_what_cannot_be_pushed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.tgz").write_text("hello")
    for name, why in (("empty", "not a chart folder"), ("absent", "cannot be read"), ("text.tgz", "text.tgz")):
        with pytest.raises(ArtifactError, match=why):
            await load_package(tmp_path / name)
    monkeypatch.setattr("wharfinger.packages.pusher.MAX_ARCHIVE", 3)
    with pytest.raises(ArtifactError, match="more than 3 bytes"):
        await load_package(tmp_path / "text.tgz")
    assert sorted(os.listdir(tmp_path)) == ["empty", "text.tgz"]  # noqa: PTH208 - names are all that is asked
