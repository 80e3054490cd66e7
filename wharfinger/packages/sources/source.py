"""The sources of packages: registries, Helm repositories, git repositories, archives, and folders of layouts or packages.

A source contains many packages, each with a name. `open_source` opens a source as a registry, and also yields the path of one
package in this registry. So the code for downloads needs only the interface
:class:`~wharfinger.packages.registry.registry.Registry`.
"""

import hashlib
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias, assert_never

from wharfinger.formats.proxies import NO_PROXIES, Proxies
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.address import RegistryAddress, RepositoryAddress, checked_package
from wharfinger.packages.registry.authorizations import Authorizations
from wharfinger.packages.registry.connection import RegistryAccess, Timeouts
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.docker_logins import DockerLogins
from wharfinger.packages.registry.folder_packs import FolderPacks
from wharfinger.packages.registry.folder_registry import FolderRegistry
from wharfinger.packages.registry.oci_layout import OciLayout
from wharfinger.packages.registry.oci_registry import open_registry
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.sources.archives import ArchivePacker, ArchiveSource
from wharfinger.packages.sources.git_repository import GitPacker, GitRepositories, GitSource, read_git_url
from wharfinger.packages.sources.helm_repository import HelmPacker, HelmRepositories
from wharfinger.packages.sources.mirrored_registry import MirroredRegistry
from wharfinger.packages.sources.packed_registry import PackedRegistry
from wharfinger.packages.sources.registry_rules import NO_RULES, Candidate, RegistryRules
from wharfinger.packages.sources.token_file import TokenFile, read_token_file
from wharfinger.packages.sources.web_files import WebServer, read_url
from wharfinger.packages.trust.policy import Policy


@dataclass(frozen=True, slots=True)
class RegistrySource:
    """An OCI registry: packages are the repositories below ``address``.

    ``ca`` is PEM text of certificate authorities to trust in addition to the system's; if it is empty, only the system's
    authorities are trusted.
    """

    address: RepositoryAddress
    credentials: Credentials | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)
    realms: tuple[str, ...] = ()
    """Hosts outside the registry's domain to which a login may be sent. The login in ``credentials`` has its own list of such
    hosts.
    """
    client: ClientCertificate | None = None
    """The certificate that identifies this client."""
    token: TokenFile | None = None
    """The file with the login; if it is set, ``credentials`` is not used."""
    verify: Policy | None = None
    """The policy that artifacts must satisfy; if None, all artifacts are trusted."""


@dataclass(frozen=True, slots=True)
class HelmSource:
    """A Helm repository over HTTP: packages are the charts in its index."""

    url: str
    credentials: Credentials | None = field(default=None, repr=False)
    ca: str = field(default="", repr=False)
    client: ClientCertificate | None = None
    verify: Policy | None = None
    """The policy with the keyring for provenance files; if None, all charts are trusted."""


