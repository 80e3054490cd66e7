"""A registry in memory, for tests of code that uses registries. It fulfills the contract of registries, counts downloads, and
can be paused.
"""

import gzip
import io
import random
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from tests.packages.support.charts import CONFIG_MAP
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import AddressError, ArtifactNotFoundError, DigestError
from wharfinger.packages.registry.address import is_repository, is_tag
from wharfinger.packages.registry.image_index import choose_manifest, is_index, read_referrers, referrers_tag
from wharfinger.packages.registry.manifest import (
    HELM_CHART,
    HELM_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    PACKAGE_CONFIG,
    manifest_media_type,
    read_manifest,
    write_manifest,
)
from wharfinger.packages.registry.registry import Descriptor, Manifest

CHUNK = 4096


async def _go_on(_blob: Descriptor) -> None:
    await trio.lowlevel.checkpoint()


@dataclass
class MemoryRegistry:
    """A registry. ``before_chunk`` is awaited before each chunk of a blob, and ``fetched`` counts the downloads of each blob."""

    blobs: dict[tuple[str, Digest], bytes] = field(default_factory=dict)
    manifests: dict[tuple[str, Digest], bytes] = field(default_factory=dict)
    pointers: dict[tuple[str, str], Digest] = field(default_factory=dict)
    fetched: Counter[Digest] = field(default_factory=Counter)
    before_chunk: Callable[[Descriptor], Awaitable[None]] = _go_on

    async def resolve(self, repository: str, tag: str) -> Descriptor:
        await trio.lowlevel.checkpoint()
        if not is_tag(tag) or not is_repository(repository):
            raise AddressError("grammar")
        digest = self.pointers.get((repository, tag))
        if digest is None:
            raise ArtifactNotFoundError(f"{repository}:{tag}")
        data = self.manifests[repository, digest]
        return Descriptor(manifest_media_type(data, OCI_MANIFEST), digest, len(data))

    async def manifest(self, repository: str, digest: Digest) -> Manifest:
        await trio.lowlevel.checkpoint()
        if not is_repository(repository):
            raise AddressError("grammar")
        if (repository, digest) not in self.manifests:
            raise ArtifactNotFoundError(f"{repository}@{digest}")
        data = self.manifests[repository, digest]
        descriptor = Descriptor(manifest_media_type(data, OCI_MANIFEST), digest, len(data))
        if is_index(descriptor.media_type):
            descriptor = choose_manifest(data, descriptor)
            data = self.manifests[repository, descriptor.digest]
        return read_manifest(data, Descriptor("", descriptor.digest, len(data)))

    @asynccontextmanager
    async def blob(self, repository: str, blob: Descriptor) -> AsyncIterator[AsyncIterator[bytes]]:
        await trio.lowlevel.checkpoint()
        if not is_repository(repository):
            raise AddressError("grammar")
        if (repository, blob.digest) not in self.blobs:
            raise ArtifactNotFoundError(f"{repository}@{blob.digest}")
        self.fetched[blob.digest] += 1
        yield _Chunks(self, blob, self.blobs[repository, blob.digest])

    async def tags(self, repository: str) -> tuple[str, ...]:
        await trio.lowlevel.checkpoint()
        if not is_repository(repository):
            raise AddressError("grammar")
        found = tuple(sorted(tag for name, tag in self.pointers if name == repository))
        if not found:
            raise ArtifactNotFoundError(repository)
        return found

    async def document(self, repository: str, reference: Digest | str) -> tuple[Descriptor, bytes]:
        digest = reference if isinstance(reference, Digest) else (await self.resolve(repository, reference)).digest
        if not is_repository(repository):
            raise AddressError("grammar")
        if (repository, digest) not in self.manifests:
            raise ArtifactNotFoundError(f"{repository}@{digest}")
        data = self.manifests[repository, digest]
        return Descriptor(manifest_media_type(data, OCI_MANIFEST), digest, len(data)), data

    async def referrers(self, repository: str, digest: Digest) -> tuple[tuple[str, Descriptor], ...]:
        try:
            _, data = await self.document(repository, referrers_tag(digest))
        except ArtifactNotFoundError:
            return ()
        return read_referrers(data, "referrers")

    async def push_blob(self, repository: str, media_type: str, data: bytes) -> Descriptor:
        await trio.lowlevel.checkpoint()
        if not is_repository(repository):
            raise AddressError("grammar")
        self.blobs[repository, digest_of(data)] = data
        return Descriptor(media_type, digest_of(data), len(data))

    async def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> Descriptor:
        await trio.lowlevel.checkpoint()
        if (tag and not is_tag(tag)) or not is_repository(repository):
            raise AddressError("grammar")
        self.manifests[repository, digest_of(manifest)] = manifest
        if tag:
            self.pointers[repository, tag] = digest_of(manifest)
        return Descriptor(media_type, digest_of(manifest), len(manifest))


class _Chunks:
    def __init__(self, registry: MemoryRegistry, blob: Descriptor, data: bytes) -> None:
        self._registry = registry
        self._blob = blob
        self._data = data
        self._position = 0

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        await self._registry.before_chunk(self._blob)
        chunk = self._data[self._position : self._position + CHUNK]
        self._position += len(chunk)
        if chunk and self._position <= self._blob.size:
            return chunk
        if len(self._data) != self._blob.size or digest_of(self._data) != self._blob.digest:
            raise DigestError("other bytes", transient=True)
        raise StopAsyncIteration


def chart_files(name: str = "web", version: str = "1.0.0", padding: int = 20_000) -> dict[str, bytes]:
    """Return the files of a chart. ``padding`` incompressible bytes make the packed chart longer than a chunk."""
    return {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode(),
        "templates/config.yaml": CONFIG_MAP.encode(),
        "files/padding": random.Random(name + version).randbytes(padding),  # noqa: S311 - the same bytes each time
    }


def packed(files: dict[str, bytes], prefix: str = "") -> bytes:
    """Return files as a gzipped tar; files below ``hooks/`` are executable."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(prefix + path)
            entry.size, entry.mode = len(content), 0o4755 if path.startswith("hooks/") else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(plain.getvalue(), mtime=0)


def chart_archive(name: str = "web", version: str = "1.0.0", padding: int = 20_000) -> bytes:
    """Return a chart, packed as Helm packs it."""
    return packed(chart_files(name, version, padding), f"{name}/")


async def put(
    registry: MemoryRegistry, version: str = "1.0.0", *, archive: bytes | None = None, repository: str = "charts/web"
) -> Manifest:
    """Push a chart, and read its manifest back."""
    config = await registry.push_blob(repository, HELM_CONFIG, f'{{"version":"{version}"}}'.encode())
    data = chart_archive(version=version) if archive is None else archive
    layer = await registry.push_blob(repository, HELM_CHART, data)
    pushed = await registry.push_manifest(repository, version, write_manifest(config, (layer,), {}), OCI_MANIFEST)
    return await registry.manifest(repository, pushed.digest)


async def put_image(
    registry: MemoryRegistry,
    *layers: bytes,
    tag: str = "1.0.0",
    repository: str = "charts/web",
    media_type: str = OCI_LAYER,
) -> Manifest:
    """Push an image of these layers, and read its manifest back."""
    config = await registry.push_blob(repository, PACKAGE_CONFIG, b"{}")
    pushed = tuple([await registry.push_blob(repository, media_type, layer) for layer in layers])
    manifest = await registry.push_manifest(repository, tag, write_manifest(config, pushed, {}), OCI_MANIFEST)
    return await registry.manifest(repository, manifest.digest)
