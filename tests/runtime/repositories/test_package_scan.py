"""Scans of one package: the requests to the registry, and the index that is the result."""

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.packages.support.registry_contract import push
from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_INDEX, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.runtime.repositories.package_scan import Interest, read_details, scan_package
from wharfinger.runtime.versions.package_index import DETAILED, PackageIndex

EMPTY = PackageIndex("default", "web")
WEB = "packages/web"


class Counted:
    """A Registry that counts its requests."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self.asked: Counter[str] = Counter()

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        self.asked["resolve"] += 1
        return await self._registry.resolve(repository, tag)

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        self.asked["manifest"] += 1
        return await self._registry.manifest(repository, digest)

    def blob(self, repository: str, blob: Descriptor) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        self.asked["blob"] += 1
        return self._registry.blob(repository, blob)

    async def tags(self, repository: str) -> tuple[str, ...]:
        self.asked["tags"] += 1
        return await self._registry.tags(repository)

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        self.asked["document"] += 1
        return await self._registry.document(repository, reference)

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        self.asked["referrers"] += 1
        return await self._registry.referrers(repository, digest)


async def push_config(layout: OciLayout, tag: str, config: JsonObject) -> Digest:
    described = await layout.push_blob(WEB, HELM_CONFIG, encode_json(config))
    layer = await layout.push_blob(WEB, HELM_CHART, tag.encode())
    manifest = write_manifest(described, (layer,), {"org.opencontainers.image.version": tag})
    return (await layout.push_manifest(WEB, tag, manifest, OCI_MANIFEST)).digest


async def test_a_scan_without_changes_reads_tags_and_the_version_in_use(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    for minor in range(3):
        await push_config(layout, f"1.{minor}.0", {"name": "web", "description": f"{minor}"})
    counted, interest = Counted(layout), Interest(versions=frozenset({"1.2.0"}))
    first = await scan_package(counted, WEB, EMPTY, interest)
    assert first.versions == ("1.2.0", "1.1.0", "1.0.0")
    assert first.details["1.1.0"].description == "1"
    assert counted.asked == {"tags": 1, "resolve": 3, "manifest": 3, "blob": 3}
    counted.asked.clear()
    assert await scan_package(counted, WEB, first, interest) == first
    assert counted.asked == {"tags": 1, "resolve": 1}


async def test_only_the_newest_versions_and_those_in_use_are_read(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    for minor in range(DETAILED + 3):
        await push(layout, f"1.{minor}.0", repository=WEB)
    index = await scan_package(layout, WEB, EMPTY, Interest(versions=frozenset({"1.0.0", "9.9.9"})))
    assert len(index.versions) == DETAILED + 3
    assert set(index.details) == {*index.versions[:DETAILED], "1.0.0"}
    await push(layout, "2.0.0", repository=WEB)
    counted = Counted(layout)
    again = await scan_package(counted, WEB, index, Interest(versions=frozenset({"1.0.0"})))
    assert counted.asked == {"tags": 1, "resolve": 2, "manifest": 1, "blob": 1}
    assert set(again.details) == {*again.versions[:DETAILED], "1.0.0"}


async def test_a_moved_tag_has_another_digest_and_is_read_again(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    before = await push_config(layout, "1.0.0", {"description": "old"})
    interest = Interest(versions=frozenset({"1.0.0"}))
    index = await scan_package(layout, WEB, EMPTY, interest)
    after = await push_config(layout, "1.0.0", {"description": "new"})
    again = await scan_package(layout, WEB, index, interest)
    assert (index.digest("1.0.0"), again.digest("1.0.0")) == (before.text, after.text)
    assert again.details["1.0.0"].description == "new"
    assert again.tags == index.tags


async def test_a_full_scan_finds_moved_tags_that_are_not_in_use(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    await push_config(layout, "1.0.0", {"description": "old"})
    index = await scan_package(layout, WEB, EMPTY, Interest())
    after = await push_config(layout, "1.0.0", {"description": "new"})
    assert await scan_package(layout, WEB, index, Interest()) == index
    assert (await scan_package(layout, WEB, index, Interest(), full=True)).digest("1.0.0") == after.text


async def test_a_channel_has_the_version_of_its_content(tmp_path: Path) -> None:
    """If no recent version tag has the content of the channel, the version is read from the manifest. A channel whose manifest
    has no version is listed by its name only.
    """
    layout = OciLayout(tmp_path)
    digest = await push_config(layout, "1.0.0", {})
    manifest = await layout.manifest(WEB, digest)
    data = write_manifest(manifest.config, manifest.layers, dict(manifest.annotations))
    await layout.push_manifest(WEB, "stable", data, OCI_MANIFEST)
    lost = write_manifest(manifest.config, manifest.layers, {"org.opencontainers.image.version": "0.9.0"})
    await layout.push_manifest(WEB, "old", lost, OCI_MANIFEST)
    await push(layout, "bare", b"other", repository=WEB)
    wanted = Interest(channels=frozenset({"stable", "old", "bare", "missing"}))
    index = await scan_package(layout, WEB, EMPTY, wanted)
    assert {name: target.version for name, target in index.channels.items()} == {"stable": "1.0.0", "old": "0.9.0"}
    assert index.channels["stable"].digest == digest.text
    assert index.channel_names == ("bare", "old", "stable")
    counted = Counted(layout)
    assert await scan_package(counted, WEB, index, Interest(channels=frozenset({"stable", "old"}))) == index
    assert counted.asked == {"tags": 1, "resolve": 2}


async def test_a_tag_of_an_image_index_is_compared_by_its_own_digest(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    image = await push_config(layout, "1.0.0", {})
    size = (await layout.manifest(WEB, image)).descriptor.size
    entry = {"mediaType": OCI_MANIFEST, "digest": image.text, "size": size}
    data = json.dumps({"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [entry]}).encode()
    await layout.push_manifest(WEB, "1.0.0", data, OCI_INDEX)
    interest = Interest(versions=frozenset({"1.0.0"}))
    index = await scan_package(layout, WEB, EMPTY, interest)
    assert (index.digest("1.0.0"), index.details["1.0.0"].tag) == (image.text, digest_of(data).text)
    counted = Counted(layout)
    assert await scan_package(counted, WEB, index, interest) == index
    assert counted.asked == {"tags": 1, "resolve": 1}


async def test_a_tag_that_is_no_package_is_listed_with_the_reason(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    await layout.push_manifest(WEB, "1.0.0", b'{"schemaVersion": 1}', OCI_MANIFEST)
    index = await scan_package(layout, WEB, EMPTY, Interest())
    assert index.details["1.0.0"].unreadable.startswith("it is not a package: ")
    counted = Counted(layout)
    assert await scan_package(counted, WEB, index, Interest()) == index
    assert counted.asked == {"tags": 1, "resolve": 1}
    await push_config(layout, "1.0.0", {"description": "now"})
    again = await scan_package(layout, WEB, index, Interest())
    assert (again.details["1.0.0"].unreadable, again.details["1.0.0"].description) == ("", "now")


@pytest.mark.parametrize("newest", [True, False])
async def test_a_version_without_content_is_read_again_and_hides_no_other(newest: bool, tmp_path: Path) -> None:
    """A registry may lose content by a garbage collection or an interrupted copy. The same content may be pushed again later."""
    layout = OciLayout(tmp_path)
    lost = await push_config(layout, "1.0.0", {"description": "lost"})
    await push_config(layout, "0.9.0" if newest else "1.1.0", {"description": "whole"})
    blob = tmp_path / WEB / "blobs" / "sha256" / (await layout.manifest(WEB, lost)).config.digest.hex
    data = blob.read_bytes()
    blob.unlink()
    index = await scan_package(layout, WEB, EMPTY, Interest())
    assert index.details["1.0.0"].unreadable.startswith("it is incomplete: ")
    assert index.digest("1.0.0") == ""
    assert index.details["0.9.0" if newest else "1.1.0"].description == "whole"
    assert await scan_package(layout, WEB, index, Interest()) == index
    blob.write_bytes(data)
    again = await scan_package(layout, WEB, index, Interest())
    assert again.details["1.0.0"].description == "lost"
    assert again.digest("1.0.0") == lost.text


def test_details_of_charts_and_packages_are_read() -> None:
    digest = Digest("sha256:" + "a" * 64)
    changes = "- kind: fixed\n  description: a leak\n- plain\n"
    chart: JsonObject = {
        "kubeVersion": ">=1.30",
        "deprecated": True,
        "type": "application",
        "annotations": {"artifacthub.io/changes": changes},
    }
    found = read_details(digest, chart)
    assert (found.kind, found.kubernetes, found.deprecated) == ("", ">=1.30", "this version is deprecated")
    assert found.changelog == ("a leak", "plain")
    package: JsonObject = {
        "type": "Module",
        "requirements": {"kubernetes": ">=1.31"},
        "changelog": {"features": ["one"], "fixes": ["two", 3]},
        "deprecated": "use another",
    }
    found = read_details(digest, package)
    assert (found.kind, found.requirements, found.deprecated) == ("Module", {"kubernetes": ">=1.31"}, "use another")
    assert found.changelog == ("one", "two")
    assert read_details(
        digest, {"requirements": {"x": "y" * 20_000}, "annotations": {"artifacthub.io/changes": "{"}}
    ) == (read_details(digest, {}))


async def test_a_tag_deleted_during_the_scan_is_listed_without_details(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    await push_config(layout, "1.0.0", {})
    await push_config(layout, "1.1.0", {})

    class Forgetting(Counted):
        async def resolve(self, repository: str, tag: str) -> Descriptor:
            return await super().resolve(repository, "gone" if tag == "1.1.0" else tag)

    index = await scan_package(Forgetting(layout), WEB, EMPTY, Interest())
    assert (index.versions, tuple(index.details)) == (("1.1.0", "1.0.0"), ("1.0.0",))


async def test_a_scan_without_details_is_one_request(tmp_path: Path) -> None:
    layout = OciLayout(tmp_path)
    await push_config(layout, "1.0.0", {})
    counted = Counted(layout)
    index = await scan_package(counted, WEB, EMPTY, Interest(), detailed=0)
    assert (index.versions, index.details, counted.asked) == (("1.0.0",), {}, {"tags": 1})
