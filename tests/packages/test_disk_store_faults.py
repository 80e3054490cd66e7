"""Faults of the store: broken transfers, invalid archives, disk errors, and a second process."""

import errno
import io
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from tests.packages.support.memory_registry import MemoryRegistry, chart_archive, packed, put, put_image
from tests.packages.support.store_help import REPOSITORY, bring, edit, listing
from wharfinger.formats.archives.archive import ArchiveLimits
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, StoreError
from wharfinger.packages.files.disk_files import discard
from wharfinger.packages.registry.manifest import package_layers
from wharfinger.packages.store.disk_store import StoreLimits, open_store
from wharfinger.packages.store.tree import is_sound

P = ParamSpec("P")
T = TypeVar("T")


async def test_a_failed_download_leaves_no_files(tmp_path: Path) -> None:
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
async def test_invalid_chart_archives_are_not_installed(archive: bytes, tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry, archive=archive)
    async with open_store(tmp_path) as store:
        await store.download(registry, REPOSITORY, manifest)
        with pytest.raises(ArtifactError):
            await store.install(manifest)
        assert listing(tmp_path)["trees"] == listing(tmp_path)["tmp"] == []


async def test_images_with_invalid_layers_are_refused(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    limits = StoreLimits(archive=ArchiveLimits(max_entries=2))
    refused = await put_image(registry, packed({"a": b""}), media_type="application/vnd.oci.image.layer.v1.tar+zstd")
    async with open_store(tmp_path, limits) as store:
        with pytest.raises(ArtifactError, match="compressed with zstd"):
            await store.download(registry, REPOSITORY, refused)
        assert registry.fetched == {}
        for layers, why in (
            ([b"\x28\xb5\x2f\xfd zstd all the same"], "layer sha256:.*: compressed with zstd"),
            ([packed({"a": b""}), b"no archive"], "layer sha256:.*: truncated"),
            ([packed({"a": b"", "b": b""}), packed({"c": b""})], "more than 2 "),
            ([packed({"a": b""}), packed({".wh.a": b""})], "contain no files"),
            ([packed({"../a": b""})], "leads out of the tree"),
        ):
            manifest = await put_image(registry, *layers)
            await store.download(registry, REPOSITORY, manifest)
            with pytest.raises(ArtifactError, match=rf"package {manifest.descriptor.digest}: .*{why}"):
                await store.install(manifest)
        assert listing(tmp_path)["trees"] == listing(tmp_path)["tmp"] == []


async def test_a_damaged_upper_layer_is_reported(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put_image(registry, packed({"a": b""}), packed({"b": b""}))
    blob = tmp_path / "store/blobs/sha256" / manifest.layers[1].digest.hex
    async with open_store(tmp_path) as store:
        await store.download(registry, REPOSITORY, manifest)
        blob.write_bytes(blob.read_bytes()[:-1] + b"x")
        with pytest.raises(StoreError, match=f"blob {manifest.layers[1].digest}: damaged on disk"):
            await store.install(manifest)
        blob.unlink()
        with pytest.raises(StoreError, match="not downloaded"):
            await store.install(manifest)
        assert listing(tmp_path)["trees"] == listing(tmp_path)["tmp"] == []


async def test_an_oversized_package_is_not_downloaded(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    async with open_store(tmp_path, StoreLimits(package_bytes=1000)) as store:
        with pytest.raises(ArtifactError, match="over the limit of 1000"):
            await store.download(registry, REPOSITORY, manifest)
    assert registry.fetched == {}


async def test_blobs_larger_than_the_write_buffer_are_stored(tmp_path: Path) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry, archive=chart_archive(padding=1_000_000))
    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
        blob = tmp_path / "store/blobs/sha256" / package_layers(manifest)[0].digest.hex
        assert blob.stat().st_size > 1_000_000


async def test_a_store_is_used_by_one_process_at_a_time(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        with pytest.raises(StoreError, match="another process uses this store"):
            async with open_store(tmp_path):
                raise AssertionError("must not open")
    async with open_store(tmp_path):
        pass


async def test_leftovers_of_a_killed_process_are_deleted(tmp_path: Path) -> None:
    async with open_store(tmp_path):
        pass
    (tmp_path / "store/tmp/1-1").mkdir()
    (tmp_path / "store/tmp/1-2").write_text("half a blob")
    async with open_store(tmp_path):
        assert listing(tmp_path)["tmp"] == []


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.ENOSPC, "the disk is full: free some space"), (errno.EACCES, "no permission"), (errno.EROFS, "read-only")],
)
async def test_a_disk_error_leaves_no_partial_files(
    number: int, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


async def test_a_state_folder_that_cannot_be_created_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="opening the store"):
        async with open_store(tmp_path / "file"):
            raise AssertionError("must not open")


async def test_a_full_disk_fails_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MemoryRegistry()
    manifest = await put(registry)
    monkeypatch.setattr("wharfinger.packages.store.disk_store._create", lambda path: io.FileIO("/dev/full", "wb"))
    async with open_store(tmp_path) as store:
        with pytest.raises(StoreError, match="the disk is full"):
            await store.download(registry, REPOSITORY, manifest)
        assert listing(tmp_path)["blobs"] == []


async def test_a_damaged_tree_stays_until_its_replacement_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Packages run from the tree, so only two renames may lie between the damaged tree and its replacement."""
    registry = MemoryRegistry()
    manifest = await put(registry)
    tree = tmp_path / "store/trees" / manifest.descriptor.digest.hex
    calls: list[str] = []

    def noted(call: Callable[P, T]) -> Callable[P, T]:
        def instead(*args: P.args, **kwargs: P.kwargs) -> T:
            calls.append(f"{call.__name__} {'there' if tree.exists() else 'gone'}")
            return call(*args, **kwargs)

        return instead

    async with open_store(tmp_path) as store:
        await bring(store, registry, manifest)
        edit(tree / "package/more")
        for name in ("rename", "unlink", "rmdir", "mkdir", "symlink", "fsync"):
            monkeypatch.setattr(os, name, noted(getattr(os, name)))
        await store.install(manifest)
        monkeypatch.undo()
        assert is_sound(tree)
        assert not (tree / "package/more").exists()
    assert [call for call in calls if call.endswith("gone")] == ["rename gone"]
    assert {"unlink there", "rename there"} <= set(calls)


async def test_leftovers_of_a_failure_are_deleted_in_a_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    registry = MemoryRegistry()
    manifest = await put_image(registry, packed({"a": b""}), b"no archive")
    threads: list[bool] = []

    def noted(path: Path) -> None:
        threads.append(threading.current_thread() is threading.main_thread())
        discard(path)

    monkeypatch.setattr("wharfinger.packages.store.disk_store.discard", noted)
    async with open_store(tmp_path) as store:
        await store.download(registry, REPOSITORY, manifest)
        with pytest.raises(ArtifactError):
            await store.install(manifest)
        assert threads == [False]
        assert listing(tmp_path)["tmp"] == []
        assert store.statistics()["temporary"] == 0