@dataclass(frozen=True, slots=True)
class LayoutSource:
    """A folder of OCI image layouts: the package ``web`` is the layout in ``path/web``."""

    path: Path
    verify: Policy | None = None


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder that contains package folders as their authors edit them: the package ``web`` is the folder ``path/web``."""

    path: Path


Source: TypeAlias = RegistrySource | HelmSource | GitSource | ArchiveSource | LayoutSource | FolderSource


@dataclass(frozen=True, slots=True)
class Network:
    """The settings with which this process reaches registries, and the caches that all packages share."""

    proxies: Proxies = NO_PROXIES
    rules: RegistryRules = NO_RULES
    logins: DockerLogins | None = None
    """Logins for a source without credentials of its own, and for mirrors."""
    patience: Timeouts = Timeouts()  # noqa: RUF009 - frozen
    helm: HelmRepositories = field(default_factory=HelmRepositories)
    """The indexes of Helm repositories."""
    git: GitRepositories = field(default_factory=GitRepositories)
    """A cache of the tags of git repositories, and of the packages that were last read from git."""
    folders: FolderPacks = field(default_factory=FolderPacks)
    """The manifests of package folders that this process has already packed."""
    authorizations: Authorizations = field(default_factory=Authorizations)
    """The authorizations that registries have accepted. They are sent with the first request of a new connection, which is then
    not refused.
    """


@asynccontextmanager
async def open_source(
    source: Source, package: str, *, network: Network | None = None
) -> AsyncIterator[tuple[Registry, str]]:
    """Open a source as a registry; yield the registry and the path of ``package`` in it. Raises PackageError."""
    network = network or Network()
    match source:
        case RegistrySource():
            repository = source.address.child(package)
            async with open_repository(source, repository, network) as registry:
                where = str(source.address.registry)
                yield _trusted(registry, source.verify, where), repository.path
        case HelmSource():
            server = await _server(source, source.url, network)
            keyring = source.verify.keyring if source.verify is not None else ""
            yield PackedRegistry(HelmPacker(network.helm, server, keyring), source.url), checked_package(package)
        case GitSource(url):
            place = await _with_login(source, network)
            yield PackedRegistry(GitPacker(network.git, place), url), checked_package(package)
        case ArchiveSource():
            server = await _server(source, source.server, network)
            yield PackedRegistry(ArchivePacker(source, server), "archives"), checked_package(package)
        case LayoutSource(path, verify):
            yield _trusted(OciLayout(path), verify, str(path)), checked_package(package)
        case FolderSource(path):
            yield FolderRegistry(path, network.folders), checked_package(package)
        case _:
            assert_never(source)


@asynccontextmanager
async def open_repository(
    source: RegistrySource, repository: RepositoryAddress, network: Network
) -> AsyncIterator[Registry]:
    """Open a repository of a registry, with its mirrors. Raises PackageError."""
    candidates = network.rules.candidates(repository)
    open_place = partial(_open_place, source, network)
    if len(candidates) == 1 and candidates[0].address == repository:
        async with open_place(candidates[0]) as registry:
            yield registry
        return
    async with AsyncExitStack() as stack:
        yield MirroredRegistry(repository, network.rules, open_place, stack)


@asynccontextmanager
async def _open_place(source: RegistrySource, network: Network, candidate: Candidate) -> AsyncIterator[Registry]:
    """Open the registry of one candidate, which may be a mirror. Only the source's own registry gets the login and the client
    certificate of the source.
    """
    address = candidate.address
    own = address.registry == source.address.registry and address.scheme == source.address.scheme
    logins = _Logins(source, address, network.logins, own=own)
    access = RegistryAccess(
        source.client if own else None, network.proxies, logins.renewed, known=network.authorizations
    )
    async with open_registry(
        address.registry,
        scheme=address.scheme,
        credentials=await logins.current(),
        ca=source.ca,
        patience=network.patience,
        access=access,
    ) as registry:
        yield registry


async def _server(source: HelmSource | ArchiveSource, url: str, network: Network) -> WebServer:
    """Return the web server at ``url``, with the source's login. If the source has no login, use the login of this machine's
    user for ``url``, if there is one.
    """
    credentials = source.credentials or await _user_login(url, network)
    return WebServer(url, credentials, source.ca, source.client, network.proxies, network.patience)


async def _with_login(source: GitSource, network: Network) -> GitSource:
    """Return the source with the login that this machine's user has for its URL, if there is one. Return the source unchanged
    if it has a login already, or if its URL is not an http(s) URL.
    """
    if source.credentials is not None or not source.url.startswith(("http://", "https://")):
        return source
    return replace(source, credentials=await _user_login(source.url, network))


async def _user_login(url: str, network: Network) -> Credentials | None:
    """Return the login that this machine's user has for a URL; None if ``url`` is "" or there is no login."""
    if not url or network.logins is None:
        return None
    place = read_url(url)
    return await network.logins.find(place.registry, place.path.strip("/"), scheme=place.scheme)


