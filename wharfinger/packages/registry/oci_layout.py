"""A registry that is a folder: each repository below it is an OCI image layout (image-spec 1.1, "Image Layout").

::

    <root>/<repository>/oci-layout                 the version of the layout; locked while the index is rewritten
    <root>/<repository>/index.json                 the manifests, each with its tag in an annotation
    <root>/<repository>/blobs/sha256/<hex>         manifests, configs and layers

Such a folder may come from a memory stick, so reads are verified as over a network: manifests before they are parsed, blobs while
they stream. Written files are complete or absent: blobs and the index are renamed into place, the index last.
"""

import fcntl
import io
import os
import secrets
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final, TypeVar

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, decode_json, encode_json, find, find_list
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, RegistryError
from wharfinger.packages.files.disk_files import discard, has_content, publish, sync_file
from wharfinger.packages.registry.address import check_repository, check_tag, is_tag
from wharfinger.packages.registry.image_index import (
    choose_entry,
    choose_manifest,
    is_index,
    read_referrers,
    referrers_tag,
)
from wharfinger.packages.registry.manifest import MAX_MANIFEST, OCI_INDEX, manifest_media_type, read_manifest
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.registry.verified_blob import ReadChunks, VerifiedBlob

T = TypeVar("T")

LAYOUT_FILE: Final = "oci-layout"
INDEX_FILE: Final = "index.json"
MAX_INDEX: Final = 16 * 1024 * 1024
CHUNK: Final = 256 * 1024
_VERSION: Final[JsonObject] = {"imageLayoutVersion": "1.0.0"}
_EMPTY: Final[JsonObject] = {"schemaVersion": 2, "mediaType": OCI_INDEX}
_TAG: Final = "org.opencontainers.image.ref.name"


class OciLayout:
    """The layouts below ``root``; implements :class:`~wharfinger.packages.registry.registry.WritableRegistry`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor whose name in the index is ``tag``; raise ArtifactNotFoundError if the index has no such name."""
        check_tag(tag)
        folder = self._folder(repository)
        what = f"{folder}:{tag}"
        named = [entry for entry in await self._entries(folder) if find(entry, "annotations", _TAG) == tag]
        if not named:
            raise ArtifactNotFoundError(f"{what}: not found; push it, or correct the tag")
        try:
            descriptor = choose_entry(named)
        except (FormatError, ArtifactError, DigestError) as error:
            raise ArtifactError(f"{folder / INDEX_FILE}: {error}") from error
        data = await self._manifest_bytes(folder, descriptor.digest)
        return Descriptor(manifest_media_type(data, descriptor.media_type), descriptor.digest, len(data))

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return a manifest by digest; for the digest of an index, return its manifest for this machine.

        Raises DigestError if the bytes do not match, ArtifactError if they are not an image manifest.
        """
        folder = self._folder(repository)
        data = await self._manifest_bytes(folder, digest)
        descriptor = Descriptor(manifest_media_type(data, ""), digest, len(data))
        if is_index(descriptor.media_type):
            chosen = choose_manifest(data, descriptor)
            data = await self._manifest_bytes(folder, chosen.digest)
            descriptor = Descriptor(manifest_media_type(data, chosen.media_type), chosen.digest, len(data))
        return read_manifest(data, descriptor)

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a blob; it is checked at its end, or at the first byte beyond its size."""
        folder = self._folder(repository)
        what = f"{folder}@{blob.digest}"
        with await _run(what, partial(_open, _blob_path(folder, blob.digest))) as file:
            yield VerifiedBlob(ReadChunks(partial(_run, what, partial(file.read, CHUNK))), blob, what)

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return all names in the index that are valid tags, sorted as text."""
        entries = await self._entries(self._folder(repository))
        names = (find(entry, "annotations", _TAG) for entry in entries)
        return tuple(sorted({name for name in names if isinstance(name, str) and is_tag(name)}))

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return a manifest or an index as it is, by tag or by digest; raise ArtifactNotFoundError if it does not exist."""
        digest = reference if isinstance(reference, Digest) else (await self.resolve(repository, reference)).digest
        data = await self._manifest_bytes(self._folder(repository), digest)
        return Descriptor(manifest_media_type(data, ""), digest, len(data)), data

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return the referrers of an artifact. The layout lists them in an index under the artifact's tag for referrers."""
        try:
            _, data = await self.document(repository, referrers_tag(digest))
        except ArtifactNotFoundError:
            return ()
        return read_referrers(data, f"referrers of {self._root / repository}@{digest}")

    async def push_blob(self, repository: str, media_type: str, data: bytes) -> Descriptor:
        """Write a blob unless it exists; make the layout if it does not exist."""
        folder = self._folder(repository)
        digest = digest_of(data)
        await _run(f"push of {folder}@{digest}", partial(_write_blob, folder, digest, data))
        return Descriptor(media_type, digest, len(data))

    async def has_blob(self, repository: str, blob: Descriptor) -> bool:
        """Return whether the blob is stored and undamaged."""
        path = _blob_path(self._folder(repository), blob.digest)
        return await _run(f"{path}", partial(_is_there, path, blob.digest, blob.size))

    async def copy_blob(self, repository: str, blob: Descriptor, source: Registry, source_repository: str) -> None:
        """Copy a blob from another registry into a file, which gets its final name once all bytes are verified."""
        folder = self._folder(repository)
        what, path = f"push of {folder}@{blob.digest}", _blob_path(folder, blob.digest)
        await _run(what, partial(_prepare, folder))
        temporary = folder / f".new-{secrets.token_hex(8)}"
        try:
            with await _run(what, partial(_create, temporary)) as file:
                async with source.blob(source_repository, blob) as chunks:
                    async for chunk in chunks:
                        await _run(what, partial(file.write, chunk))
            await _run(what, partial(_finish, temporary, path))
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(discard, temporary)

    async def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> Descriptor:
        """Write a manifest, and point ``tag`` at it; with an empty tag, it can be found by its digest only."""
        if tag:
            check_tag(tag)
        folder = self._folder(repository)
        descriptor = Descriptor(media_type, digest_of(manifest), len(manifest))

        def write() -> None:
            _write_blob(folder, descriptor.digest, manifest)
            if tag:
                _point(folder, tag, descriptor)

        await _run(f"push of {folder}:{tag}", write)
        return descriptor

    def _folder(self, repository: str) -> Path:
        check_repository(repository)
        return self._root / repository

    async def _entries(self, folder: Path) -> list[JsonValue]:
        return find_list(await _run(str(folder), partial(_read_index, folder)), "manifests")

    async def _manifest_bytes(self, folder: Path, digest: Digest) -> bytes:
        what = f"{folder}@{digest}"
        data = await _run(what, partial(_read, _blob_path(folder, digest), MAX_MANIFEST))
        if digest_of(data) != digest:
            raise DigestError(f"{what}: the file has another digest; copy the layout again")
        return data


