"""The contract of every implementation of :class:`wharfinger.packages.registry.registry.Registry`.

To use it, write ``@pytest.mark.parametrize("check", CONTRACT)``, and call ``await check(registry)`` with an empty
WritableRegistry. The checks in ``READ_CONTRACT`` are for every implementation. They need a registry with exactly one package,
``REPOSITORY:1.0.0``.
"""

from collections.abc import Awaitable, Callable

import pytest
import trio

from wharfinger.formats.json.value import JsonObject, encode_json
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import AddressError, ArtifactError, ArtifactNotFoundError, DigestError
from wharfinger.packages.registry.manifest import HELM_CHART, HELM_CONFIG, OCI_INDEX, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry.registry import Descriptor, Registry, WritableRegistry

Check = Callable[[WritableRegistry], Awaitable[None]]
ReadCheck = Callable[[Registry], Awaitable[None]]

ABSENT = Digest("sha256:" + "0" * 64)
REPOSITORY = "charts/web"


async def push(
    registry: WritableRegistry, tag: str, layer: bytes = b"layer", repository: str = REPOSITORY
) -> Descriptor:
    config = await registry.push_blob(repository, HELM_CONFIG, b'{"name":"web"}')
    chart = await registry.push_blob(repository, HELM_CHART, layer)
    return await registry.push_manifest(repository, tag, write_manifest(config, (chart,), {"k": "v"}), OCI_MANIFEST)


async def read(registry: Registry, blob: Descriptor, repository: str = REPOSITORY) -> bytes:
    async with registry.blob(repository, blob) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def check_a_pushed_artifact_is_read_back(registry: WritableRegistry) -> None:
    pushed = await push(registry, "1.0.0", b"the chart's archive")
    assert await registry.resolve(REPOSITORY, "1.0.0") == pushed
    manifest = await registry.manifest(REPOSITORY, pushed.digest)
    assert manifest.descriptor == pushed
    assert manifest.config.media_type == manifest.artifact_type == HELM_CONFIG
    assert [layer.media_type for layer in manifest.layers] == [HELM_CHART]
    assert manifest.annotations == (("k", "v"),)
    assert await read(registry, manifest.config) == b'{"name":"web"}'
    assert await read(registry, manifest.layers[0]) == b"the chart's archive"


async def check_a_tag_can_be_moved_and_old_digests_remain_readable(registry: WritableRegistry) -> None:
    first = await push(registry, "latest", b"first")
    second = await push(registry, "latest", b"second")
    assert first.digest != second.digest
    assert await registry.resolve(REPOSITORY, "latest") == second
    old = await registry.manifest(REPOSITORY, first.digest)
    assert await read(registry, old.layers[0]) == b"first"


async def check_pushing_again_changes_nothing(registry: WritableRegistry) -> None:
    assert await push(registry, "1.0.0") == await push(registry, "1.0.0")
    assert await registry.tags(REPOSITORY) == ("1.0.0",)


async def check_tags_are_sorted(registry: WritableRegistry) -> None:
    for tag in ("v2", "1.10.0", "1.9.0", "1.0.0_build"):
        await push(registry, tag)
    assert await registry.tags(REPOSITORY) == ("1.0.0_build", "1.10.0", "1.9.0", "v2")


async def check_missing_tags_digests_and_repositories_are_not_found(registry: WritableRegistry) -> None:
    await push(registry, "1.0.0")
    with pytest.raises(ArtifactNotFoundError):
        await registry.resolve(REPOSITORY, "2.0.0")
    with pytest.raises(ArtifactNotFoundError):
        await registry.resolve("charts/nobody", "1.0.0")
    with pytest.raises(ArtifactNotFoundError):
        await registry.manifest(REPOSITORY, ABSENT)
    with pytest.raises(ArtifactNotFoundError):
        await registry.tags("charts/nobody")
    with pytest.raises(ArtifactNotFoundError) as caught:
        await read(registry, Descriptor(HELM_CHART, ABSENT, 5))
    assert not caught.value.transient


async def check_a_blob_with_a_wrong_size_is_a_digest_error(registry: WritableRegistry) -> None:
    blob = await registry.push_blob(REPOSITORY, HELM_CHART, b"twelve bytes")
    for size in (0, 11, 13):
        with pytest.raises(DigestError):
            await read(registry, Descriptor(HELM_CHART, blob.digest, size))


async def check_empty_and_large_blobs_are_read_back(registry: WritableRegistry) -> None:
    for data in (b"", bytes(range(256)) * 12_000):
        blob = await registry.push_blob(REPOSITORY, HELM_CHART, data)
        assert blob == Descriptor(HELM_CHART, digest_of(data), len(data))
        assert await read(registry, blob) == data


async def check_a_blob_may_be_read_partly(registry: WritableRegistry) -> None:
    data = bytes(range(256)) * 12_000
    blob = await registry.push_blob(REPOSITORY, HELM_CHART, data)
    async with registry.blob(REPOSITORY, blob) as chunks:
        assert data.startswith(await anext(chunks))
    async with registry.blob(REPOSITORY, blob):
        pass
    assert await read(registry, blob) == data


