"""Pushing a chart the way Helm does, so that ``helm pull oci://…`` finds it and so does a store here.

The artifact (Helm's OCI registry format, HIP-0006): an image manifest whose config is ``Chart.yaml`` as JSON and whose one
layer is the chart's archive. Blobs go first, the manifest with its tag last, so that a tag never points at what is not there.
Helm stamps each push with the time; this does not: the same chart gives the same digest.
"""

import io
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import trio

from wharfinger.formats.archive import ArchiveLimits
from wharfinger.formats.json_value import encode_json, find
from wharfinger.packages.address import tag_of_version
from wharfinger.packages.chart import Chart, pack_chart, read_chart
from wharfinger.packages.chart_archive import MAX_ARCHIVE, unpack_chart
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.manifest import HELM_CHART, HELM_CONFIG, OCI_MANIFEST, write_manifest
from wharfinger.packages.registry import Descriptor, Registry

_TITLE = "org.opencontainers.image.title"
_VERSION = "org.opencontainers.image.version"
_DESCRIPTION = "org.opencontainers.image.description"
_URL = "org.opencontainers.image.url"
_SOURCE = "org.opencontainers.image.source"


@dataclass(frozen=True, slots=True)
class ChartPackage:
    """A chart ready to be pushed: what it says of itself, and its archive."""

    chart: Chart
    archive: bytes = field(repr=False)

    @property
    def tag(self) -> str:
        """The tag its version has in a registry. Raises AddressError."""
        return tag_of_version(self.chart.version)


async def load_package(source: Path) -> ChartPackage:
    """A chart folder packed, or a packed chart checked. Raises ArtifactError."""
    return await trio.to_thread.run_sync(_load, source)


async def push_package(package: ChartPackage, registry: Registry, repository: str, tag: str) -> Descriptor:
    """Push to ``repository`` (below the registry's host) and point ``tag`` at it. Raises PackageError."""
    config = await registry.push_blob(repository, HELM_CONFIG, encode_json(package.chart.metadata))
    layer = await registry.push_blob(repository, HELM_CHART, package.archive)
    manifest = write_manifest(config, (layer,), _annotations(package.chart))
    return await registry.push_manifest(repository, tag, manifest, OCI_MANIFEST)


async def push_chart(source: Path, registry: Registry, repository: str, tag: str) -> Descriptor:
    """Push a chart folder or a ``.tgz``; returns the manifest's descriptor. Raises PackageError."""
    return await push_package(await load_package(source), registry, repository, tag)


def _load(source: Path) -> ChartPackage:
    if source.is_dir():
        return ChartPackage(read_chart(source), pack_chart(source))
    try:
        with source.open("rb") as file:
            archive = file.read(MAX_ARCHIVE + 1)
    except OSError as error:
        raise ArtifactError(f"{source}: cannot be read: {error.strerror}; give a chart folder or a .tgz") from error
    if len(archive) > MAX_ARCHIVE:
        raise ArtifactError(f"{source}: more than {MAX_ARCHIVE} bytes")
    with tempfile.TemporaryDirectory(prefix="wharfinger-push-") as scratch:
        folder = unpack_chart(io.BytesIO(archive), Path(scratch), what=str(source), limits=ArchiveLimits())
        return ChartPackage(read_chart(folder), archive)


def _annotations(chart: Chart) -> dict[str, str]:
    """Those that Helm writes, save the time."""
    said = {
        _TITLE: chart.name,
        _VERSION: chart.version,
        _DESCRIPTION: chart.description,
        _URL: find(chart.metadata, "home"),
        _SOURCE: find(chart.metadata, "sources", 0),
    }
    return {key: value for key, value in said.items() if isinstance(value, str) and value}
