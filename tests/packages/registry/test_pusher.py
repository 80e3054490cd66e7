"""Packages pushed by wharfinger and pulled by helm, and the reverse, with a real registry."""

import io
import json
import os
import tarfile
from pathlib import Path

import pytest
import trio

from tests.packages.support.charts import WEB_SERVICE, WEB_VERSION, chart, helm, write
from tests.packages.support.memory_registry import MemoryRegistry, chart_archive
from tests.registry_server import open_registry_server
from wharfinger.packages.charts.chart import pack_chart, read_chart
from wharfinger.packages.definition.definition import Layout, read_definition
from wharfinger.packages.errors import AddressError, ArtifactError
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_LAYER, PACKAGE_CONFIG
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.pusher import load_package, push_chart, push_package
from wharfinger.packages.store.disk_store import open_store


async def helm_in_thread(program: str, *arguments: str, home: Path) -> str:
    return await trio.to_thread.run_sync(lambda: helm(program, *arguments, home=home))


@pytest.mark.parametrize("program", ["helm", "helm3"])
async def test_helm_pulls_a_pushed_chart(program: str, tmp_path: Path) -> None:
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


@pytest.mark.sampled(3)
@pytest.mark.parametrize("program", ["helm", "helm3"])
@pytest.mark.parametrize("version", ["1.2.3", "1.2.3-rc.1+build.5"])
async def test_a_chart_pushed_by_helm_can_be_installed(program: str, version: str, tmp_path: Path) -> None:
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


async def test_a_pushed_chart_has_one_layer_and_annotations() -> None:
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


async def test_a_chart_has_the_same_digest_as_folder_and_archive(tmp_path: Path) -> None:
    archive = tmp_path / "x.tgz"
    archive.write_bytes(pack_chart(WEB_SERVICE))
    one, other = MemoryRegistry(), MemoryRegistry()
    assert await push_chart(WEB_SERVICE, one, "web", "1") == await push_chart(archive, other, "web", "1")


async def test_the_tag_is_derived_from_the_version(tmp_path: Path) -> None:
    assert (await load_package(chart(tmp_path / "a", version="1.0.0+b"))).tag == "1.0.0_b"
    with pytest.raises(AddressError):
        _ = (await load_package(chart(tmp_path / "b", version="1.0.0-" + "b" * 150))).tag


PACKAGE = {
    "package.yaml": "type: Application\nname: web\nversion: 1.2.0\nstage: Preview\ndescriptions: {en: Serves}\n",
    "templates/a.yaml": "a: 1\n",
    "hooks/run.sh": "#!/bin/sh\n",
}


async def test_a_package_is_an_image_of_one_layer(tmp_path: Path) -> None:
    folder = write(tmp_path / "web", PACKAGE)
    (folder / "hooks/run.sh").chmod(0o755)
    registry = MemoryRegistry()
    package = await load_package(folder)
    assert (package.name, package.version, package.tag) == ("web", "1.2.0", "1.2.0")
    pushed = await push_package(package, registry, "apps/web", package.tag)
    manifest = await registry.manifest("apps/web", pushed.digest)
    assert manifest.config.media_type == manifest.artifact_type == PACKAGE_CONFIG
    assert [layer.media_type for layer in manifest.layers] == [OCI_LAYER]
    assert dict(manifest.annotations) == {
        "org.opencontainers.image.title": "web",
        "org.opencontainers.image.version": "1.2.0",
        "org.opencontainers.image.description": "Serves",
    }
    assert json.loads(registry.blobs["apps/web", manifest.config.digest]) == {
        "name": "web",
        "version": "1.2.0",
        "type": "Application",
        "description": "Serves",
        "stage": "Preview",
    }
    with tarfile.open(fileobj=io.BytesIO(registry.blobs["apps/web", manifest.layers[0].digest])) as archive:
        assert {entry.name: entry.mode for entry in archive} == {
            "hooks/run.sh": 0o755,
            "package.yaml": 0o644,
            "templates/a.yaml": 0o644,
        }


async def test_equal_files_have_the_same_digest_regardless_of_order_and_times(tmp_path: Path) -> None:
    digests = set()
    folder = tmp_path
    for number in range(3):
        folder = write(tmp_path / str(number) / "web", dict(sorted(PACKAGE.items(), reverse=bool(number))))
        os.utime(folder / "package.yaml", (number, number))
        (folder / "templates/a.yaml").chmod(0o600 + number * 4)
        digests.add((await push_chart(folder, MemoryRegistry(), "web", "1.2.0")).digest)
    assert len(digests) == 1
    (folder / "hooks/run.sh").chmod(0o755)
    assert (await push_chart(folder, MemoryRegistry(), "web", "1.2.0")).digest not in digests


