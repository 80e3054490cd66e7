"""Definitions of packages from a local folder, for a plan: the same definitions that the daemon would load.

The folder has the form that a PackageRepository needs (``spec.folder`` or ``spec.layout``): for each package, it has a folder
with the name of the package, which is an OCI image layout or has the package's files. Files are read in place. A version in a
layout is installed into a temporary store as in the daemon, and the store is deleted at the end.

Hooks are not run here, not even for their configuration, and no rule or conversion is compiled. ``wharfinger package check``
compiles rules and conversions, and ``wharfinger hook config`` runs a hook for its configuration.
"""

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.packages.definition.definition import Definition, read_definition
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, PackageError
from wharfinger.packages.files.disk_files import disk_errors
from wharfinger.packages.registry.address import checked_package, is_repository, tag_of_version
from wharfinger.packages.registry.oci_layout import LAYOUT_FILE
from wharfinger.packages.sources.source import LayoutSource, open_source
from wharfinger.packages.store.disk_store import open_store
from wharfinger.packages.store.store import Store
from wharfinger.runtime.repositories.package_scan import Interest, scan_package
from wharfinger.runtime.versions.package_index import PackageIndex

_SCRATCH: Final = "wharfinger-plan-"


@dataclass(frozen=True, slots=True)
class PackageFolder:
    """The packages below the folder ``root``, by name. Use `open_package_folder` to make an object. ``scratch`` is a folder for
    temporary files, which is deleted at the end.
    """

    root: Path
    _store: Store
    scratch: Path

    async def definition(self, package: str, version: str) -> Definition:
        """Return the definition of a version of a package. Raises PackageError."""
        layout = self.root / checked_package(package) / LAYOUT_FILE
        if await trio.to_thread.run_sync(layout.is_file):
            return await self._from_layout(package, version)
        return await trio.to_thread.run_sync(
            _from_folder, self.root / package, package, version, abandon_on_cancel=True
        )

    async def tree(self, package: str, version: str) -> tuple[Definition, Path]:
        """Return the definition of a version of a package, and the folder of its files. Raises PackageError."""
        layout = self.root / package / LAYOUT_FILE
        if is_repository(package) and await trio.to_thread.run_sync(layout.is_file):
            return await self._installed(package, version)
        return await self.definition(package, version), self.root / package

    async def index(self, package: str) -> PackageIndex | None:
        """Return the versions of a package that is stored as an OCI layout; None if the package is a plain folder, which has
        only one version, or if the versions cannot be read.
        """
        if not is_repository(package):
            return None
        if not await trio.to_thread.run_sync((self.root / package / LAYOUT_FILE).is_file):
            return None
        try:
            async with open_source(LayoutSource(self.root), package) as (registry, repository):
                return await scan_package(registry, repository, PackageIndex("", package), Interest())
        except (PackageError, FormatError):
            return None

    async def _from_layout(self, package: str, version: str) -> Definition:
        return (await self._installed(package, version))[0]

    async def _installed(self, package: str, version: str) -> tuple[Definition, Path]:
        async with open_source(LayoutSource(self.root), package) as (registry, repository):
            descriptor = await registry.resolve(repository, tag_of_version(version))
            manifest = await registry.manifest(repository, descriptor.digest)
            await self._store.download(registry, repository, manifest)
        tree = await self._store.install(manifest)
        definition = await trio.to_thread.run_sync(lambda: read_definition(tree, name=package, version=version))
        return definition, tree


@asynccontextmanager
async def open_package_folder(root: Path) -> AsyncIterator[PackageFolder]:
    """Open the packages below ``root``. Raises StoreError if no folder for unpacked files can be made."""
    with disk_errors("making a folder for unpacked packages"):
        scratch = tempfile.TemporaryDirectory(prefix=_SCRATCH, ignore_cleanup_errors=True)
    with scratch as place:
        async with open_store(Path(place)) as store:
            yield PackageFolder(root, store, Path(place))


def _from_folder(folder: Path, package: str, version: str) -> Definition:
    """Return the definition of the package in a folder. If its files state a version, this must be the requested version;
    otherwise the definition gets the requested version.

    Raises ArtifactNotFoundError if there is no folder, or if it has another version, and ArtifactError for an invalid package.
    """
    if not folder.is_dir():
        raise ArtifactNotFoundError(f"{folder}: not found; there is no such folder")
    try:
        found = read_definition(folder, name=package, version="")
    except ArtifactError as error:
        raise ArtifactError(f"{folder}: {error}") from error
    if found.version and tag_of_version(found.version) != tag_of_version(version):
        raise ArtifactNotFoundError(
            f"{folder}: expected version {version}, found {found.version}; request version {found.version}, or change the "
            "version in the files of the folder"
        )
    return replace(found, version=found.version or version)