async def check_a_task_may_make_requests_while_it_reads_a_blob(registry: WritableRegistry) -> None:
    one = await registry.push_blob(REPOSITORY, HELM_CHART, b"one" * 100_000)
    async with registry.blob(REPOSITORY, one) as chunks:
        await push(registry, "1.0.0")
        assert await registry.tags(REPOSITORY) == ("1.0.0",)
        assert b"".join([chunk async for chunk in chunks]) == b"one" * 100_000


async def check_concurrent_reads_work(registry: WritableRegistry) -> None:
    blobs = [await registry.push_blob(REPOSITORY, HELM_CHART, bytes([number]) * 50_000) for number in range(20)]
    seen: dict[Digest, bytes] = {}

    async def fetch(blob: Descriptor) -> None:
        seen[blob.digest] = await read(registry, blob)

    async with trio.open_nursery() as nursery:
        for blob in blobs:
            nursery.start_soon(fetch, blob)
    assert seen == {digest_of(bytes([number]) * 50_000): bytes([number]) * 50_000 for number in range(20)}


async def check_invalid_names_are_refused(registry: WritableRegistry) -> None:
    with pytest.raises(AddressError):
        await registry.resolve("../secret", "1.0.0")
    with pytest.raises(AddressError):
        await registry.resolve(REPOSITORY, "../1")
    with pytest.raises(AddressError):
        await registry.manifest("a/", ABSENT)
    with pytest.raises(AddressError):
        await registry.tags("Charts")
    with pytest.raises(AddressError):
        await registry.push_blob("a b", HELM_CHART, b"")
    with pytest.raises(AddressError):
        await registry.push_manifest(REPOSITORY, "a/b", b"{}", OCI_MANIFEST)
    with pytest.raises(AddressError):
        await read(registry, Descriptor(HELM_CHART, ABSENT, 0), "?x=y")


async def push_index(registry: WritableRegistry, tag: str, *entries: JsonObject) -> Descriptor:
    index: JsonObject = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}
    return await registry.push_manifest(REPOSITORY, tag, encode_json(index), OCI_INDEX)


async def check_an_index_resolves_to_its_image(registry: WritableRegistry) -> None:
    image = await push(registry, "image", b"the image")
    other = await push(registry, "attestation", b"how it was made")
    entry: JsonObject = {"mediaType": OCI_MANIFEST, "digest": image.digest.text, "size": image.size}
    beside: JsonObject = {
        "mediaType": OCI_MANIFEST,
        "digest": other.digest.text,
        "size": other.size,
        "annotations": {"vnd.docker.reference.type": "attestation-manifest"},
    }
    index = await push_index(registry, "1.0.0", beside, entry)
    assert await registry.resolve(REPOSITORY, "1.0.0") == index
    manifest = await registry.manifest(REPOSITORY, index.digest)
    assert manifest == await registry.manifest(REPOSITORY, image.digest)
    assert manifest.descriptor == image


async def check_empty_and_nested_indexes_are_refused(registry: WritableRegistry) -> None:
    image = await push(registry, "image")
    entry: JsonObject = {"mediaType": OCI_MANIFEST, "digest": image.digest.text, "size": image.size}
    inner = await push_index(registry, "inner", entry)
    outer = await push_index(
        registry, "outer", {"mediaType": OCI_INDEX, "digest": inner.digest.text, "size": inner.size}
    )
    with pytest.raises(ArtifactError, match="expected one image, found an index"):
        await registry.manifest(REPOSITORY, outer.digest)
    empty = await push_index(registry, "empty")
    with pytest.raises(ArtifactError, match="the index has nothing"):
        await registry.manifest(REPOSITORY, empty.digest)


async def check_a_tagged_artifact_can_be_read(registry: Registry) -> None:
    assert await registry.tags(REPOSITORY) == ("1.0.0",)
    descriptor = await registry.resolve(REPOSITORY, "1.0.0")
    assert descriptor == await registry.resolve(REPOSITORY, "1.0.0")
    manifest = await registry.manifest(REPOSITORY, descriptor.digest)
    assert manifest.descriptor == descriptor
    assert manifest.layers
    for blob in (manifest.config, *manifest.layers):
        data = await read(registry, blob)
        assert (len(data), digest_of(data)) == (blob.size, blob.digest)


async def check_unknown_names_are_not_found(registry: Registry) -> None:
    for absent in (registry.resolve(REPOSITORY, "2.0.0"), registry.resolve("charts/nobody", "1.0.0")):
        with pytest.raises(ArtifactNotFoundError):
            await absent
    with pytest.raises(ArtifactNotFoundError):
        await registry.manifest(REPOSITORY, ABSENT)
    with pytest.raises(ArtifactNotFoundError):
        await registry.manifest("charts/nobody", ABSENT)
    with pytest.raises(ArtifactNotFoundError):
        await registry.tags("charts/nobody")
    for repository in (REPOSITORY, "charts/nobody"):
        with pytest.raises(ArtifactNotFoundError):
            await read(registry, Descriptor(HELM_CHART, ABSENT, 5), repository)


