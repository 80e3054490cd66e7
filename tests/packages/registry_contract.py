"""What every implementation of :class:`wharfinger.packages.registry.Registry` must do, against an empty registry.

Use: ``@pytest.mark.parametrize("check", CONTRACT)`` and call ``await check(registry)``.
"""

from collections.abc import Awaitable, Callable

import pytest
import trio

from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import AddressError, ArtifactNotFoundError, DigestError
from wharfinger.packages.manifest import HELM_CHART, HELM_CONFIG, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry import Descriptor, Registry

Check = Callable[[Registry], Awaitable[None]]

ABSENT = Digest("sha256:" + "0" * 64)
REPOSITORY = "charts/web"


async def push(registry: Registry, tag: str, layer: bytes = b"layer", repository: str = REPOSITORY) -> Descriptor:
    config = await registry.push_blob(repository, HELM_CONFIG, b'{"name":"web"}')
    chart = await registry.push_blob(repository, HELM_CHART, layer)
    return await registry.push_manifest(repository, tag, write_manifest(config, (chart,), {"k": "v"}), OCI_MANIFEST)


async def read(registry: Registry, blob: Descriptor, repository: str = REPOSITORY) -> bytes:
    async with registry.blob(repository, blob) as chunks:
        return b"".join([chunk async for chunk in chunks])


async def check_what_is_pushed_comes_back(registry: Registry) -> None:
    pushed = await push(registry, "1.0.0", b"the chart's archive")
    assert await registry.resolve(REPOSITORY, "1.0.0") == pushed
    manifest = await registry.manifest(REPOSITORY, pushed.digest)
    assert manifest.descriptor == pushed
    assert manifest.config.media_type == manifest.artifact_type == HELM_CONFIG
    assert [layer.media_type for layer in manifest.layers] == [HELM_CHART]
    assert manifest.annotations == (("k", "v"),)
    assert await read(registry, manifest.config) == b'{"name":"web"}'
    assert await read(registry, manifest.layers[0]) == b"the chart's archive"


async def check_a_tag_moves_and_a_digest_stays(registry: Registry) -> None:
    first = await push(registry, "latest", b"first")
    second = await push(registry, "latest", b"second")
    assert first.digest != second.digest
    assert await registry.resolve(REPOSITORY, "latest") == second
    old = await registry.manifest(REPOSITORY, first.digest)
    assert await read(registry, old.layers[0]) == b"first"


async def check_pushing_again_changes_nothing(registry: Registry) -> None:
    assert await push(registry, "1.0.0") == await push(registry, "1.0.0")
    assert await registry.tags(REPOSITORY) == ("1.0.0",)


async def check_tags_are_sorted(registry: Registry) -> None:
    for tag in ("v2", "1.10.0", "1.9.0", "1.0.0_build"):
        await push(registry, tag)
    assert await registry.tags(REPOSITORY) == ("1.0.0_build", "1.10.0", "1.9.0", "v2")


async def check_what_is_not_there_is_not_found(registry: Registry) -> None:
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


async def check_a_descriptor_with_the_wrong_size_is_a_digest_error(registry: Registry) -> None:
    blob = await registry.push_blob(REPOSITORY, HELM_CHART, b"twelve bytes")
    for size in (0, 11, 13):
        with pytest.raises(DigestError):
            await read(registry, Descriptor(HELM_CHART, blob.digest, size))


async def check_empty_and_large_blobs(registry: Registry) -> None:
    for data in (b"", bytes(range(256)) * 12_000):
        blob = await registry.push_blob(REPOSITORY, HELM_CHART, data)
        assert blob == Descriptor(HELM_CHART, digest_of(data), len(data))
        assert await read(registry, blob) == data


async def check_a_blob_may_be_left_half_read(registry: Registry) -> None:
    data = bytes(range(256)) * 12_000
    blob = await registry.push_blob(REPOSITORY, HELM_CHART, data)
    async with registry.blob(REPOSITORY, blob) as chunks:
        assert data.startswith(await anext(chunks))
    async with registry.blob(REPOSITORY, blob):
        pass
    assert await read(registry, blob) == data


async def check_one_task_may_hold_a_blob_and_ask_for_more(registry: Registry) -> None:
    one = await registry.push_blob(REPOSITORY, HELM_CHART, b"one" * 100_000)
    async with registry.blob(REPOSITORY, one) as chunks:
        await push(registry, "1.0.0")
        assert await registry.tags(REPOSITORY) == ("1.0.0",)
        assert b"".join([chunk async for chunk in chunks]) == b"one" * 100_000


async def check_many_at_once(registry: Registry) -> None:
    blobs = [await registry.push_blob(REPOSITORY, HELM_CHART, bytes([number]) * 50_000) for number in range(20)]
    seen: dict[Digest, bytes] = {}

    async def fetch(blob: Descriptor) -> None:
        seen[blob.digest] = await read(registry, blob)

    async with trio.open_nursery() as nursery:
        for blob in blobs:
            nursery.start_soon(fetch, blob)
    assert seen == {digest_of(bytes([number]) * 50_000): bytes([number]) * 50_000 for number in range(20)}


async def check_names_outside_the_grammar_are_refused(registry: Registry) -> None:
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
        await registry.push_manifest(REPOSITORY, "", b"{}", OCI_MANIFEST)
    with pytest.raises(AddressError):
        await read(registry, Descriptor(HELM_CHART, ABSENT, 0), "?x=y")


CONTRACT: list[Check] = [
    check_what_is_pushed_comes_back,
    check_a_tag_moves_and_a_digest_stays,
    check_pushing_again_changes_nothing,
    check_tags_are_sorted,
    check_what_is_not_there_is_not_found,
    check_a_descriptor_with_the_wrong_size_is_a_digest_error,
    check_empty_and_large_blobs,
    check_a_blob_may_be_left_half_read,
    check_one_task_may_hold_a_blob_and_ask_for_more,
    check_many_at_once,
    check_names_outside_the_grammar_are_refused,
]