def _blob_path(folder: Path, digest: Digest) -> Path:
    return folder / "blobs" / "sha256" / digest.hex


def _prepare(folder: Path) -> None:
    """Make the folders of a layout, and the file with its version."""
    (folder / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
    marker = folder / LAYOUT_FILE
    if not marker.exists():
        with _written(folder, encode_json(_VERSION)) as temporary, suppress(FileExistsError):
            # Linked, not renamed: a rename would replace a file that another process has locked.
            marker.hardlink_to(temporary)


def _create(path: Path) -> io.BufferedWriter:
    return path.open("xb")


def _finish(temporary: Path, path: Path) -> None:
    sync_file(temporary)
    publish(temporary, path)


def _write_blob(folder: Path, digest: Digest, data: bytes) -> None:
    path = _blob_path(folder, digest)
    _prepare(folder)
    if not _is_there(path, digest, len(data)):
        with _written(folder, data) as temporary:
            publish(temporary, path)


def _point(folder: Path, tag: str, descriptor: Descriptor) -> None:
    entry: JsonObject = {
        "mediaType": descriptor.media_type,
        "digest": descriptor.digest.text,
        "size": descriptor.size,
        "annotations": {_TAG: tag},
    }
    with _locked(folder / LAYOUT_FILE):
        index = _read_index(folder) if (folder / INDEX_FILE).exists() else dict(_EMPTY)
        others = [other for other in find_list(index, "manifests") if find(other, "annotations", _TAG) != tag]
        with _written(folder, encode_json({**index, "manifests": [*others, entry]})) as temporary:
            publish(temporary, folder / INDEX_FILE)


@contextmanager
def _written(folder: Path, data: bytes) -> Iterator[Path]:
    """Yield a temporary file in ``folder`` with the data, which is synced to the disk. The caller renames or links it; what is
    left of it is deleted at the end.
    """
    temporary = folder / f".new-{secrets.token_hex(8)}"
    try:
        temporary.write_bytes(data)
        sync_file(temporary)
        yield temporary
    finally:
        discard(temporary)


def _read_index(folder: Path) -> JsonObject:
    """Return a layout's index, and check that all items of its ``manifests`` are objects. Raises OSError, ArtifactError."""
    path = folder / INDEX_FILE
    try:
        index = as_object(decode_json(_read(path, MAX_INDEX), max_bytes=MAX_INDEX, what="index"), "index")
        for number, entry in enumerate(find_list(index, "manifests")):
            as_object(entry, f"manifests.{number}")
    except FormatError as error:
        raise ArtifactError(f"{path}: {error}; this is not an OCI image layout, or it is damaged") from error
    return index


def _read(path: Path, limit: int) -> bytes:
    with _open(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ArtifactError(f"{path}: more than {limit} bytes")
    return data


def _open(path: Path) -> io.BufferedReader:
    """Open a file for reading. Raises OSError, and ArtifactError if it is not a regular file."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise ArtifactError(f"{path}: not a file")
    return file


def _is_there(path: Path, digest: Digest, size: int) -> bool:
    try:
        with _open(path) as file:
            return has_content(file, digest.hex, size)
    except FileNotFoundError:
        return False


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold the lock of a layout's index, so that no other task or process rewrites the index at the same time."""
    with path.open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


async def _run(what: str, work: Callable[[], T]) -> T:
    """Run disk work in a thread. Raises PackageError."""
    try:
        return await trio.to_thread.run_sync(work)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ArtifactNotFoundError(f"{what}: not found: there is no {error.filename}") from error
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        raise RegistryError(f"{what}: {error.strerror or error}{where}; check the folder", transient=True) from error
