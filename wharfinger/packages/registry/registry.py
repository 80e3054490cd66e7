"""The interface of a registry, from which packages are fetched, and to which `package push` uploads them.

Implementations that packages can be pushed to: :mod:`wharfinger.packages.registry.oci_registry` (the OCI distribution protocol
over httpx) and :mod:`wharfinger.packages.registry.oci_layout` (image layouts in a folder). Implementations that can only be read:
:mod:`wharfinger.packages.registry.folder_registry` (package folders, packed on request),
:mod:`wharfinger.packages.sources.packed_registry` (charts and archives, packed on request),
:mod:`wharfinger.packages.sources.mirrored_registry` (a registry with mirrors) and
:mod:`wharfinger.packages.trust.trusted_registry` (a registry with a policy of signatures). Their tests run the checks of
``tests/packages/support/registry_contract.py``.

Digests are always verified: a caller that reads a manifest or a blob through this interface gets bytes with the requested
digest, or a DigestError. Blobs are verified while they stream; the check follows the last chunk.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Protocol

from wharfinger.packages.digest import Digest


@dataclass(frozen=True, slots=True)
class Descriptor:
    """An OCI descriptor: media type, digest, and size in bytes of a blob or manifest."""

    media_type: str
    digest: Digest
    size: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """An OCI image manifest: its own descriptor, its config and its layers in order."""

    descriptor: Descriptor
    artifact_type: str
    config: Descriptor
    layers: tuple[Descriptor, ...]
    annotations: tuple[tuple[str, str], ...]


class Registry(Protocol):
    """One registry. ``repository`` is the path below its host, such as ``charts/podinfo``. Raises PackageError."""

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor of the manifest that a tag points at now; raise ArtifactNotFoundError if the tag does not
        exist.
        """
        ...

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return a manifest by digest, verified and read; an index is followed to its image for this machine.

        The result has the descriptor of the image's manifest, so its digest differs from ``digest`` if that names an index.
        """
        ...

    def blob(self, repository: str, blob: Descriptor) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Stream a blob; iteration ends with DigestError if digest or size differ from the descriptor."""
        ...

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return all tags, sorted as text."""
        ...

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return a manifest or an index as it is stored, by tag or by digest; if a digest is given, the bytes are verified."""
        ...

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return the manifests that refer to an artifact (OCI 1.1), each with its artifact type."""
        ...


class WritableRegistry(Registry, Protocol):
    """A registry to which artifacts can also be written. Its methods raise PackageError."""

    async def push_blob(self, repository: str, media_type: str, data: bytes) -> Descriptor:
        """Upload a blob, unless it is there already."""
        ...

    async def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> Descriptor:
        """Upload a manifest and point ``tag`` at it; with an empty tag it can be found by its digest only."""
        ...
