"""The target of `wharfinger install`: a folder or archive of this machine, a package in a registry, or a package of a
PackageRepository.

==================================  ==========================================================================================
``./chart``, ``web-1.2.3.tgz``      files of this machine, which are carried to the daemon in Secrets
``oci://HOST/PATH/NAME[:VERSION]``  a package in a registry; without a version: the newest version, and later versions
``NAME[@VERSION or RANGE]``         a package of a PackageRepository; with a range: also later versions in the range
==================================  ==========================================================================================
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias

from wharfinger.formats.errors import FormatError
from wharfinger.formats.version_constraint import parse_constraint, parse_version
from wharfinger.packages.charts.chart import pack_folder
from wharfinger.packages.charts.chart_archive import MAX_ARCHIVE
from wharfinger.packages.definition.definition import read_definition
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.digest import Digest, digest_of
from wharfinger.packages.errors import AddressError, ArtifactError
from wharfinger.packages.registry.address import RepositoryAddress, is_repository, is_tag, parse_reference
from wharfinger.packages.registry.pusher import pack_archive
from wharfinger.packages.sources.archives import MAX_CARRIED

OCI: Final = "oci://"
ANY: Final = ">=0.0.0"
"""The range of all versions that are not prereleases."""
_ARCHIVES: Final = (".tgz", ".tar.gz")


@dataclass(frozen=True, slots=True)
class Carried:
    """A package from files of this machine: its name and version, and its archive."""

    name: str
    version: str
    data: bytes = field(repr=False)

    @property
    def digest(self) -> Digest:
        """The digest of the archive."""
        return digest_of(self.data)


@dataclass(frozen=True, slots=True)
class InRegistry:
    """A package below an address in a registry, with an exact version or a range."""

    address: RepositoryAddress
    name: str
    version: str = ""
    range: str = ""


@dataclass(frozen=True, slots=True)
class InRepository:
    """A package of a PackageRepository, with an exact version or a range."""

    name: str
    version: str = ""
    range: str = ""


Target: TypeAlias = Carried | InRegistry | InRepository


def read_target(text: str) -> Target:
    """Read a target: a path on this machine, an address that begins with ``oci://``, or ``NAME[@VERSION]`` for a package of a
    PackageRepository. Blocking. Raises AddressError, ArtifactError.
    """
    if text.startswith(OCI):
        return _in_registry(text)
    if _is_path(text):
        return _carried(Path(text))
    name, at, wanted = text.partition("@")
    if not is_repository(name) or (at and not wanted):
        raise AddressError(
            f"{text!r:.200}: expected a folder, such as ./chart, {OCI}HOST/PATH/NAME[:VERSION], or NAME[@VERSION]; correct it"
        )
    version, constraint = _version_or_range(wanted, text)
    return InRepository(name, version, constraint)


def _is_path(text: str) -> bool:
    if not text:
        return False  # `Path` would read an empty text as the current folder
    return text.startswith((".", "/", "~")) or text.endswith(_ARCHIVES) or os.sep in text or Path(text).is_dir()


def _in_registry(text: str) -> InRegistry:
    reference = parse_reference(text)
    if reference.digest is not None:
        raise AddressError(
            f"{text!r:.200}: expected a tag, found a digest; give a tag, and set spec.packageDigest of the "
            "Application to pin the content"
        )
    address = reference.repository
    above, _, name = address.path.rpartition("/")
    if not above:
        raise AddressError(
            f"{text!r:.200}: expected {OCI}HOST/PATH/NAME, with a PATH between the host and the name of the package"
        )
    parent = RepositoryAddress(address.registry, above, address.scheme)
    return InRegistry(parent, name, reference.tag, "" if reference.tag else ANY)


def _version_or_range(wanted: str, text: str) -> tuple[str, str]:
    """Return the version and the range that the text ``wanted`` names; one of the two is always "".

    An empty text means the range ANY. A version is either complete, such as ``1.2.3``, or a tag that cannot be read as a range
    and does not begin with a digit. All other texts must be ranges. ``text`` is the whole target, for messages. Raises
    AddressError.
    """
    if not wanted:
        return "", ANY
    try:
        parse_version(wanted)
        if wanted.removeprefix("v").count(".") >= 2:
            return wanted, ""
    except FormatError:
        pass
    try:
        parse_constraint(wanted)
    except FormatError as error:
        if is_tag(wanted) and not wanted[0].isdigit():
            return wanted, ""
        raise AddressError(f"{text!r:.200}: {error}") from error
    return "", wanted


def _carried(path: Path) -> Carried:
    path = path.expanduser()
    found = _of_folder(path.resolve(), str(path)) if path.is_dir() else _of_archive(path)
    if len(found.data) > MAX_CARRIED:
        raise ArtifactError(
            f"{path}: the archive has {len(found.data)} bytes, but Secrets store only archives of at most "
            f"{MAX_CARRIED} bytes; push the package to a registry with `wharfinger package push`, and install it from there"
        )
    return found


def _of_folder(folder: Path, what: str) -> Carried:
    try:
        definition = read_definition(folder, name=folder.name, version="")
        if definition.type is PackageType.MODULE:
            raise ArtifactError(
                "the package is a Module, but this command installs Applications; create a Module resource"
            )
        data = pack_folder(folder)
    except ArtifactError as error:
        raise ArtifactError(f"{what}: {str(error).removeprefix(f'{folder}: ')}") from error
    version = definition.version or f"0.0.0-sha.{digest_of(data).hex[:12]}"
    return Carried(definition.name, version, data)


def _of_archive(path: Path) -> Carried:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_ARCHIVE + 1)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read: {error.strerror}; give a folder, or a chart's .tgz") from error
    package = pack_archive(data, str(path))
    return Carried(package.name, package.version, data)
