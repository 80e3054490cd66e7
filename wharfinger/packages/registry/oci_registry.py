"""A registry over the OCI distribution protocol: its requests, and the checks of their answers.

:class:`~wharfinger.packages.registry.connection.RegistryConnection` handles connections, redirects and credentials; this
module handles manifests, blobs, tags and uploads (distribution spec 1.1). Its invariants:

* every result matches its digest: manifests are hashed before they are parsed, and blobs while they stream. Digests in a
  registry's headers are ignored;
* every answer in memory is bounded, and a blob ends at the first byte beyond the size in its descriptor.
"""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import Final

import httpx

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import decode_json, find_list
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import ArtifactNotFoundError, DigestError, RegistryError
from wharfinger.packages.registry.address import RegistryAddress, Scheme, check_repository, check_tag, is_tag
from wharfinger.packages.registry.connection import (
    DIRECT,
    Answer,
    RegistryAccess,
    RegistryConnection,
    RegistryRequest,
    Timeouts,
    open_connection,
)
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.image_index import choose_manifest, is_index, read_referrers, referrers_tag
from wharfinger.packages.registry.manifest import (
    INDEXES,
    MAX_MANIFEST,
    OCI_INDEX,
    READABLE,
    manifest_media_type,
    read_manifest,
)
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.registry.resumed_chunks import ResumedChunks
from wharfinger.packages.registry.verified_blob import VerifiedBlob

MAX_TAG_PAGES: Final = 1_000
MAX_TAGS: Final = 100_000
MAX_TAG_PAGE: Final = 8 * 1024 * 1024
TAGS_ASKED_FOR: Final = 1_000
PIECE: Final = 8 * 1024 * 1024
"""The size of the pieces in which a blob is uploaded when it is copied, in bytes."""

_BYTES: Final = "application/octet-stream"
_PATIENCE: Final = Timeouts()
_ACCEPT: Final = ", ".join((*READABLE, *INDEXES))


