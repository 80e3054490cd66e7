"""Copies of packages, with their signatures and images, from docker-registry to a folder of OCI layouts and back.

A daemon without a network can use this folder as its source of packages, and verify their signatures.
"""

import json
import re
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from tests.packages.support.charts import chart
from tests.packages.support.registry_contract import push, push_index, read
from tests.packages.support.signing import POLICY, sign
from tests.registry_server import open_registry_server
from wharfinger.formats.json.value import JsonObject
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactNotFoundError, RegistryError, RenderError
from wharfinger.packages.mirroring.copying import StreamTarget
from wharfinger.packages.mirroring.image_references import image_reference
from wharfinger.packages.mirroring.mirror import Mirror, OpenImage, PackageRoot, RequestedPackage, names_of
from wharfinger.packages.registry import oci_registry
from wharfinger.packages.registry.address import PackageReference, RepositoryAddress
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import OciRegistry, open_registry
from wharfinger.packages.registry.pusher import load_package, push_package
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry, WritableRegistry
from wharfinger.packages.sources.source import LayoutSource, open_source
from wharfinger.packages.store.disk_store import open_store


def no_image(address: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
    raise AssertionError(f"{address} must not be opened")


def images_at(registry: Registry) -> OpenImage:
    def open_image(_address: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
        @asynccontextmanager
        async def opened() -> AsyncIterator[Registry]:
            yield registry

        return opened()

    return open_image


async def found_none(*_: object) -> tuple[PackageReference, ...]:
    return ()


def mirror(source: Registry, path: str, target: StreamTarget, below: str = "", *, dry_run: bool = False) -> Mirror:
    return Mirror(PackageRoot(source, path), target, below, no_image, found_none, dry_run=dry_run)


async def lines(made: Mirror, *names: str) -> list[str]:
    wanted = [RequestedPackage(*name.split(":")) for name in names]
    return [line async for line in made.run(wanted)]


async def publish(registry: WritableRegistry, folder: Path, version: str) -> Descriptor:
    """Push a chart as users do, and sign it."""
    package = await load_package(chart(folder / version, "web", version), "web")
    pushed = await push_package(package, registry, "packages/web", package.tag)
    await sign(registry, "packages/web", pushed.digest, version)
    return pushed


@asynccontextmanager
async def real(folder: Path) -> AsyncIterator[OciRegistry]:
    async with open_registry_server(folder) as address, open_registry(address, scheme="http") as registry:
        yield registry


async def test_a_mirror_in_a_folder_is_a_source_without_network(tmp_path: Path) -> None:
    async with real(tmp_path) as registry:
        pushed = [await publish(registry, tmp_path, version) for version in ("1.0.0", "1.1.0")]
        layout = OciLayout(tmp_path / "layout")
        said = await lines(mirror(registry, "packages", layout), "web")
    assert [line.split(" bytes")[0].rpartition(" ")[0] for line in said] == [
        f"copied     web:1.0.0 {pushed[0].digest}",
        f"copied     web:1.1.0 {pushed[1].digest}",
    ]
    # The registry is no longer running.
    source = LayoutSource(tmp_path / "layout", POLICY)
    async with open_store(tmp_path / "state") as store, open_source(source, "web") as (opened, path):
        manifest = await opened.manifest(path, (await opened.resolve(path, "1.1.0")).digest)
        await store.download(opened, path, manifest)
        assert "version: 1.1.0" in ((await store.install(manifest)) / "Chart.yaml").read_text()


async def test_a_folder_is_copied_to_a_registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oci_registry, "PIECE", 1000)  # A layer needs several requests.
    layout, data = OciLayout(tmp_path / "layout"), bytes(range(256)) * 40
    pushed = await push(layout, "1.0.0", data, "web")
    async with real(tmp_path) as registry:
        await lines(mirror(layout, "", registry, "copies"), "web:1.0.0")
        assert await registry.resolve("copies/web", "1.0.0") == pushed
        layer = (await registry.manifest("copies/web", pushed.digest)).layers[0]
        assert await read(registry, layer, "copies/web") == data


async def test_an_index_is_copied_with_all_its_images(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    images = [await push(source, f"image-{number}", b"%d" % number) for number in range(2)]
    entries: list[JsonObject] = [
        {
            "mediaType": OCI_MANIFEST,
            "digest": image.digest.text,
            "size": image.size,
            "platform": {"os": "linux", "architecture": name},
        }
        for image, name in zip(images, ("amd64", "arm64"), strict=True)
    ]
    index = await push_index(source, "1.0.0", *entries)
    await lines(mirror(source, "charts", target), "web:1.0.0")
    assert await target.resolve("web", "1.0.0") == index
    for number, image in enumerate(images):
        layer = (await target.manifest("web", image.digest)).layers[0]
        assert await read(target, layer, "web") == b"%d" % number


async def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    await publish(source, tmp_path, "1.0.0")
    dry, wet = mirror(source, "packages", target, dry_run=True), mirror(source, "packages", target)
    assert (await lines(dry, "web"))[0].startswith("would copy web:1.0.0 sha256:")
    assert not (tmp_path / "two").exists()
    await lines(wet, "web")
    assert (dry.sums.artifacts, dry.sums.bytes) == (wet.sums.artifacts, wet.sums.bytes)
    copied = sum(path.stat().st_size for path in (tmp_path / "two" / "web" / "blobs").rglob("*") if path.is_file())
    assert wet.sums.bytes == copied


async def test_a_second_run_copies_nothing(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    pushed = await publish(source, tmp_path, "1.0.0")
    await lines(mirror(source, "packages", target), "web")
    again = mirror(source, "packages", target)
    assert await lines(again, "web") == [f"present    web:1.0.0 {pushed.digest} 0 bytes"]
    assert (again.sums.artifacts, again.sums.present, again.sums.bytes) == (0, 1, 0)


class Breaking(OciLayout):
    """A layout whose disk is full after a number of blobs."""

    def __init__(self, root: Path, blobs: int) -> None:
        super().__init__(root)
        self.left = blobs

    async def copy_blob(self, repository: str, blob: Descriptor, source: Registry, source_repository: str) -> None:
        if not self.left:
            raise RegistryError("the disk is full", transient=True)
        self.left -= 1
        await super().copy_blob(repository, blob, source, source_repository)


@pytest.mark.parametrize("blobs", range(4))
async def test_an_interrupted_copy_is_resumed_by_the_next_run(blobs: int, tmp_path: Path) -> None:
    """No tag refers to an incomplete copy, and the second run does not copy existing blobs again."""
    source = OciLayout(tmp_path / "one")
    pushed = await publish(source, tmp_path, "1.0.0")
    first = mirror(source, "packages", Breaking(tmp_path / "two", blobs))
    with pytest.raises(RegistryError, match="the disk is full"):
        await lines(first, "web")
    target = OciLayout(tmp_path / "two")
    with pytest.raises(ArtifactNotFoundError):
        await target.resolve("web", "1.0.0")
    counting = Breaking(tmp_path / "two", 100)
    await lines(mirror(source, "packages", counting), "web")
    assert 100 - counting.left == 4 - blobs
    assert await target.resolve("web", "1.0.0") == pushed


async def test_a_damaged_blob_is_not_copied(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    await push(source, "1.0.0", b"the layer", "web")
    (tmp_path / "one" / "web" / "blobs" / "sha256" / digest_of(b"the layer").hex).write_bytes(b"the lazer")
    with pytest.raises(Exception, match="another digest"):
        await lines(mirror(source, "", target), "web")
    assert not any(b"lazer" in path.read_bytes() for path in (tmp_path / "two").rglob("*") if path.is_file())


async def push_annotated(registry: WritableRegistry, annotations: dict[str, str]) -> Descriptor:
    metadata = {"name": "web", "version": "1.0.0", "annotations": dict(annotations)}
    config = await registry.push_blob("web", HELM_CONFIG, json.dumps(metadata).encode())
    layer = await registry.push_blob("web", HELM_CHART, b"chart")
    return await registry.push_manifest("web", "1.0.0", write_manifest(config, (layer,), {}), OCI_MANIFEST)


async def test_images_listed_by_a_chart_are_copied(tmp_path: Path) -> None:
    source, target, images = (OciLayout(tmp_path / name) for name in ("one", "two", "images"))
    app = await push(images, "1.2", b"app", "team/app")
    base = await push(images, "latest", b"base", "library/base")
    listed = "- {name: app, image: 'registry.example:5000/team/app:1.2'}\n- {image: base}\n"
    await push_annotated(source, {"artifacthub.io/images": listed, "images": "- {image: base}"})
    made = mirror(source, "", target)
    made.open_image = images_at(images)
    said = await lines(made, "web")
    assert [line.split()[1] for line in said] == [
        "web:1.0.0",
        "registry-1.docker.io/library/base:latest",
        "registry.example:5000/team/app:1.2",
    ]
    assert await target.resolve("images/registry.example_5000/team/app", "1.2") == app
    assert await target.resolve("images/registry-1.docker.io/library/base", "latest") == base


async def test_a_package_without_listed_images_is_searched_for_images(tmp_path: Path) -> None:
    source, target, images = (OciLayout(tmp_path / name) for name in ("one", "two", "images"))
    app = await push(images, "1.2", b"app", "team/app")
    await push_annotated(source, {})
    made = mirror(source, "", target)
    made.open_image = images_at(images)
    asked: list[str] = []

    async def find(_: Registry, repository: str, name: str, manifest: Manifest) -> tuple[PackageReference, ...]:
        asked.append(f"{repository} {name} {manifest.config.media_type}")
        return (image_reference("registry.example/team/app:1.2"),)

    made.find_images = find
    await lines(made, "web:1.0.0")
    assert asked == [f"web web {HELM_CONFIG}"]
    assert made.unknown == {}
    assert await target.resolve("images/registry.example/team/app", "1.2") == app


async def test_a_package_with_unknown_images_is_copied_and_reported(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    pushed = await push_annotated(source, {})
    made = mirror(source, "", target)

    async def find(*_: object) -> tuple[PackageReference, ...]:
        raise RenderError("replicas is required", transient=False)

    made.find_images = find
    await lines(made, "web:1.0.0")
    assert made.unknown == {"web:1.0.0": "replicas is required"}
    assert await target.resolve("web", "1.0.0") == pushed


async def test_a_missing_image_does_not_prevent_other_copies(tmp_path: Path) -> None:
    source, target, images = (OciLayout(tmp_path / name) for name in ("one", "two", "images"))
    app = await push(images, "1.2", b"app", "team/app")
    await push_annotated(source, {"images": "- {image: 'a.example/none:1'}\n- {image: 'b.example/team/app:1.2'}\n"})
    made = mirror(source, "", target)
    made.open_image = images_at(images)
    said = await lines(made, "web")
    assert said[1:2] == ["failed     a.example/none:1"]
    assert {image: type(error) for image, error in made.failed.items()} == {"a.example/none:1": ArtifactNotFoundError}
    assert await target.resolve("images/b.example/team/app", "1.2") == app


class Silent(OciLayout):
    """A registry that does not answer."""

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        raise RegistryError("no answer in time", transient=True)


async def test_an_unreachable_image_registry_does_not_prevent_other_copies(tmp_path: Path) -> None:
    source, target, images = (OciLayout(tmp_path / name) for name in ("one", "two", "images"))
    app = await push(images, "1.2", b"app", "team/app")
    await push_annotated(source, {"images": "- {image: 'a.example/app:1'}\n- {image: 'b.example/team/app:1.2'}\n"})
    made = mirror(source, "", target)

    def open_image(address: RepositoryAddress) -> AbstractAsyncContextManager[Registry]:
        silent = address.registry.host == "a.example"
        return images_at(Silent(tmp_path) if silent else images)(address)

    made.open_image = open_image
    await lines(made, "web")
    assert [error.transient for error in made.failed.values()] == [True]
    assert await target.resolve("images/b.example/team/app", "1.2") == app


async def test_a_write_error_of_the_target_ends_the_mirror(tmp_path: Path) -> None:
    """If the mirror command continued, it would download all other images and then fail to write each of them."""
    source, images = (OciLayout(tmp_path / name) for name in ("one", "images"))
    await push(images, "1", b"app", "app")
    await push_annotated(source, {"images": "- {image: 'a.example/app:1'}"})
    made = mirror(source, "", Breaking(tmp_path / "two", 2))
    made.open_image = images_at(images)
    with pytest.raises(RegistryError, match="the disk is full"):
        await lines(made, "web")


async def test_images_are_left_out_on_request(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    await push_annotated(source, {"images": "- {image: 'registry.example/app:1'}"})
    made = mirror(source, "", target)
    made.images = False
    assert len(await lines(made, "web")) == 1


async def test_invalid_image_annotations_are_reported(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    await push_annotated(source, {"images": "- {image: 'Registry.example/A B'}"})
    made = mirror(source, "", target)
    assert len(await lines(made, "web")) == 1
    assert re.search(r"annotation images: .*; correct Chart\.yaml, or use --no-images", made.unknown["web:1.0.0"])


async def test_packages_of_a_layout_are_listed(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    await push(layout, "web", b"", "packages")
    await push(layout, "db", b"", "packages")
    assert await names_of(layout, "packages") == ["db", "web"]
    with pytest.raises(ArtifactNotFoundError, match=r"does not list its packages .*; name them with --package"):
        await names_of(layout, "other")


async def test_referrers_of_an_artifact_are_copied(tmp_path: Path) -> None:
    source, target = OciLayout(tmp_path / "one"), OciLayout(tmp_path / "two")
    pushed = await push(source, "1.0.0")
    sbom = await push(source, "sbom", b"packages")
    entry: JsonObject = {
        "mediaType": OCI_MANIFEST,
        "digest": sbom.digest.text,
        "size": sbom.size,
        "artifactType": "a/b",
    }
    await push_index(source, f"sha256-{pushed.digest.hex}", entry)
    said = await lines(mirror(source, "charts", target), "web")
    assert [line.split()[1] for line in said] == ["web:1.0.0", "web:sbom"]
    assert await target.referrers("web", pushed.digest) == (("a/b", sbom),)