@pytest.mark.parametrize(
    ("files", "version"),
    [
        ({"hooks/run.sh": "", "version.json": '{"version": "v3.0.0"}'}, "v3.0.0"),
        ({"hooks/run.sh": "", "Chart.yaml": "apiVersion: v2\nname: tuner\nversion: 0.3.0\n"}, "0.3.0"),
        ({"hooks/run.sh": "", "values.yaml": "tuner: {}\n"}, ""),
    ],
)
async def test_a_module_folder_is_packed_as_a_package(files: dict[str, str], version: str, tmp_path: Path) -> None:
    package = await load_package(write(tmp_path / "002-tuner", files))
    assert (package.name, package.version, package.tag) == ("tuner", version, version)
    assert package.config.media_type == PACKAGE_CONFIG
    assert json.loads(package.config.data)["type"] == "Module"


async def test_the_package_name_must_match_the_requested_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write(tmp_path / "checkout", {"package.yaml": "type: Module\nversion: 1.0.0\n"})
    assert (await load_package(folder)).name == "checkout"
    assert (await load_package(folder, "web")).name == "web"
    monkeypatch.chdir(folder)
    assert (await load_package(Path())).name == "checkout"
    (folder / "package.yaml").write_text("type: Module\nname: web\n")
    with pytest.raises(ArtifactError, match="rename one of them"):
        await load_package(folder)


async def test_a_package_from_a_real_registry_is_installed(tmp_path: Path) -> None:
    folder = write(tmp_path / "web", PACKAGE)
    async with open_registry_server(tmp_path) as address, open_registry(address, scheme="http") as registry:
        pushed = await push_chart(folder, registry, "apps/web", "1.2.0")
        manifest = await registry.manifest("apps/web", pushed.digest)
        async with open_store(tmp_path / "state") as store:
            await store.download(registry, "apps/web", manifest)
            installed = await store.install(manifest)
    definition = read_definition(installed, name="web", version="1.2.0")
    assert (definition.layout, definition.hooks) == (Layout.PACKAGE, True)


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ({}, "expected package.yaml"),
        ({"package.yaml": "type: Application\nweight: 5\n"}, r"package\.yaml: .*weight"),
        ({"package.yaml": "a: [\n"}, r"package\.yaml"),
        ({"hooks/run.sh": "", "openapi/values.yaml": "type: 7\n"}, r"openapi/values\.yaml"),
        ({"Chart.yaml": "apiVersion: v2\nname: x\n"}, r"Chart\.yaml: version"),
    ],
)
async def test_packages_that_cannot_be_installed_are_not_packed(
    files: dict[str, str], why: str, tmp_path: Path
) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    write(folder, files)
    with pytest.raises(ArtifactError, match=f"^{folder}: .*{why}"):
        await load_package(folder)


async def test_an_archive_with_an_invalid_chart_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "web.tgz"
    archive.write_bytes(chart_archive(version="none"))
    with pytest.raises(ArtifactError, match=f"^{archive}: .*not a valid semantic version"):
        await load_package(archive)


async def test_missing_and_invalid_archives_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text.tgz").write_text("hello")
    (tmp_path / "long.tgz").write_text("hello" * 200)
    (tmp_path / "empty.tgz").write_bytes(b"")
    (tmp_path / "cut.tgz").write_bytes(chart_archive()[:300])
    for name, why in (
        ("absent", "cannot be read: No such file"),
        ("text.tgz", r"not an archive; .* as `helm package` makes it"),
        ("long.tgz", "not an archive"),
        ("empty.tgz", "not an archive"),
        ("cut.tgz", "truncated"),
    ):
        with pytest.raises(ArtifactError, match=f"^{tmp_path / name}: .*{why}"):
            await load_package(tmp_path / name)
    monkeypatch.setattr("wharfinger.packages.registry.pusher.MAX_ARCHIVE", 3)
    with pytest.raises(ArtifactError, match="more than 3 bytes"):
        await load_package(tmp_path / "text.tgz")
    assert len(os.listdir(tmp_path)) == 4  # noqa: PTH208 - names are all that is asked
