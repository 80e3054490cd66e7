"""A registry of packages that are packed on request, from places that are not registries: Helm repositories, git repositories and
lists of archives.

A package gets the digest that `wharfinger package push` would give it. Only the package that was resolved last is kept in memory:
a request for another digest raises ArtifactNotFoundError.
"""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final, Protocol

import trio

from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactNotFoundError
from wharfinger.packages.registry.address import check_repository, check_tag
from wharfinger.packages.registry.manifest import read_manifest
from wharfinger.packages.registry.pusher import Package
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.registry.verified_blob import ReadChunks, VerifiedBlob

CHUNK: Final = 256 * 1024


class Packer(Protocol):
    """The interface of a place from which packages are packed, such as a git repository. The methods may raise PackageError."""

    async def pack(self, name: str, tag: str) -> Package:
        """Return a version of a package; raise ArtifactNotFoundError if it does not exist."""
        ...

    async def tags(self, name: str) -> tuple[str, ...]:
        """Return the tags of all versions of a package, sorted as text."""
        ...

    async def check(self) -> None:
        """Check that packages can be read from the source. Raises PackageError."""
        ...


class PackedRegistry:
    """The packages that a Packer packs; implements :class:`~wharfinger.packages.registry.registry.Registry`."""

    def __init__(self, packer: Packer, where: str) -> None:
        """``where`` is the name of the place in messages."""
        self._packer = packer
        self._where = where
        self._kept: tuple[str, Package] | None = None

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor of a version of a package; raise ArtifactNotFoundError if the version does not exist."""
        check_tag(tag)
        name = _checked(repository)
        self._kept = None  # free the kept package first: two packages together may be large
        package = await self._packer.pack(name, tag)
        self._kept = name, package
        return package.manifest.descriptor

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return the manifest of the package that was resolved last."""
        descriptor, data = await self.document(repository, digest)
        return read_manifest(data, descriptor)

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream the config or the layer of the package that was resolved last."""
        what = f"{self._where}/{_checked(repository)}@{blob.digest}"
        for one in self._blobs(repository):
            if one[0].digest == blob.digest:
                yield VerifiedBlob(ReadChunks(partial(_next_chunk, io.BytesIO(one[1]))), blob, what)
                return
        raise self._unknown(repository, blob.digest)

    async def check(self) -> None:
        """Raise PackageError if the place from which the packages are packed cannot be used."""
        await self._packer.check()

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return the tags of all versions of a package."""
        return await self._packer.tags(_checked(repository))

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return a manifest with its descriptor.

        ``reference`` is a version, or the digest of the package that was resolved last; no other digest is found.
        """
        _checked(repository)
        if isinstance(reference, str):
            await self.resolve(repository, reference)
        else:
            await trio.lowlevel.checkpoint()
        package = self._package(repository)
        if package is None or (isinstance(reference, Digest) and package.manifest.descriptor.digest != reference):
            raise self._unknown(repository, reference)
        return package.manifest.descriptor, package.manifest.data

    async def referrers(self, repository: str, _digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return (). Manifests that refer to a package, such as signatures, exist only in registries, and not in the places
        from which packages are packed.
        """
        _checked(repository)
        await trio.lowlevel.checkpoint()
        return ()

    def _package(self, repository: str) -> Package | None:
        return self._kept[1] if self._kept is not None and self._kept[0] == repository else None

    def _blobs(self, repository: str) -> tuple[tuple[Descriptor, bytes], ...]:
        package = self._package(repository)
        if package is None:
            return ()
        return tuple((each.descriptor, each.data) for each in (package.config, package.layer))

    def _unknown(self, repository: str, reference: Digest | str) -> ArtifactNotFoundError:
        return ArtifactNotFoundError(
            f"{self._where}/{repository}@{reference}: not found; request the package by its version again"
        )


async def pack_pinned(registry: Registry, repository: str, tag: str, digest: Digest) -> None:
    """Pack a version whose digest is pinned, so that it can be requested by the digest. Raises ArtifactNotFoundError if the
    version has another digest now.
    """
    found = (await registry.resolve(repository, tag)).digest
    if found != digest:
        raise ArtifactNotFoundError(
            f"{repository} {tag}: not found with the digest {digest}; for this version, the source now has the digest {found}; "
            "restore the former files of the version, or change what the resource pins (spec.packageDigest, spec.update.movedTag)"
        )


def _checked(repository: str) -> str:
    check_repository(repository)
    return repository


async def _next_chunk(data: io.BytesIO) -> bytes:
    await trio.lowlevel.checkpoint()
    return data.read(CHUNK)
