"""Git repositories as sources of packages: versions are tags, packages are folders.

The package ``web`` is the folder ``web`` below ``GitSource.path``, or this path itself if the source has only that package. A
version is a tag whose name fits the pattern ``GitSource.tags``, or a whole commit (40 hexadecimal digits). The list of tags is
cached for a short time, so that many packages need one request. The packages that were read last are cached in memory by their
commits, so a scan fetches nothing if no tag has moved.
"""

import os
import ssl
import tempfile
from collections import OrderedDict
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final
from urllib.parse import urlsplit

import trio

from wharfinger.packages.errors import AddressError, ArtifactNotFoundError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.git.git_program import GitAccess, GitLogin, GitProgram, SshFiles, is_local
from wharfinger.packages.git.remote import COMMIT, list_tags, read_files
from wharfinger.packages.registry.address import RegistryAddress, parse_registry
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.pusher import Package
from wharfinger.packages.sources.archives import pack_files
from wharfinger.packages.sources.tag_pattern import TagPattern

FRESH_S: Final = 10.0
"""Seconds for which a list of tags is used without a request."""
MAX_LISTS: Final = 16
MAX_KEPT: Final = 32 * 1024 * 1024
"""The largest size of all packages that are kept in memory, in bytes."""
MAX_FETCHED: Final = 1024**3
"""The largest file that a fetch may write, in bytes."""
_SCHEMES: Final = frozenset({"https", "http", "ssh", "file"})


@dataclass(frozen=True, slots=True)
class SshKey:
    """A private key for ssh, and the lines of a ``known_hosts`` file with the accepted host keys of the server."""

    private: str = field(repr=False)
    known_hosts: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class GitSource:
    """The packages in one repository, and the access to it.

    ``path`` is a folder of the repository, "" its root. If ``path`` itself is a package, ``package`` is its name; if ``package``
    is "", each folder below ``path`` is a package. ``ca`` is PEM text of authorities to trust in addition to the system's.
    """

    url: str
    path: str = ""
    package: str = ""
    tags: TagPattern = TagPattern()  # noqa: RUF009 - frozen
    credentials: Credentials | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)
    ssh: SshKey | None = None
    """The key for an ssh URL; if None, ssh uses the keys of the daemon's user."""

    def folder(self, name: str) -> str:
        """Return the folder of a package in the repository. Raises ArtifactNotFoundError."""
        if not self.package:
            return (PurePosixPath(self.path) / name).as_posix()
        if self.package != name:
            raise ArtifactNotFoundError(
                f"{self.url}: has only the package {self.package}, not {name}; correct the name"
            )
        return self.path

    @property
    def login(self) -> "Credentials | SshKey | None":
        """The login or the ssh key. It is a part of cache keys, so that cached data is not shared between logins."""
        return self.ssh or self.credentials

    @property
    def local(self) -> Path | None:
        """The folder of the repository on this machine; None if the repository is remote."""
        return Path(self.url.removeprefix("file://")) if is_local(self.url) else None


@dataclass(frozen=True, slots=True)
class _Tags:
    commits: Mapping[str, str]
    until: float


_Login = Credentials | SshKey | None
_Key = tuple[str, str, str, str, _Login]
"""A key of the cache: URL, commit, folder, the name with the version, and the login. The login is included, because another
login may have no access to the repository.
"""


class GitRepositories:
    """A reader of git repositories. It caches their tags for a while, and the packages that were read last."""

    def __init__(self, git: GitProgram | None = None) -> None:
        self._git = git or GitProgram(file_bytes=MAX_FETCHED)
        self._lists: OrderedDict[tuple[str, _Login], _Tags] = OrderedDict()
        self._kept: OrderedDict[_Key, Package] = OrderedDict()
        self._locks = KeyedLocks()

    async def tags(self, place: GitSource) -> Mapping[str, str]:
        """Return the tags of a repository with their commits. Raises PackageError."""
        async with self._locks.held(place.url):
            key = place.url, place.login
            known = self._lists.get(key)
            if known is not None and trio.current_time() < known.until:
                return known.commits
            async with _open_access(place) as access:
                commits = await list_tags(self._git, place.url, access)
            self._lists[key] = _Tags(commits, trio.current_time() + FRESH_S)
            self._lists.move_to_end(key)
            while len(self._lists) > MAX_LISTS:
                self._lists.popitem(last=False)
            return commits

    async def package(self, place: GitSource, name: str, version: str, tag: str, commit: str) -> Package:
        """Return a package of a commit; ``tag`` is the tag that points to the commit, "" if there is no such tag. Raises
        PackageError.
        """
        folder = place.folder(name)
        key = place.url, commit, folder, f"{name} {version}", place.login
        async with self._locks.held(" ".join(key[:4])):
            known = self._kept.get(key)
            if known is None:
                async with _open_access(place) as access:
                    files = await read_files(self._git, place.url, tag, commit, folder, access)
                what = f"{place.url}: {tag or commit}"
                known = await trio.to_thread.run_sync(
                    partial(pack_files, files, name, "" if not tag else version, what)
                )
                self._keep(key, known)
            return known

    def _keep(self, key: _Key, package: Package) -> None:
        self._kept[key] = package
        while sum(len(each.layer.data) for each in self._kept.values()) > MAX_KEPT and self._kept:
            self._kept.popitem(last=False)


