"""Archives as sources of packages: a tar.gz for each version, by URL or from Secrets, each with its expected digest.

An archive has a package's files at its top, or in one folder there, like charts and the archives of code hosts. It is unpacked as
untrusted data (:mod:`wharfinger.formats.archives.archive`), and only after its digest was verified.
"""

import hashlib
import io
import tempfile
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.archives.archive import ArchiveLimits, extract_tar
from wharfinger.formats.errors import FormatError
from wharfinger.packages.charts.chart_archive import MAX_ARCHIVE
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, RegistryError
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.pusher import Package, pack_package
from wharfinger.packages.sources.web_files import WebServer, get_file

MAX_CARRIED: Final = 8 * 1024 * 1024
"""The largest size of an archive in Secrets, in bytes; one archive may be split into several Secrets."""


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """The archive of one version of a package: its URL, or its bytes if they came from Secrets."""

    name: str
    version: str
    digest: Digest
    url: str = ""
    data: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class ArchiveSource:
    """A list of archives. Only the server at the URL ``server`` gets the login and the certificate. ``server`` is "" if there is
    neither.
    """

    files: tuple[ArchiveFile, ...]
    server: str = ""
    credentials: Credentials | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)
    client: ClientCertificate | None = None


class ArchivePacker:
    """The packages in a list of archives; implements :class:`~wharfinger.packages.sources.packed_registry.Packer`."""

    def __init__(self, source: ArchiveSource, server: WebServer) -> None:
        self._source = source
        self._server = server

    async def pack(self, name: str, tag: str) -> Package:
        """Fetch and verify the archive of a version, and pack its files. Raises PackageError."""
        files = self._files(name)
        file = files.get(tag)
        if file is None:
            raise ArtifactNotFoundError(
                f"the list of archives has no version {tag} of {name}; it has: {', '.join(list(files)[-5:])}; correct the "
                "version, or add it to spec.archive.packages"
            )
        what = file.url or f"the archive of {name} {tag}"
        data = file.data
        if file.url:
            data = (await get_file(self._server, file.url, max_bytes=MAX_ARCHIVE)).body
        found = hashlib.sha256(data).hexdigest()
        if found != file.digest.hex:
            raise DigestError(
                f"{what}: expected the digest {file.digest} of spec.archive.packages, found sha256:{found}; correct one of them",
                transient=bool(file.url),
            )
        return await trio.to_thread.run_sync(partial(pack_files, data, name, file.version, what))

    async def tags(self, name: str) -> tuple[str, ...]:
        """Return the versions of a package. Raises ArtifactNotFoundError."""
        await trio.lowlevel.checkpoint()
        return tuple(sorted(self._files(name)))

    async def check(self) -> None:
        """Return without a check, because an archive is requested only when its package is installed."""
        await trio.lowlevel.checkpoint()

    def _files(self, name: str) -> dict[str, ArchiveFile]:
        found = {each.version: each for each in self._source.files if each.name == name}
        if not found:
            raise ArtifactNotFoundError(f"the list of archives has no package {name}; correct the name, or add it")
        return found


def pack_files(data: bytes, name: str, version: str, what: str) -> Package:
    """Return the package in a tar or tar.gz. Blocking. Raises ArtifactError, or RegistryError if the disk fails."""
    with tempfile.TemporaryDirectory(prefix="wharfinger-archive-", ignore_cleanup_errors=True) as made:
        folder = Path(made) / "package"
        try:
            extract_tar(io.BytesIO(data), folder, ArchiveLimits(), what=what)
            return pack_package(_top(folder), name, version)
        except FormatError as error:
            raise ArtifactError(str(error)) from error
        except ArtifactError as error:
            raise ArtifactError(f"{what}: {str(error).replace(str(_top(folder)), name)}") from error
        except OSError as error:
            raise RegistryError(
                f"{what}: its files cannot be unpacked: {error.strerror}; check the disk", transient=True
            ) from error


def _top(folder: Path) -> Path:
    """Return the folder with the package's files: the only folder at the top, or the top itself."""
    found = sorted(folder.iterdir())
    return found[0] if len(found) == 1 and found[0].is_dir() and not found[0].is_symlink() else folder
