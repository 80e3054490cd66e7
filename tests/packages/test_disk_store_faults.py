"""What the store does when something is wrong: broken transfers, bad archives, disks that refuse, a second process."""

import errno
import io
import os
from pathlib import Path

import pytest

from tests.packages.memory_registry import MemoryRegistry, chart_archive, put
from tests.packages.store_help import REPOSITORY, bring, listing
from wharfinger.packages.disk_store import StoreLimits, open_store
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, StoreError
from wharfinger.packages.manifest import chart_layer


async def test_a_transfer_that_fails_leaves_nothing(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    layer = manifest.layers[0]
    right = registry.blobs[REPOSITORY, layer.digest]
    async with open_store(tmp_path) as store:
        registry.blobs[REPOSITORY, layer.digest] = right[:-1] + bytes([right[-1] ^ 1])
        with pytest.raises(DigestError):
            await store.download(registry, REPOSITORY, manifest)
        del registry.blobs[REPOSITORY, layer.digest]
        with pytest.raises(ArtifactNotFoundError):
            await store.download(registry, REPOSITORY, manifest)
        assert listing(tmp_path)["blobs"] == [manifest.config.digest.hex]
        assert listing(tmp_path)["tmp"] == []
        registry.blobs[REPOSITORY, layer.digest] = right
        await bring(store, registry, manifest)


@pytest.mark.parametrize(
    "archive", [b"", b"not an archive", chart_archive()[:200], chart_archive(name="", version="1")]
)
async def test_what_is_no_chart_is_not_installed(archive: bytes, tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry, archive=archive)
    async with open_store(tmp_path) as store:
        await store.download(registry, REPOSITORY, manifest)
        with pytest.raises(ArtifactError):
            await store.install(manifest)
        assert listing(tmp_path)["trees"] == listing(tmp_path)["tmp"] == []


async def test_an_archive_with_a_wrong_chart_file(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry, archive=chart_archive(version="none"))
    async with open_store(tmp_path) as store:
        await store.download(registry, REPOSITORY, manifest)
        with pytest.raises(ArtifactError, match="no semantic version"):
            await store.install(manifest)


async def test_a_package_that_is_too_big(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path, StoreLimits(package_bytes=1000)) as store:
        with pytest.raises(ArtifactError, match="over the limit of 1000"):
            await store.download(registry, REPOSITORY, manifest)
    assert registry.fetched == {}


async def test_blobs_longer_than_what_is_written_at_once(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry, archive=chart_archive(padding=1_000_000))
    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
        blob = tmp_path / "store/blobs/sha256" / chart_layer(manifest).digest.hex
        assert blob.stat().st_size > 1_000_000


async def test_one_process_at_a_time(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        with pytest.raises(StoreError, match="another process uses this store"):
            async with open_store(tmp_path):
                raise AssertionError("must not open")
    async with open_store(tmp_path):
        pass


async def test_what_a_killed_process_left_is_cleared(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        pass
    (tmp_path / "store/tmp/1-1").mkdir()
    (tmp_path / "store/tmp/1-2").write_text("half a blob")
    async with open_store(tmp_path):
        assert listing(tmp_path)["tmp"] == []


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "the disk is full: make room"), (errno.EACCES, "no permission"), (errno.EROFS, "read-only")],
)
async def test_a_disk_that_refuses(number: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)

    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    async with open_store(tmp_path) as store:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(StoreError, match=says) as caught:
                await store.download(registry, REPOSITORY, manifest)
            assert caught.value.transient
        await store.download(registry, REPOSITORY, manifest)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", refuse)
            with pytest.raises(StoreError, match=says):
                await store.install(manifest)
        assert listing(tmp_path)["trees"] == listing(tmp_path)["tmp"] == []
        await bring(store, registry, manifest)


async def test_a_state_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="opening the store"):
        async with open_store(tmp_path / "file"):
            raise AssertionError("must not open")


async def test_a_full_disk_while_downloading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    monkeypatch.setattr("wharfinger.packages.disk_store._create", lambda path: io.FileIO("/dev/full", "wb"))
    async with open_store(tmp_path) as store:
        with pytest.raises(StoreError, match="the disk is full"):
            await store.download(registry, REPOSITORY, manifest)
        assert listing(tmp_path)["blobs"] == []
