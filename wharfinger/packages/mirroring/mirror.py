"""A mirror of packages: this module decides which packages, versions and images are copied, and to which repositories.

A package lists its images in annotations of its chart, or in a file. If it lists none, it is rendered, and its manifests are
searched for images.

The package ``web`` of ``SRC`` becomes ``DST/web``. The image ``registry.example:5000/team/app`` becomes
``DST/images/registry.example_5000/team/app``. So one rule in the ``registries.conf`` of a cluster's nodes is enough to redirect
all images of one host to their copies.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, decode_json
from wharfinger.packages.charts.chart import MAX_CHART_FILE
from wharfinger.packages.charts.chart_archive import MAX_ARCHIVE
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, PackageError, RenderError
from wharfinger.packages.mirroring.copying import (
    SIGNATURE_SUFFIXES,
    CopyCounters,
    CopyRoute,
    StreamTarget,
    copy_artifact,
    copy_document,
)
from wharfinger.packages.mirroring.image_references import annotated_images, listed_digests
from wharfinger.packages.registry.address import PackageReference, RepositoryAddress, is_repository
from wharfinger.packages.registry.manifest import HELM_CONFIG, PACKAGE_CONFIG
from wharfinger.packages.registry.registry import Descriptor, Manifest, Registry
from wharfinger.packages.settings.values import SettingsError

IMAGES: Final = "images"

OpenImage = Callable[[RepositoryAddress], AbstractAsyncContextManager[Registry]]
FindImages = Callable[[Registry, str, str, Manifest], Awaitable[tuple[PackageReference, ...]]]
"""A function that finds the images of a package without a list of images.

Its arguments are the registry, the repository, the package's name, and its manifest. It raises PackageError and FormatError.
"""


@dataclass(frozen=True, slots=True)
class PackageRoot:
    """A registry, and the path below which its packages are. The path is empty for a folder of OCI image layouts."""

    registry: Registry
    path: str = ""

    def repository(self, name: str) -> str:
        """Return the path of a package's repository in the registry."""
        return f"{self.path}/{name}" if self.path else name


@dataclass(frozen=True, slots=True)
class RequestedPackage:
    """A package to copy: the content of one tag, or, if ``tag`` is empty, of all its tags."""

    name: str
    tag: str = ""