async def check_a_wrong_size_is_a_digest_error(registry: Registry) -> None:
    manifest = await registry.manifest(REPOSITORY, (await registry.resolve(REPOSITORY, "1.0.0")).digest)
    layer = manifest.layers[0]
    for size in (0, layer.size - 1, layer.size + 1):
        with pytest.raises(DigestError):
            await read(registry, Descriptor(layer.media_type, layer.digest, size))


async def check_reading_a_blob_can_be_stopped(registry: Registry) -> None:
    manifest = await registry.manifest(REPOSITORY, (await registry.resolve(REPOSITORY, "1.0.0")).digest)
    layer = manifest.layers[0]
    async with registry.blob(REPOSITORY, layer) as chunks:
        first = await anext(chunks)
        assert (await read(registry, layer)).startswith(first)
    async with registry.blob(REPOSITORY, layer):
        pass


async def check_invalid_names_cannot_be_read(registry: Registry) -> None:
    for odd in (
        registry.resolve("../charts/web", "1.0.0"),
        registry.resolve(REPOSITORY, "../1"),
        registry.resolve(REPOSITORY, ""),
        registry.tags("/charts"),
    ):
        with pytest.raises(AddressError):
            await odd
    with pytest.raises(AddressError):
        await registry.manifest("Charts", ABSENT)
    with pytest.raises(AddressError):
        await read(registry, Descriptor(HELM_CHART, ABSENT, 0), "charts/../web")


async def check_a_manifest_can_be_copied(registry: Registry) -> None:
    descriptor = await registry.resolve(REPOSITORY, "1.0.0")
    for reference in ("1.0.0", descriptor.digest):
        found, data = await registry.document(REPOSITORY, reference)
        assert (found, digest_of(data), len(data)) == (descriptor, descriptor.digest, descriptor.size)
    for absent in ("2.0.0", ABSENT):
        with pytest.raises(ArtifactNotFoundError):
            await registry.document(REPOSITORY, absent)
    for repository, reference in (("Charts", ABSENT), (REPOSITORY, "../1")):
        with pytest.raises(AddressError):
            await registry.document(repository, reference)
    assert await registry.referrers(REPOSITORY, descriptor.digest) == ()


READ_CONTRACT: list[ReadCheck] = [
    check_a_tagged_artifact_can_be_read,
    check_unknown_names_are_not_found,
    check_a_wrong_size_is_a_digest_error,
    check_reading_a_blob_can_be_stopped,
    check_a_manifest_can_be_copied,
    check_invalid_names_cannot_be_read,
]


async def check_a_manifest_without_a_tag_is_found_by_its_digest(registry: WritableRegistry) -> None:
    pushed = await push(registry, "1.0.0", b"one")
    _, data = await registry.document(REPOSITORY, pushed.digest)
    other = data.replace(b'"k":"v"', b'"k":"w"')
    written = await registry.push_manifest(REPOSITORY, "", other, OCI_MANIFEST)
    assert written.digest == digest_of(other)
    assert await registry.document(REPOSITORY, written.digest) == (written, other)
    assert await registry.tags(REPOSITORY) == ("1.0.0",)


async def check_referrers_are_read_from_their_tag(registry: WritableRegistry) -> None:
    """Check that referrers are read from the index at their tag if an old registry does not have the referrers API."""
    pushed = await push(registry, "1.0.0", b"one")
    signature = await push(registry, "signature", b"two")
    entry: JsonObject = {
        "mediaType": OCI_MANIFEST,
        "digest": signature.digest.text,
        "size": signature.size,
        "artifactType": "application/vnd.example",
    }
    await push_index(registry, f"sha256-{pushed.digest.hex}", entry)
    assert await registry.referrers(REPOSITORY, pushed.digest) == (("application/vnd.example", signature),)
    assert await registry.referrers(REPOSITORY, signature.digest) == ()


CONTRACT: list[Check] = [
    check_a_manifest_without_a_tag_is_found_by_its_digest,
    check_referrers_are_read_from_their_tag,
    check_an_index_resolves_to_its_image,
    check_empty_and_nested_indexes_are_refused,
    check_a_pushed_artifact_is_read_back,
    check_a_tag_can_be_moved_and_old_digests_remain_readable,
    check_pushing_again_changes_nothing,
    check_tags_are_sorted,
    check_missing_tags_digests_and_repositories_are_not_found,
    check_a_blob_with_a_wrong_size_is_a_digest_error,
    check_empty_and_large_blobs_are_read_back,
    check_a_blob_may_be_read_partly,
    check_a_task_may_make_requests_while_it_reads_a_blob,
    check_concurrent_reads_work,
    check_invalid_names_are_refused,
]