@dataclass(frozen=True, slots=True)
class _Logins:
    """The login for the repository ``address``: the source's login if ``own`` is true and the source has one, else the login of
    this machine's user.
    """

    source: RegistrySource
    address: RepositoryAddress
    user: DockerLogins | None
    own: bool

    async def current(self) -> Credentials | None:
        """Return the login, or None. Raises RegistryError."""
        source = self.source
        if self.own and source.token is not None:
            return await read_token_file(source.token, source.realms)
        if self.own and source.credentials is not None:
            return source.credentials
        if self.user is None:
            return None
        address = self.address
        found = await self.user.find(address.registry, address.path, scheme=address.scheme)
        return None if found is None else replace(found, realms=source.realms)

    async def renewed(self) -> Credentials | None:
        """Return a new login after a refusal: the token file is read again, and the credential helper is run again."""
        if self.user is not None:
            self.user.forget(self.address.registry)
        return await self.current()


def with_expected_version(source: Source, version: str) -> Source:
    """Return a source that requires this version in the signatures of artifacts, even if an artifact is requested by digest."""
    if isinstance(source, RegistrySource | LayoutSource) and source.verify is not None:
        return replace(source, verify=replace(source.verify, version=version))
    return source


def without_policy(source: Source) -> Source:
    """Return a copy of a source without its policy. It is only for listing packages: nothing from it may be installed."""
    return replace(source, verify=None) if isinstance(source, RegistrySource | LayoutSource | HelmSource) else source


def is_packed(source: Source) -> bool:
    """Return whether the packages of a source are packed on request. Such a source is asked for versions, not for digests."""
    return isinstance(source, HelmSource | GitSource | ArchiveSource)


def source_host(source: Source) -> str:
    """Return the server of a source as ``host`` or ``host:port``; "" for a source without a server, such as a folder."""
    registry = source_server(source)
    return "" if registry is None else str(registry)


def source_server(source: Source) -> RegistryAddress | None:
    """Return the server of a source, or of the first archive with a URL; None for a source without a server, such as a folder."""
    match source:
        case RegistrySource(address):
            return address.registry
        case HelmSource(url):
            return read_url(url).registry
        case GitSource(url):
            return read_git_url(url)
        case ArchiveSource(files):
            return next((read_url(each.url).registry for each in files if each.url), None)
        case LayoutSource() | FolderSource():
            return None
        case _:
            assert_never(source)


def source_text(source: Source) -> str:
    """Return the name of a source, without secrets; two sources for the same place with the same policy have the same name.

    A package is fetched again when the name changes, so that a new policy also applies to installed packages.
    """
    match source:
        case RegistrySource(address):
            return f"{address.scheme}://{address}{_policy_text(source.verify)}"
        case HelmSource(url):
            return f"helm:{url}{_policy_text(source.verify)}"
        case GitSource(url, path):
            place = (f"//{path}" if path else "") + (f"#{source.package}" if source.package else "")
            return f"git:{url}{place}@{source.tags.text}"
        case ArchiveSource(files):
            listed = " ".join(f"{each.name} {each.version} {each.digest}" for each in files)
            return f"archives:sha256:{hashlib.sha256(listed.encode()).hexdigest()}"
        case LayoutSource(path):
            return f"oci-layout:{path}{_policy_text(source.verify)}"
        case FolderSource(path):
            return f"folder:{path}"
        case _:
            assert_never(source)


def _trusted(registry: Registry, policy: Policy | None, where: str) -> Registry:
    """Return a registry that applies the policy to the artifacts of ``registry``. If there is no policy, return ``registry``."""
    if policy is None:
        return registry
    from wharfinger.packages.trust.trusted_registry import TrustedRegistry  # noqa: PLC0415 - cryptography takes 20 MB

    return TrustedRegistry(registry, policy, where)


def _policy_text(policy: Policy | None) -> str:
    return "" if policy is None else f" verified-by:{policy.checksum}"