@dataclass(slots=True)
class Mirror:
    """A copy of packages to ``target``, below ``path``. With ``dry_run`` nothing is written, but everything is counted.

    ``unknown`` are the packages whose images could not be found, each with the reason; they are copied without images. ``failed``
    are the images that could not be copied; all other images are copied.
    """

    source: PackageRoot
    target: StreamTarget
    path: str
    open_image: OpenImage
    find_images: FindImages
    images: bool = True
    dry_run: bool = False
    sums: CopyCounters = field(default_factory=CopyCounters)
    unknown: dict[str, str] = field(default_factory=dict)
    failed: dict[str, PackageError] = field(default_factory=dict)
    _images: dict[str, PackageReference] = field(default_factory=dict)

    async def run(self, packages: Sequence[RequestedPackage]) -> AsyncGenerator[str, None]:
        """Copy packages, then the images that they name; yield a line about each copy.

        Raises PackageError if a package cannot be copied, or if a transient error interrupts the copying of an image.
        """
        for wanted in packages:
            tags = [wanted.tag] if wanted.tag else await self._tags(wanted.name)
            for tag in tags:
                yield await self._package(wanted.name, tag)
        for text, image in sorted(self._images.items()):
            yield await self._image(text, image)

    async def _tags(self, name: str) -> list[str]:
        tags = await self.source.registry.tags(self.source.repository(name))
        return [tag for tag in tags if not _is_related(tag)]

    async def _package(self, name: str, tag: str) -> str:
        ends = CopyRoute(self.source.registry, self.source.repository(name), self.target, self._target(name))
        before = self.sums.bytes
        descriptor = await copy_artifact(ends, tag, self.sums, dry_run=self.dry_run)
        if self.images:
            await self._note_images(ends, descriptor, name, f"{name}:{tag}")
        return self._line(f"{name}:{tag}", descriptor, before)

    async def _image(self, text: str, image: PackageReference) -> str:
        """Copy an image, and return the line of the output about it. Record the image as failed if its registry does not have
        it or does not answer, or if it cannot be copied.

        Raises PackageError if the copying is interrupted by a transient error.
        """
        before = self.sums.bytes
        try:
            descriptor = await self._copy_image(text, image)
        except PackageError as error:
            if error.transient and text not in self.failed:
                raise
            self.failed[text] = error
            return f"{'failed':<10} {text}"
        return self._line(text, descriptor, before)

    async def _copy_image(self, text: str, image: PackageReference) -> Descriptor:
        registry = str(image.repository.registry).replace(":", "_").strip("[]")
        target = self._target(f"{IMAGES}/{registry}/{image.repository.path}")
        if not is_repository(target):
            raise ArtifactError(f"{text}: its copy would be {target}, which is not a valid repository; use --no-images")
        reference = image.tag if image.digest is None else image.digest
        async with self.open_image(image.repository) as source:
            ends = CopyRoute(source, image.repository.path, self.target, target)
            try:
                descriptor, data = await source.document(image.repository.path, reference)
            except PackageError as error:
                # An error of this image's registry does not prevent the copying of other images.
                self.failed[text] = error
                raise
            return await copy_document(ends, reference, descriptor, data, self.sums, dry_run=self.dry_run)

    async def _note_images(self, ends: CopyRoute, descriptor: Descriptor, name: str, shown: str) -> None:
        """Record the images of a package, or why they are not known. Raises PackageError."""
        try:
            found = await self._images_of(ends, descriptor, name)
        except (ArtifactError, RenderError, SettingsError, FormatError) as error:
            self.unknown[shown] = str(error)
        else:
            self._images.update({str(image): image for image in found})

    async def _images_of(self, ends: CopyRoute, descriptor: Descriptor, name: str) -> tuple[PackageReference, ...]:
        """Return the images of a package that are in other repositories. Copy the images that are in the package's own
        repository.

        If the package lists no images, it is rendered, and its manifests are searched.
        """
        manifest = await ends.source.manifest(ends.source_repository, descriptor.digest)
        what = f"{ends.source_repository}@{descriptor.digest}"
        if manifest.config.media_type == HELM_CONFIG:
            found = annotated_images(await _metadata(ends, manifest, what), what)
            if found:
                return found
        elif manifest.config.media_type == PACKAGE_CONFIG:
            own = await _own_images(ends, manifest, what)
            for digest in own:
                await copy_artifact(ends, digest, self.sums, dry_run=self.dry_run)
            if own:
                return ()
        else:
            return ()
        return await self.find_images(ends.source, ends.source_repository, name, manifest)

    def _target(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name

    def _line(self, what: str, descriptor: Descriptor, before: int) -> str:
        copied = self.sums.bytes - before
        done = "present" if not copied else "would copy" if self.dry_run else "copied"
        return f"{done:<10} {what} {descriptor.digest} {copied} bytes"


async def names_of(source: Registry, path: str) -> list[str]:
    """Return the names of a registry's packages, which are the tags of the repository at ``path``. Raises PackageError."""
    try:
        return [name for name in await source.tags(path) if is_repository(name)]
    except ArtifactNotFoundError as error:
        raise ArtifactNotFoundError(
            f"{path}: the registry does not list its packages ({error}); name them with --package"
        ) from error


async def _metadata(ends: CopyRoute, manifest: Manifest, what: str) -> JsonObject:
    data = await _blob(ends, manifest.config, MAX_CHART_FILE, what)
    try:
        return as_object(decode_json(data, max_bytes=MAX_CHART_FILE, what="config"), "config")
    except FormatError as error:
        raise ArtifactError(f"{what}: {error}") from error


async def _own_images(ends: CopyRoute, manifest: Manifest, what: str) -> tuple[Digest, ...]:
    found: set[Digest] = set()
    for layer in manifest.layers:
        data = await _blob(ends, layer, MAX_ARCHIVE, what)
        found.update(await trio.to_thread.run_sync(listed_digests, data, what))
    return tuple(sorted(found))


async def _blob(ends: CopyRoute, blob: Descriptor, most: int, what: str) -> bytes:
    if blob.size > most:
        raise ArtifactError(
            f"{what}: blob {blob.digest} has {blob.size} bytes, at most {most} are read; use --no-images"
        )
    async with ends.source.blob(ends.source_repository, blob) as chunks:
        return b"".join([chunk async for chunk in chunks])


def _is_related(tag: str) -> bool:
    """Return whether a tag is for signatures or referrers of an artifact, which are copied with the artifact."""
    return tag.startswith("sha256-") and (tag.endswith(SIGNATURE_SUFFIXES) or len(tag) == len("sha256-") + 64)
