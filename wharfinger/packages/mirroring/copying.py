"""The copying of one artifact: an index with all its images, or a manifest with all its blobs. The copy has the same digest.

Signatures and other artifacts that refer to the artifact are copied, too.

Blobs are copied before the manifest that names them, and the tag last. So an interrupted copy continues where it stopped:
existing blobs are not copied again, and an artifact is complete once its tag points to it.
"""

from dataclasses import dataclass, field
from typing import Final, Protocol

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import as_object, decode_json, find, find_list
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError
from wharfinger.packages.registry.image_index import MAX_MANIFESTS, is_index, referrers_tag
from wharfinger.packages.registry.manifest import MAX_LAYERS, MAX_MANIFEST, read_descriptor
from wharfinger.packages.registry.registry import Descriptor, Registry, WritableRegistry

MAX_DEPTH: Final = 4
SIGNATURE_SUFFIXES: Final = (".sig", ".att", ".sbom")
"""The endings of cosign's tags for signatures, attestations and bills of materials of an artifact."""


class StreamTarget(WritableRegistry, Protocol):
    """A registry to which blobs of any size can be copied. Raises PackageError."""

    async def has_blob(self, repository: str, blob: Descriptor) -> bool:
        """Return whether there is a blob with this digest and size."""
        ...

    async def copy_blob(self, repository: str, blob: Descriptor, source: Registry, source_repository: str) -> None:
        """Copy a blob from another registry, and verify it, without holding it in memory."""
        ...


@dataclass(frozen=True, slots=True)
class CopyRoute:
    """The repository that an artifact is copied from, and the repository that it is copied to."""

    source: Registry
    source_repository: str
    target: StreamTarget
    target_repository: str


@dataclass(slots=True)
class CopyCounters:
    """Counters: artifacts and bytes that were copied (or, in a dry run, would be), and artifacts that the target had already."""

    artifacts: int = 0
    present: int = 0
    bytes: int = 0
    blobs: set[tuple[str, Digest]] = field(default_factory=set)


async def copy_artifact(ends: CopyRoute, reference: str | Digest, sums: CopyCounters, *, dry_run: bool) -> Descriptor:
    """Copy an artifact, unless the target has it, and what refers to it, such as signatures. Return the descriptor of the
    artifact. Raises PackageError.
    """
    descriptor, data = await ends.source.document(ends.source_repository, reference)
    return await copy_document(ends, reference, descriptor, data, sums, dry_run=dry_run)


async def copy_document(
    ends: CopyRoute, reference: str | Digest, descriptor: Descriptor, data: bytes, sums: CopyCounters, *, dry_run: bool
) -> Descriptor:
    """Do the work of `copy_artifact` for an artifact whose manifest or index (``data``) was read already."""
    tag = reference if isinstance(reference, str) else ""
    await _copy_related(ends, descriptor, sums, dry_run=dry_run)
    if await _is_there(ends, descriptor, tag):
        sums.present += 1
        return descriptor
    await _copy_content(ends, descriptor, data, sums, dry_run=dry_run, depth=0)
    if not dry_run:
        await ends.target.push_manifest(ends.target_repository, tag, data, descriptor.media_type)
    sums.artifacts += 1
    sums.bytes += len(data)
    return descriptor


async def _is_there(ends: CopyRoute, descriptor: Descriptor, tag: str) -> bool:
    try:
        found, _ = await ends.target.document(ends.target_repository, tag or descriptor.digest)
    except ArtifactNotFoundError:
        return False
    except DigestError:
        return False  # the artifact at the target is damaged
    return found.digest == descriptor.digest


async def _copy_content(
    ends: CopyRoute, descriptor: Descriptor, data: bytes, sums: CopyCounters, *, dry_run: bool, depth: int
) -> None:
    """Copy the manifests and blobs that a manifest or an index names."""
    what = f"{ends.source_repository}@{descriptor.digest}"
    manifests, blobs = named_by(data, what, index=is_index(descriptor.media_type))
    if manifests and depth >= MAX_DEPTH:
        raise ArtifactError(f"{what}: expected image indexes nested at most {MAX_DEPTH} deep; push the package again")
    for child in manifests:
        found, content = await ends.source.document(ends.source_repository, child.digest)
        await _copy_content(ends, found, content, sums, dry_run=dry_run, depth=depth + 1)
        if not dry_run:
            await ends.target.push_manifest(ends.target_repository, "", content, found.media_type)
        sums.bytes += len(content)
    for blob in blobs:
        key = ends.target_repository, blob.digest
        if key in sums.blobs or await ends.target.has_blob(ends.target_repository, blob):
            continue
        if not dry_run:
            await ends.target.copy_blob(ends.target_repository, blob, ends.source, ends.source_repository)
        sums.blobs.add(key)
        sums.bytes += blob.size


async def _copy_related(ends: CopyRoute, descriptor: Descriptor, sums: CopyCounters, *, dry_run: bool) -> None:
    """Copy signatures, attestations and other artifacts that refer to this one."""
    for suffix in SIGNATURE_SUFFIXES:
        await _copy_tag(ends, f"sha256-{descriptor.digest.hex}{suffix}", sums, dry_run=dry_run)
    if not await _copy_tag(ends, referrers_tag(descriptor.digest), sums, dry_run=dry_run):
        for _, referrer in await ends.source.referrers(ends.source_repository, descriptor.digest):
            found, data = await ends.source.document(ends.source_repository, referrer.digest)
            await _copy_content(ends, found, data, sums, dry_run=dry_run, depth=0)
            if not dry_run:
                await ends.target.push_manifest(ends.target_repository, "", data, found.media_type)


async def _copy_tag(ends: CopyRoute, tag: str, sums: CopyCounters, *, dry_run: bool) -> bool:
    """Copy the artifact of a tag; return False if the tag does not exist."""
    try:
        descriptor, data = await ends.source.document(ends.source_repository, tag)
    except ArtifactNotFoundError:
        return False
    if not await _is_there(ends, descriptor, tag):
        await _copy_content(ends, descriptor, data, sums, dry_run=dry_run, depth=0)
        if not dry_run:
            await ends.target.push_manifest(ends.target_repository, tag, data, descriptor.media_type)
        sums.bytes += len(data)
    return True


def named_by(data: bytes, what: str, *, index: bool) -> tuple[list[Descriptor], list[Descriptor]]:
    """Return the manifests and the blobs that a manifest or an index names. Raises ArtifactError."""
    try:
        document = as_object(decode_json(data, max_bytes=MAX_MANIFEST, what="document"), "document")
        if index:
            listed = find_list(document, "manifests")[:MAX_MANIFESTS]
            return [read_descriptor(each, "manifests") for each in listed], []
        layers = find_list(document, "layers")[:MAX_LAYERS]
        config = find(document, "config")
        blobs = [read_descriptor(config, "config")] if config is not None else []
        return [], [*blobs, *(read_descriptor(each, "layers") for each in layers)]
    except (FormatError, DigestError, ArtifactError) as error:
        raise ArtifactError(f"{what}: {error}") from error