class GitPacker:
    """The packages of one git repository; implements :class:`~wharfinger.packages.sources.packed_registry.Packer`."""

    def __init__(self, repositories: GitRepositories, place: GitSource) -> None:
        self._repositories = repositories
        self._place = place

    async def pack(self, name: str, tag: str) -> Package:
        """Fetch the commit of a version, and pack the package's folder. Raises PackageError."""
        place = self._place
        place.folder(name)  # raises an error if the source does not have this package
        if COMMIT.match(tag):
            return await self._repositories.package(place, name, tag, "", tag)
        commits = await self._repositories.tags(place)
        versions = place.tags.versions(commits, name)
        if tag not in versions:
            listed = ", ".join(list(versions)[-5:]) or "no version"
            raise ArtifactNotFoundError(
                f"{place.url}: has no tag {place.tags.text!r} for version {tag} of {name}; it has: {listed}; correct the "
                "version, or push the tag"
            )
        return await self._repositories.package(place, name, tag, versions[tag], commits[versions[tag]])

    async def tags(self, name: str) -> tuple[str, ...]:
        """Return the versions of a package. Raises PackageError."""
        self._place.folder(name)
        return tuple(sorted(self._place.tags.versions(await self._repositories.tags(self._place), name)))

    async def check(self) -> None:
        """Raise PackageError if the tags of the repository cannot be listed. A list younger than FRESH_S is used again."""
        await self._repositories.tags(self._place)


def read_git_url(url: str) -> RegistryAddress | None:
    """Return the server of a repository; None if it is on this machine. Raises AddressError."""
    if not url.isprintable() or " " in url:
        raise AddressError(
            f"{url[:200]!r}: expected the URL of a git repository, such as https://git.example/team/packages"
        )
    if url.startswith("/"):
        return None
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or bool(parts.netloc) == (parts.scheme == "file"):
        raise AddressError(
            f"{url[:200]!r}: expected an https, ssh or file URL of a git repository, such as https://git.example/team/packages"
        )
    if parts.scheme == "file":
        return None
    if parts.password or (parts.username and parts.scheme != "ssh"):
        raise AddressError("the URL of a git repository must not contain a login; use credentialsSecret")
    return parse_registry(f"https://{parts.netloc.rpartition('@')[2]}")[0]


@asynccontextmanager
async def _open_access(place: GitSource) -> AsyncIterator[GitAccess]:
    """Yield the access to a repository, with its authorities and ssh keys in temporary files."""
    login = None
    if place.credentials is not None:
        login = GitLogin(place.url, place.credentials.username, place.credentials.password)
    if not place.ca and place.ssh is None:
        yield GitAccess(login)
        return
    with tempfile.TemporaryDirectory(prefix="wharfinger-git-", ignore_cleanup_errors=True) as made:
        file = Path(made) / "authorities.pem" if place.ca else None
        if file is not None:
            await trio.to_thread.run_sync(_write_authorities, file, place.ca)
        ssh = await trio.to_thread.run_sync(_write_key, Path(made), place.ssh) if place.ssh is not None else None
        yield GitAccess(login, file, ssh)


def _write_key(folder: Path, key: SshKey) -> SshFiles:
    """Write the files for ssh, with mode 0600: ssh refuses a key that other users may read. Blocking."""
    files = SshFiles(folder / "key", folder / "known_hosts")
    for path, text in ((files.key, key.private), (files.known_hosts, key.known_hosts)):
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(f"{text.rstrip()}\n")  # ssh does not read a key whose last line has no line end
    return files


def _write_authorities(file: Path, own: str) -> None:
    """Write the system's certificate authorities and those in ``own`` into a file. Blocking."""
    context = ssl.create_default_context()
    system = [ssl.DER_cert_to_PEM_cert(each) for each in context.get_ca_certs(binary_form=True)]
    file.write_text("\n".join([*system, own]) + "\n")
