"""The sources of packages: a registry, a folder of OCI layouts, or a folder of package folders.

A source holds many packages by name. `open_source` gives the registry that stands for it and the path of one package in that
registry, so that downloading code needs to know only :class:`~wharfinger.packages.registry.registry.Registry`.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeAlias, assert_never

from wharfinger.packages.errors import AddressError
from wharfinger.packages.registry.address import RepositoryAddress, is_repository
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.folder_registry import FolderRegistry
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.registry.wire import Patience


@dataclass(frozen=True, slots=True)
class RegistrySource:
    """An OCI registry: packages are the repositories below ``address``.

    ``ca`` is PEM text of authorities to trust in addition to the system's; if it is empty, only the system's are trusted.
    """

    address: RepositoryAddress
    credentials: Credentials | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class LayoutSource:
    """A folder of OCI image layouts: the package ``web`` is the layout in ``path/web``."""

    path: Path


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder of package folders, as an author has them: the package ``web`` is the folder ``path/web``."""

    path: Path


_PATIENCE: Final = Patience()

Source: TypeAlias = RegistrySource | LayoutSource | FolderSource


@asynccontextmanager
async def open_source(
    source: Source, package: str, *, patience: Patience = _PATIENCE
) -> AsyncIterator[tuple[Registry, str]]:
    """Open the registry that stands for a source; yield it with the path of ``package`` in it. Raises PackageError."""
    match source:
        case RegistrySource(address, credentials, ca):
            repository = address.child(package).path
            async with open_registry(
                address.registry, scheme=address.scheme, credentials=credentials, ca=ca, patience=patience
            ) as registry:
                yield registry, repository
        case LayoutSource(path):
            yield OciLayout(path), _checked(package)
        case FolderSource(path):
            yield FolderRegistry(path), _checked(package)
        case _:
            assert_never(source)


def source_host(source: Source) -> str:
    """Return the registry of a source as ``host:port``; empty for a folder of this machine."""
    return str(source.address.registry) if isinstance(source, RegistrySource) else ""


def source_text(source: Source) -> str:
    """Return the name of a source, without secrets; two sources for the same place have the same name."""
    match source:
        case RegistrySource(address):
            return f"{address.scheme}://{address}"
        case LayoutSource(path):
            return f"oci-layout:{path}"
        case FolderSource(path):
            return f"folder:{path}"
        case _:
            assert_never(source)


def _checked(package: str) -> str:
    if not is_repository(package):
        raise AddressError(
            f"{package[:200]!r} is no name of a package: lower-case letters and digits, separated by '-'"
        )
    return package
