"""A registry in memory, for tests of what stands on the seam: it passes the contract, counts, and can be held up."""

import gzip
import io
import random
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import trio

from tests.packages.charts import CONFIG_MAP
from wharfinger.packages.address import is_repository, is_tag
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import AddressError, ArtifactNotFoundError, DigestError
from wharfinger.packages.manifest import (
    HELM_CHART,
    HELM_CONFIG,
    OCI_MANIFEST,
    manifest_media_type,
    read_manifest,
    write_manifest,
)
from wharfinger.packages.registry import Descriptor, Manifest

CHUNK = 4096


async def _go_on(_blob: Descriptor) -> None:
    await trio.lowlevel.checkpoint()


@dataclass
class MemoryRegistry:
    """``before_chunk`` is awaited before each chunk of a blob; ``fetched`` counts how often each blob was asked for."""

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
        return read_manifest(data, Descriptor("", digest, len(data)))

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

    async def push_blob(self, repository: str, media_type: str, data: bytes) -> Descriptor:
        await trio.lowlevel.checkpoint()
        if not is_repository(repository):
            raise AddressError("grammar")
        self.blobs[repository, digest_of(data)] = data
        return Descriptor(media_type, digest_of(data), len(data))

    async def push_manifest(self, repository: str, tag: str, manifest: bytes, media_type: str) -> Descriptor:
        await trio.lowlevel.checkpoint()
        if not is_tag(tag) or not is_repository(repository):
            raise AddressError("grammar")
        self.manifests[repository, digest_of(manifest)] = manifest
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


def chart_archive(name: str = "web", version: str = "1.0.0", padding: int = 20_000) -> bytes:
    """A chart, packed; ``padding`` incompressible bytes make it longer than a chunk."""
    files = {
        "Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode(),
        "templates/config.yaml": CONFIG_MAP.encode(),
        "files/padding": random.Random(name + version).randbytes(padding),  # noqa: S311 - the same bytes each time
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for path, content in files.items():
            entry = tarfile.TarInfo(f"{name}/{path}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


async def put(
    registry: MemoryRegistry, version: str = "1.0.0", *, archive: bytes | None = None, repository: str = "charts/web"
) -> Manifest:
    """Push a chart and read its manifest back."""
    config = await registry.push_blob(repository, HELM_CONFIG, f'{{"version":"{version}"}}'.encode())
    data = chart_archive(version=version) if archive is None else archive
    layer = await registry.push_blob(repository, HELM_CHART, data)
    pushed = await registry.push_manifest(repository, version, write_manifest(config, (layer,), {}), OCI_MANIFEST)
    return await registry.manifest(repository, pushed.digest)
