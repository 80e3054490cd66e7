"""Packages in the form that registries store: a folder or a chart's archive becomes blobs and a manifest, which are pushed.

A plain chart is pushed as Helm does it (HIP-0006: a config that is ``Chart.yaml`` as JSON, one layer that is the chart's
archive), so that ``helm pull oci://…`` finds it. Every other package is an image of one layer, which has the package's files at
its root.

The same files give the same digest on every machine at any time, because no blob and no manifest contains a time. Blobs are
pushed first and the manifest with its tag last, so that a tag never points at missing blobs.
"""

import io
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.archives.archive import ArchiveLimits
from wharfinger.formats.json.value import JsonObject, encode_json, find
from wharfinger.packages.charts.chart import CHART_FILE, Chart, pack_chart, pack_folder, read_chart
from wharfinger.packages.charts.chart_archive import MAX_ARCHIVE, unpack_chart
from wharfinger.packages.definition.definition import Definition, Layout, read_definition
from wharfinger.packages.digest import digest_of
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.packages.registry.manifest import (
    HELM_CHART,
    HELM_CONFIG,
    OCI_LAYER,
    OCI_MANIFEST,
    PACKAGE_CONFIG,
    write_manifest,
)
from wharfinger.packages.registry.published_facts import published_facts
from wharfinger.packages.registry.registry import Descriptor, WritableRegistry

_TITLE: Final = "org.opencontainers.image.title"
_VERSION: Final = "org.opencontainers.image.version"
_DESCRIPTION: Final = "org.opencontainers.image.description"
_URL: Final = "org.opencontainers.image.url"
_SOURCE: Final = "org.opencontainers.image.source"
_GZIP: Final = b"\x1f\x8b"
_USTAR: Final = slice(257, 262)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes to push, with their media type."""

    media_type: str
    data: bytes = field(repr=False)

    @property
    def descriptor(self) -> Descriptor:
        """The descriptor of the bytes, for the manifest that names them."""
        return Descriptor(self.media_type, digest_of(self.data), len(self.data))


@dataclass(frozen=True, slots=True)
class Package:
    """A package ready to be pushed; ``version`` is the version in its own files, or ""."""

    name: str
    version: str
    config: Blob
    layer: Blob
    annotations: dict[str, str]

    @property
    def tag(self) -> str:
        """The tag of the package's version in a registry; "" for a package without a version. Raises AddressError."""
        return tag_of_version(self.version) if self.version else ""

    @property
    def manifest(self) -> Blob:
        """The manifest, which names the config and the layer."""
        layers = (self.layer.descriptor,)
        return Blob(OCI_MANIFEST, write_manifest(self.config.descriptor, layers, self.annotations))


async def load_package(source: Path, name: str = "") -> Package:
    """Pack a package's folder, or check a packed chart.

    ``name`` is the name by which the package will be requested; if it is "", the folder's name is used. Raises ArtifactError if
    the package could not be installed.
    """
    return await trio.to_thread.run_sync(pack_package, source, name)


async def push_package(package: Package, registry: WritableRegistry, repository: str, tag: str) -> Descriptor:
    """Push a package to ``repository`` (below the registry's host) and point ``tag`` at it. Raises PackageError."""
    for blob in (package.config, package.layer):
        await registry.push_blob(repository, blob.media_type, blob.data)
    manifest = package.manifest
    return await registry.push_manifest(repository, tag, manifest.data, manifest.media_type)


async def push_chart(source: Path, registry: WritableRegistry, repository: str, tag: str) -> Descriptor:
    """Load the package at ``source``, and push it; return the descriptor of its manifest. Raises PackageError."""
    return await push_package(await load_package(source), registry, repository, tag)


def pack_package(source: Path, name: str = "", version: str = "") -> Package:
    """Do the work of `load_package`, blocking.

    With ``version``, a package that states another version is refused; the version of a plain chart is not compared.
    """
    if not source.is_dir():
        return _packed_chart(source)
    definition = _definition(source, name or source.resolve().name, str(source), version)
    if definition.layout is Layout.CHART:
        return _chart(read_chart(source), pack_chart(source))
    return pack_image(definition, source)


def _packed_chart(source: Path) -> Package:
    try:
        with source.open("rb") as file:
            archive = file.read(MAX_ARCHIVE + 1)
    except OSError as error:
        raise ArtifactError(
            f"{source}: cannot be read: {error.strerror}; give a package's folder, or a chart's .tgz"
        ) from error
    return pack_archive(archive, str(source))


def pack_archive(archive: bytes, what: str) -> Package:
    """Return a chart's archive as a package; ``what`` names it in messages. Raises ArtifactError. Blocking."""
    if len(archive) > MAX_ARCHIVE:
        raise ArtifactError(f"{what}: more than {MAX_ARCHIVE} bytes")
    if not archive.startswith(_GZIP) and archive[_USTAR] != b"ustar":
        raise ArtifactError(
            f"{what}: not an archive; give a package's folder, or a chart's .tgz as `helm package` makes it"
        )
    with tempfile.TemporaryDirectory(prefix="wharfinger-push-") as scratch:
        folder = unpack_chart(io.BytesIO(archive), Path(scratch), what=what, limits=ArchiveLimits())
        _definition(folder, folder.name, what)
        return _chart(read_chart(folder), archive)


def _definition(folder: Path, name: str, what: str, version: str = "") -> Definition:
    """Read the definition in the way that the runtime reads it. Raises ArtifactError if the runtime would refuse the package."""
    try:
        return read_definition(folder, name=name, version=version)
    except ArtifactError as error:
        raise ArtifactError(f"{what}: {error}") from error


def _chart(chart: Chart, archive: bytes) -> Package:
    config = Blob(HELM_CONFIG, encode_json(chart.metadata))
    layer = Blob(HELM_CHART, archive)
    home, source = find(chart.metadata, "home"), find(chart.metadata, "sources", 0)
    # The annotations that Helm writes, without the time.
    said = {
        _TITLE: chart.name,
        _VERSION: chart.version,
        _DESCRIPTION: chart.description,
        _URL: home if isinstance(home, str) else "",
        _SOURCE: source if isinstance(source, str) else "",
    }
    return Package(chart.name, chart.version, config, layer, {key: value for key, value in said.items() if value})


def pack_image(definition: Definition, folder: Path) -> Package:
    """Pack the files of a package that is not a plain chart. Raises ArtifactError. Blocking."""
    chart = definition.chart if (folder / CHART_FILE).is_file() else None
    version = definition.version or (chart.version if chart else "")
    metadata: JsonObject = {
        "name": definition.name,
        "version": version,
        "type": definition.type.value if definition.type else "",
        "description": definition.description,
        "stage": definition.stage,
        **published_facts(folder, version),
    }
    said = {_TITLE: definition.name, _VERSION: version, _DESCRIPTION: definition.description}
    return Package(
        definition.name,
        version,
        Blob(PACKAGE_CONFIG, encode_json({key: value for key, value in metadata.items() if value})),
        Blob(OCI_LAYER, pack_folder(folder)),
        {key: value for key, value in said.items() if value},
    )
