"""A registry that is a folder of package folders, for authors: each package is packed when it is requested, unless its files
are unchanged since it was packed last (:mod:`~wharfinger.packages.registry.folder_packs`).

A package has one version, which its own files state, and so one tag; no other tag is found. A package without a version is
found under any tag. The same files give the same digest, and changed files give a different digest. The package that was
requested last is kept in memory, so that it is not packed again when its blobs are read.

If the root contains no folder ``global-hooks``, a request for the package ``global-hooks`` returns the root itself, as the
folder of the global hooks.
"""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.packages.definition.global_folder import GLOBAL_PACKAGE, read_global_definition
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.packages.registry.address import check_repository, check_tag
from wharfinger.packages.registry.folder_packs import FolderPacks, PackedIdentity
from wharfinger.packages.registry.manifest import read_manifest
from wharfinger.packages.registry.pusher import Package, pack_image, pack_package
from wharfinger.packages.registry.registry import Descriptor, Manifest
from wharfinger.packages.registry.verified_blob import ReadChunks, VerifiedBlob

CHUNK: Final = 256 * 1024


class FolderRegistry:
    """The package folders below ``root``; implements :class:`~wharfinger.packages.registry.registry.Registry`.

    ``packs`` has the manifests of folders that were packed before; an unchanged folder is packed again only if a blob is read.
    """

    def __init__(self, root: Path, packs: FolderPacks | None = None) -> None:
        self._root = root
        self._packs = packs or FolderPacks()
        self._packed: tuple[str, Package | None, PackedIdentity] | None = None

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor of the package's manifest, made from the current files of its folder.

        Raises ArtifactNotFoundError if the package has another version than ``tag``.
        """
        check_tag(tag)
        found = await self._look(repository)
        if found.tag not in {tag, ""}:
            raise ArtifactNotFoundError(
                f"{self._root / repository}: expected version {tag}, found {found.tag}; request version "
                f"{found.tag}, or change the version in the files of the folder"
            )
        return found.descriptor

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return the package's manifest; raise ArtifactNotFoundError if its files have another digest."""
        found = self._kept(repository)
        if found is None or found.descriptor.digest != digest:
            found = await self._look(repository)
        if found.descriptor.digest != digest:
            raise ArtifactNotFoundError(
                f"{self._root / repository}@{digest}: not found; the folder's files have the digest "
                f"{found.descriptor.digest} now"
            )
        return read_manifest(found.data, found.descriptor)

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the config or the layer of a package. If the package is not kept, it is packed from its current files."""
        package = await self._content(repository)
        what = f"{self._root / repository}@{blob.digest}"
        for one in (package.config, package.layer):
            if one.descriptor.digest == blob.digest:
                yield VerifiedBlob(ReadChunks(partial(_next_chunk, io.BytesIO(one.data))), blob, what)
                return
        raise ArtifactNotFoundError(f"{what}: not found: the folder's files have changed; request the package again")

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return the package's version; () if the package states no version."""
        tag = (await self._look(repository)).tag
        return (tag,) if tag else ()

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return the manifest of the package from its current files, by tag or by digest."""
        digest = reference if isinstance(reference, Digest) else (await self.resolve(repository, reference)).digest
        await self.manifest(repository, digest)
        found = self._kept(repository) or await self._look(repository)
        return found.descriptor, found.data

    async def referrers(self, repository: str, _digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return nothing: a folder of package folders has no signatures."""
        check_repository(repository)
        return ()

    def _kept(self, repository: str) -> PackedIdentity | None:
        return self._packed[2] if self._packed is not None and self._packed[0] == repository else None

    async def _look(self, repository: str) -> PackedIdentity:
        """Return the identity of the package with its current files. If the files are unchanged, they are not packed again."""
        check_repository(repository)
        self._packed = None  # free the kept package first: two packages together may be large
        package, identity = await trio.to_thread.run_sync(_look, self._root, repository, self._packs)
        self._packed = repository, package, identity
        return identity

    async def _content(self, repository: str) -> Package:
        """Return the kept package if it is the package of this repository, else pack the package from its current files."""
        check_repository(repository)
        if self._packed is not None and self._packed[0] == repository and self._packed[1] is not None:
            return self._packed[1]
        package = await trio.to_thread.run_sync(_pack, self._root, repository)
        self._packed = repository, package, _identity(package)
        return package


def _look(root: Path, repository: str, packs: FolderPacks) -> tuple[Package | None, PackedIdentity]:
    """Return the package from its current files (None if it need not be packed again), and its identity. Blocking."""
    folder = root / repository
    place = root if repository == GLOBAL_PACKAGE and not folder.is_dir() else folder
    fingerprint = packs.fingerprint(place)
    if (known := packs.find(place, fingerprint)) is not None:
        return None, known
    package = _pack(root, repository)
    identity = _identity(package)
    packs.keep(place, fingerprint, identity)
    return package, identity


def _identity(package: Package) -> PackedIdentity:
    manifest = package.manifest
    return PackedIdentity(package.tag, manifest.descriptor, manifest.data)


def _pack(root: Path, repository: str) -> Package:
    """Pack the package from its current files. Blocking."""
    folder = root / repository
    if folder.is_dir():
        return pack_package(folder, repository.rpartition("/")[2])
    if repository == GLOBAL_PACKAGE and root.is_dir():
        return pack_image(read_global_definition(root, version=""), root)
    raise ArtifactNotFoundError(f"{folder}: not found; there is no such folder")


async def _next_chunk(data: io.BytesIO) -> bytes:
    await trio.lowlevel.checkpoint()
    return data.read(CHUNK)
