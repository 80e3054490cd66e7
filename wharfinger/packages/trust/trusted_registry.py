"""A registry whose artifacts are verified before their content is passed on.

It wraps another registry, so no caller can forget the verification. `resolve` and `manifest` raise TrustError unless the
policy trusts the requested manifest, or an index that contains it. `blob` returns a blob only if a trusted manifest names it.
An artifact whose signatures cannot be read is not trusted. `tags`, `document` and `referrers` verify nothing.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.version_constraint import parse_version
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, TrustError
from wharfinger.packages.registry.address import tag_of_version, version_of_tag
from wharfinger.packages.registry.manifest import blobs_of
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.trust.policy import Policy
from wharfinger.packages.trust.provenance import provenance_refusal
from wharfinger.packages.trust.signatures import find_signatures
from wharfinger.packages.trust.verification import Subject, refusal

_VERSION: Final = "org.opencontainers.image.version"


class TrustedRegistry:
    """The trusted artifacts of a registry; implements :class:`~wharfinger.packages.registry.registry.Registry`."""

    def __init__(self, registry: Registry, policy: Policy, where: str) -> None:
        """Serve only those artifacts of ``registry`` that ``policy`` trusts. ``where`` names the registry in messages."""
        self._registry = registry
        self._policy = policy
        self._where = where
        self._trusted: dict[tuple[str, Digest], Manifest] = {}
        self._blobs: set[tuple[str, Digest]] = set()

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor that a tag points at. Raises TrustError unless the policy trusts the artifact under this tag."""
        descriptor = await self._registry.resolve(repository, tag)
        await self._verified(repository, descriptor.digest, tag if is_version_tag(tag) else "")
        return descriptor

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return a manifest that the policy trusts. Raises TrustError if the policy does not trust it."""
        known = self._trusted.get((repository, digest))
        if known is not None:
            return known
        version = self._policy.version
        try:
            return await self._verified(repository, digest, tag_of_version(version) if version else "")
        except TrustError:
            found = await self._in_index(repository, digest, tag_of_version(version)) if version else None
            if found is None:
                raise
            return found

    async def _in_index(self, repository: str, digest: Digest, tag: str) -> Manifest | None:
        """Return a manifest that is trusted because ``tag`` points at a trusted index that contains it; None otherwise."""
        try:
            descriptor = await self._registry.resolve(repository, tag)
            if descriptor.digest == digest:
                return None
            found = await self._verified(repository, descriptor.digest, tag)
        except (ArtifactNotFoundError, ArtifactError, TrustError):
            return None
        return found if found.descriptor.digest == digest else None

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a blob of a trusted manifest. Raises TrustError."""
        if (repository, blob.digest) not in self._blobs:
            raise TrustError(
                f"{self._where}/{repository}@{blob.digest}: not trusted: no trusted manifest names this blob"
            )
        async with self._registry.blob(repository, blob) as chunks:
            yield chunks

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return all tags. Tags are not verified until `resolve` is called for one."""
        return await self._registry.tags(repository)

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return a manifest or an index without verifying it. Its blobs can be read only after it was verified."""
        return await self._registry.document(repository, reference)

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return the manifests that refer to an artifact."""
        return await self._registry.referrers(repository, digest)

    async def _verified(self, repository: str, digest: Digest, tag: str) -> Manifest:
        what = f"{self._where}/{repository}{f':{tag}' if tag else ''} ({digest})"
        if keyring := self._policy.keyring:
            manifest = await self._registry.manifest(repository, digest)
            return self._judged(
                repository,
                digest,
                manifest,
                what,
                await provenance_refusal(self._registry, repository, manifest, tag, keyring),
            )
        try:
            signatures = await find_signatures(
                self._registry, repository, digest, statements=bool(self._policy.predicates)
            )
        except ArtifactError as error:
            raise TrustError(f"{what}: not trusted: {error}") from error
        manifest = await self._registry.manifest(repository, digest)
        stated = dict(manifest.annotations).get(_VERSION, "")
        subject = Subject(digest, repository.rpartition("/")[2], tag.replace("_", "+"), stated)
        why = await trio.to_thread.run_sync(refusal, signatures, subject, self._policy)
        return self._judged(repository, digest, manifest, what, why)

    def _judged(self, repository: str, digest: Digest, manifest: Manifest, what: str, why: str) -> Manifest:
        """Record that a manifest is trusted, and return it. If ``why`` is not empty, raise TrustError for this reason instead."""
        if why:
            raise TrustError(f"{what}: not trusted: {why}")
        self._trusted[repository, digest] = self._trusted[repository, manifest.descriptor.digest] = manifest
        self._blobs.update((repository, blob.digest) for blob in blobs_of(manifest))
        return manifest


def is_version_tag(tag: str) -> bool:
    """Return whether a tag is a version; the tag of a channel is not. If a version is requested, signed content must state it."""
    try:
        parse_version(version_of_tag(tag))
    except FormatError:
        return False
    return True
