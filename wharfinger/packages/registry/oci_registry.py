"""A registry over the OCI distribution protocol: its requests, and the checks of their answers.

Built on :class:`~wharfinger.packages.registry.wire.Wire`, which knows connections, redirects and credentials; this module
knows manifests, blobs, tags and uploads (distribution spec 1.1). Its invariants:

* every result matches its digest: manifests are hashed before they are read, blobs while they stream, and digests in a
  registry's headers are ignored;
* every answer in memory is bounded, and a blob ends at the first byte beyond the size in its descriptor.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import httpx

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import decode_json, find_list
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import AddressError, DigestError, RegistryError
from wharfinger.packages.registry.address import RegistryAddress, Scheme, is_repository, is_tag
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.image_index import choose_manifest, is_index
from wharfinger.packages.registry.manifest import INDEXES, MAX_MANIFEST, READABLE, manifest_media_type, read_manifest
from wharfinger.packages.registry.registry import Descriptor, Manifest
from wharfinger.packages.registry.verified_blob import VerifiedBlob
from wharfinger.packages.registry.wire import Ask, Patience, Wire, open_wire

MAX_TAG_PAGES: Final = 1_000
MAX_TAGS: Final = 100_000
MAX_TAG_PAGE: Final = 8 * 1024 * 1024
TAGS_ASKED_FOR: Final = 1_000

_BYTES: Final = "application/octet-stream"
_PATIENCE: Final = Patience()
_ACCEPT: Final = ", ".join((*READABLE, *INDEXES))


class OciRegistry:
    """One registry; made by `open_registry`, implements :class:`~wharfinger.packages.registry.registry.WritableRegistry`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def __str__(self) -> str:
        """Return scheme, host and port."""
        return str(self._wire.base)

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        """Return the manifest of a tag, hashed here; raise ArtifactNotFoundError if there is none."""
        if not is_tag(tag):
            raise AddressError(f"{tag[:200]!r} is no tag")
        data, content_type = await self._get_manifest(repository, tag)
        return Descriptor(manifest_media_type(data, content_type), digest_of(data), len(data))

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        """Return a manifest by digest, through an index.

        Raises DigestError for other bytes, ArtifactError if it is no image manifest.
        """
        return await self._manifest(repository, digest, follow_index=True)

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        """Stream a blob in chunks as they arrive; it is checked at its end, or at the first byte beyond its size."""
        path = f"/v2/{_checked(repository)}/blobs/{blob.digest}"
        what = f"{self._wire.name}/{repository}@{blob.digest}"
        async with self._wire.exchange(Ask("GET", path, repository, what)) as incoming:
            announced = incoming.headers.get("content-length", "")
            if announced.isdecimal() and int(announced[:20]) != blob.size:
                raise DigestError(
                    f"{what}: the registry announces {announced[:20]} bytes, the manifest {blob.size}", transient=True
                )
            yield VerifiedBlob(incoming.chunks, blob, what, self._wire.patience.least)

    async def tags(self, repository: str) -> tuple[str, ...]:
        """Return all tags, sorted as text. Names that the grammar does not allow cannot be requested, and are left out."""
        url: str | httpx.URL = f"/v2/{_checked(repository)}/tags/list?n={TAGS_ASKED_FOR}"
        what = f"tags of {self._wire.name}/{repository}"
        found: set[str] = set()
        for _ in range(MAX_TAG_PAGES):
            answer = await self._wire.ask(Ask("GET", url, repository, what), max_bytes=MAX_TAG_PAGE)
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

    async def push_blob(self, repository: str, media_type: str, data: bytes) -> Descriptor:
        """Upload a blob in one piece, unless the registry has it. Raises RegistryError if the registry refuses it."""
        descriptor = Descriptor(media_type, digest_of(data), len(data))
        base = f"/v2/{_checked(repository)}/blobs"
        what = f"push of {self._wire.name}/{repository}@{descriptor.digest}"
        head = await self._wire.ask(
            Ask("HEAD", f"{base}/{descriptor.digest}", repository, what, write=True, accepted=(200, 404)), max_bytes=0
        )
        if head.status == 200 and head.headers.get("content-length") == str(len(data)):
            return descriptor
        start = await self._wire.ask(
            Ask("POST", f"{base}/uploads/", repository, what, write=True, accepted=(202,)), max_bytes=MAX_MANIFEST
        )
        location = start.headers.get("location", "")
        if not location:
            raise RegistryError(f"{what}: the registry gave no location for the upload", transient=True)
        place = self._wire.own_url(location, what).copy_merge_params({"digest": descriptor.digest.text})
        await self._wire.ask(
            Ask("PUT", place, repository, what, write=True, accepted=(201,), content=data, content_type=_BYTES),
            max_bytes=MAX_MANIFEST,
        )
        return descriptor

    async def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> Descriptor:
        """Upload a manifest and point ``tag`` at it; its blobs must be there."""
        if not is_tag(tag):
            raise AddressError(f"{tag[:200]!r} is no tag")
        path = f"/v2/{_checked(repository)}/manifests/{tag}"
        what = f"push of {self._wire.name}/{repository}:{tag}"
        await self._wire.ask(
            Ask("PUT", path, repository, what, write=True, accepted=(201,), content=manifest, content_type=media_type),
            max_bytes=MAX_MANIFEST,
        )
        return Descriptor(media_type, digest_of(manifest), len(manifest))

    async def _manifest(self, repository: str, digest: Digest, *, follow_index: bool) -> Manifest:
        data, content_type = await self._get_manifest(repository, digest.text)
        if digest_of(data) != digest:
            raise DigestError(
                f"{self._wire.name}/{repository}@{digest}: the registry sent {len(data)} bytes of another digest",
                transient=True,
            )
        descriptor = Descriptor(manifest_media_type(data, content_type), digest, len(data))
        if is_index(descriptor.media_type) and follow_index:
            return await self._manifest(repository, choose_manifest(data, descriptor).digest, follow_index=False)
        return read_manifest(data, descriptor)

    async def _get_manifest(self, repository: str, reference: str) -> tuple[bytes, str]:
        path = f"/v2/{_checked(repository)}/manifests/{reference}"
        what = f"{self._wire.name}/{repository}{'@' if ':' in reference else ':'}{reference}"
        answer = await self._wire.ask(Ask("GET", path, repository, what, accept=_ACCEPT), max_bytes=MAX_MANIFEST)
        return answer.body, answer.headers.get("content-type", "")


@asynccontextmanager
async def open_registry(
    address: RegistryAddress,
    *,
    scheme: Scheme,
    credentials: Credentials | None = None,
    ca: str = "",
    patience: Patience = _PATIENCE,
) -> AsyncIterator[OciRegistry]:
    """Open connections to one registry; they are closed on exit. Raises RegistryError.

    ``ca`` (PEM text) adds authorities to the system's.
    """
    async with open_wire(address, scheme=scheme, credentials=credentials, ca=ca, patience=patience) as wire:
        yield OciRegistry(wire)


def _checked(repository: str) -> str:
    if not is_repository(repository):
        raise AddressError(f"{repository[:200]!r} is no repository")
    return repository
