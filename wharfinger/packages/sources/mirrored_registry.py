"""A repository with mirrors. Each request goes to these *places* in order, until one of them answers it: the mirrors, then the
repository itself.

If a place fails, or does not have the artifact, the next place is tried. If all fail, the error of the last place is raised,
with the errors of the places before it. Manifests and blobs are verified by digest, whichever place sent them. The list of
tags, the digest of a tag and the list of referrers depend on the place.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import replace
from typing import TypeVar

import trio

from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import AddressError, ArtifactNotFoundError, DigestError, PackageError, RegistryError
from wharfinger.packages.registry.address import RepositoryAddress, check_repository
from wharfinger.packages.registry.oci_registry import OciRegistry
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.sources.registry_rules import Candidate, RegistryRules

T = TypeVar("T")
Open = Callable[[Candidate], AbstractAsyncContextManager[Registry]]


class MirroredRegistry:
    """The mirrors of one repository, and the repository itself; implements
    :class:`~wharfinger.packages.registry.registry.Registry`.
    """

    def __init__(
        self, address: RepositoryAddress, rules: RegistryRules, open_place: Open, stack: AsyncExitStack
    ) -> None:
        """``address`` is a repository of the registry; ``stack`` holds the connections, and the caller closes the stack."""
        self._address = address
        self._rules = rules
        self._open = open_place
        self._stack = stack
        self._opened: dict[Candidate, Registry] = {}
        self._opening = trio.Lock()

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor of the manifest that a tag points at, from the first place that has the tag."""
        return await self._first(repository, lambda registry, path: registry.resolve(path, tag), by_digest=False)

    async def check(self, repository: str) -> None:
        """Check that the repository itself or one of its mirrors can be used. Raises PackageError if none of them can."""

        async def ask(registry: Registry, path: str) -> None:
            if isinstance(registry, OciRegistry):
                await registry.check(path)

        await self._first(repository, ask, by_digest=False)

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return a manifest by digest, from the first place that has it."""
        return await self._first(repository, lambda registry, path: registry.manifest(path, digest), by_digest=True)

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return the tags of a repository, from the first place (mirror or repository) that lists them."""
        return await self._first(repository, lambda registry, path: registry.tags(path), by_digest=False)

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return a manifest or an index as it is, from the first place that has it."""
        return await self._first(
            repository,
            lambda registry, path: registry.document(path, reference),
            by_digest=isinstance(reference, Digest),
        )

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return the referrers of an artifact, from the first place that has referrers of it."""

        async def known(registry: Registry, path: str) -> tuple[tuple[str, Descriptor], ...]:
            if found := await registry.referrers(path, digest):
                return found
            raise ArtifactNotFoundError(f"{path}@{digest}: no artifact refers to it")

        try:
            return await self._first(repository, known, by_digest=True)
        except ArtifactNotFoundError:
            return ()

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a blob from the first place that begins to send it."""
        async with AsyncExitStack() as stack:
            yield await self._first(
                repository,
                lambda registry, path: stack.enter_async_context(registry.blob(path, blob)),
                by_digest=True,
            )

    async def _first(self, repository: str, request: Callable[[Registry, str], Awaitable[T]], *, by_digest: bool) -> T:
        check_repository(repository)
        skipped = "tag-only" if by_digest else "digest-only"
        candidates = self._rules.candidates(replace(self._address, path=repository))
        places = [each for each in candidates if each.pull != skipped]
        failed: list[PackageError] = []
        for candidate in places:
            try:
                return await request(await self._registry(candidate), candidate.address.path)
            except PackageError as error:
                failed.append(error)
        raise _combined(failed)

    async def _registry(self, candidate: Candidate) -> Registry:
        async with self._opening:
            if candidate not in self._opened:
                self._opened[candidate] = await self._stack.enter_async_context(self._open(candidate))
            return self._opened[candidate]


def _combined(failed: list[PackageError]) -> PackageError:
    """Return the error for a request that failed everywhere: the error of the last place, with the errors of the places before
    it.
    """
    if not failed:
        return RegistryError(
            "no mirror accepts this kind of request (by tag or by digest); correct pull-from-mirror", transient=False
        )
    *mirrors, last = failed
    if not mirrors:
        return last
    text = f"{last}; its mirrors failed as well: {'; '.join(str(error) for error in mirrors)}"
    if isinstance(last, AddressError):
        return last
    if isinstance(last, DigestError):
        return DigestError(text, transient=last.transient)
    if isinstance(last, ArtifactNotFoundError) and not any(error.transient for error in mirrors):
        return ArtifactNotFoundError(text)
    return RegistryError(text, transient=any(error.transient for error in failed))