class OciRegistry:
    """One registry; made by `open_registry`, implements :class:`~wharfinger.packages.registry.registry.WritableRegistry`."""

    def __init__(self, connection: RegistryConnection) -> None:
        self._connection = connection

    def __str__(self) -> str:
        """Return scheme, host and port."""
        return str(self._connection.base)

    async def check(self, repository: str) -> None:
        """Check that the server is a registry, and that it accepts the login. Raises RegistryError otherwise."""
        await self._connection.ask(
            RegistryRequest("GET", "/v2/", _checked(repository), self._connection.name), max_bytes=MAX_MANIFEST
        )

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the descriptor of a tag's manifest, with the digest of the bytes that were received. Raises
        ArtifactNotFoundError if there is no such tag.
        """
        check_tag(tag)
        data, content_type = await self._get_manifest(repository, tag)
        return Descriptor(manifest_media_type(data, content_type), digest_of(data), len(data))

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return a manifest by digest; for the digest of an index, return its manifest for this machine.

        Raises DigestError if the bytes do not match, ArtifactError if they are not an image manifest.
        """
        return await self._manifest(repository, digest, follow_index=True)

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a blob in chunks as they arrive; it is checked at its end, or at the first byte beyond its size."""
        path = f"/v2/{_checked(repository)}/blobs/{blob.digest}"
        what = f"{self._connection.name}/{repository}@{blob.digest}"
        async with AsyncExitStack() as stack:
            chunks = ResumedChunks(self._connection, RegistryRequest("GET", path, repository, what), blob, stack)
            await chunks.begin()
            yield VerifiedBlob(chunks, blob, what, self._connection.patience.least)

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return all tags, sorted as text. Names that the grammar does not allow cannot be requested, and are left out."""
        url: str | httpx.URL = f"/v2/{_checked(repository)}/tags/list?n={TAGS_ASKED_FOR}"
        what = f"tags of {self._connection.name}/{repository}"
        found: set[str] = set()
        for _ in range(MAX_TAG_PAGES):
            answer = await self._connection.ask(RegistryRequest("GET", url, repository, what), max_bytes=MAX_TAG_PAGE)
            try:
                listed = find_list(decode_json(answer.body, max_bytes=MAX_TAG_PAGE, what=what), "tags")
            except FormatError as error:
                raise RegistryError(f"{error}; is this a registry?", transient=False) from error
            before = len(found)
            found.update(tag for tag in listed if isinstance(tag, str) and is_tag(tag))
            following = answer.next_page
            if following is None or len(found) == before:
                return tuple(sorted(found))
            if len(found) > MAX_TAGS:
                break
            url = following
        raise RegistryError(
            f"{what}: more than {MAX_TAGS} tags or {MAX_TAG_PAGES} pages; delete old tags", transient=False
        )

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        """Return a manifest or an index as it is, by tag or by digest; raise ArtifactNotFoundError if it does not exist."""
        if isinstance(reference, str):
            check_tag(reference)
        data, content_type = await self._get_manifest(repository, str(reference))
        found = Descriptor(manifest_media_type(data, content_type), digest_of(data), len(data))
        if isinstance(reference, Digest):
            self._check(repository, found, reference)
        return found, data

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        """Return the referrers of an artifact, each with its artifact type. If the registry lacks the referrers API of OCI 1.1,
        read the index under the tag for referrers.
        """
        path = f"/v2/{_checked(repository)}/referrers/{digest}"
        what = f"referrers of {self._connection.name}/{repository}@{digest}"
        ask = RegistryRequest("GET", path, repository, what, accept=OCI_INDEX, accepted=(200, 400, 404, 405))
        answer = await self._connection.ask(ask, max_bytes=MAX_MANIFEST)
        if answer.status == 200:
            return read_referrers(answer.body, what)
        try:
            _, data = await self.document(repository, referrers_tag(digest))
        except ArtifactNotFoundError:
            return ()
        return read_referrers(data, what)

    async def push_blob(self, repository: str, media_type: str, data: bytes) -> Descriptor:
        """Upload a blob in one piece, unless the registry has it. Raises RegistryError if the registry refuses it."""
        descriptor = Descriptor(media_type, digest_of(data), len(data))
        base = f"/v2/{_checked(repository)}/blobs"
        what = f"push of {self._connection.name}/{repository}@{descriptor.digest}"
        head = await self._connection.ask(
            RegistryRequest("HEAD", f"{base}/{descriptor.digest}", repository, what, write=True, accepted=(200, 404)),
            max_bytes=0,
        )
        if head.status == 200 and head.headers.get("content-length") == str(len(data)):
            return descriptor
        start = await self._connection.ask(
            RegistryRequest("POST", f"{base}/uploads/", repository, what, write=True, accepted=(202,)),
            max_bytes=MAX_MANIFEST,
        )
        place = self._upload_place(start, what).copy_merge_params({"digest": descriptor.digest.text})
        await self._connection.ask(
            RegistryRequest(
                "PUT", place, repository, what, write=True, accepted=(201,), content=data, content_type=_BYTES
            ),
            max_bytes=MAX_MANIFEST,
        )
        return descriptor

    async def has_blob(self, repository: str, blob: Descriptor) -> bool:
        """Return whether the registry has a blob with this digest and size."""
        path, what = (
            f"/v2/{_checked(repository)}/blobs/{blob.digest}",
            f"{self._connection.name}/{repository}@{blob.digest}",
        )
        ask = RegistryRequest("HEAD", path, repository, what, write=True, accepted=(200, 404))
        head = await self._connection.ask(ask, max_bytes=0)
        return head.status == 200 and head.headers.get("content-length") == str(blob.size)

    async def copy_blob(self, repository: str, blob: Descriptor, source: Registry, source_repository: str) -> None:
        """Copy a blob from another registry in pieces, so that a large blob is never in memory as a whole. It is verified while
        it is read.
        """
        path = f"/v2/{_checked(repository)}/blobs/uploads/"
        what = f"push of {self._connection.name}/{repository}@{blob.digest}"
        start = RegistryRequest("POST", path, repository, what, write=True, accepted=(202,))
        place, sent = self._upload_place(await self._connection.ask(start, max_bytes=MAX_MANIFEST), what), 0
        async with source.blob(source_repository, blob) as chunks, aclosing(_pieces(chunks)) as pieces:
            async for piece in pieces:
                span = ("Content-Range", f"{sent}-{sent + len(piece) - 1}")
                ask = RegistryRequest(
                    "PATCH", place, repository, what, write=True, accepted=(202, 204), headers=(span,)
                )
                ask = replace(ask, content=piece, content_type=_BYTES)
                place = self._upload_place(await self._connection.ask(ask, max_bytes=MAX_MANIFEST), what)
                sent += len(piece)
        place = place.copy_merge_params({"digest": blob.digest.text})
        await self._connection.ask(
            RegistryRequest("PUT", place, repository, what, write=True, accepted=(201,), content_type=_BYTES),
            max_bytes=MAX_MANIFEST,
        )

    def _upload_place(self, answer: Answer, what: str) -> httpx.URL:
        location = answer.headers.get("location", "")
        if not location:
            raise RegistryError(f"{what}: the registry gave no location for the upload", transient=True)
        return self._connection.own_url(location, what)

    async def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> Descriptor:
        """Upload a manifest and point ``tag`` at it; its blobs must have been uploaded."""
        if tag:
            check_tag(tag)
        path = f"/v2/{_checked(repository)}/manifests/{tag or digest_of(manifest)}"
        what = f"push of {self._connection.name}/{repository}{f':{tag}' if tag else f'@{digest_of(manifest)}'}"
        await self._connection.ask(
            RegistryRequest(
                "PUT", path, repository, what, write=True, accepted=(201,), content=manifest, content_type=media_type
            ),
            max_bytes=MAX_MANIFEST,
        )
        return Descriptor(media_type, digest_of(manifest), len(manifest))

    async def _manifest(self, repository: str, digest: Digest, *, follow_index: bool) -> Manifest:
        data, content_type = await self._get_manifest(repository, digest.text)
        descriptor = Descriptor(manifest_media_type(data, content_type), digest_of(data), len(data))
        self._check(repository, descriptor, digest)
        if is_index(descriptor.media_type) and follow_index:
            return await self._manifest(repository, choose_manifest(data, descriptor).digest, follow_index=False)
        return read_manifest(data, descriptor)

    def _check(self, repository: str, found: Descriptor, digest: Digest) -> None:
        if found.digest != digest:
            raise DigestError(
                f"{self._connection.name}/{repository}@{digest}: the registry sent {found.size} bytes of another digest",
                transient=True,
            )

    async def _get_manifest(self, repository: str, reference: str) -> tuple[bytes, str]:
        path = f"/v2/{_checked(repository)}/manifests/{reference}"
        what = f"{self._connection.name}/{repository}{'@' if ':' in reference else ':'}{reference}"
        answer = await self._connection.ask(
            RegistryRequest("GET", path, repository, what, accept=_ACCEPT), max_bytes=MAX_MANIFEST
        )
        return answer.body, answer.headers.get("content-type", "")


@asynccontextmanager
async def open_registry(
    address: RegistryAddress,
    *,
    scheme: Scheme,
    credentials: Credentials | None = None,
    ca: str = "",
    patience: Timeouts = _PATIENCE,
    access: RegistryAccess = DIRECT,
) -> AsyncIterator[OciRegistry]:
    """Open connections to one registry; they are closed on exit. Raises RegistryError.

    ``ca`` (PEM text) adds authorities to the system's.
    """
    async with open_connection(
        address, scheme=scheme, credentials=credentials, ca=ca, patience=patience, access=access
    ) as connection:
        yield OciRegistry(connection)


async def _pieces(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the bytes in pieces of PIECE bytes; the last one may be shorter."""
    pending = bytearray()
    async for chunk in chunks:
        pending += chunk
        while len(pending) >= PIECE:
            yield bytes(pending[:PIECE])
            del pending[:PIECE]
    if pending:
        yield bytes(pending)


def _checked(repository: str) -> str:
    check_repository(repository)
    return repository
