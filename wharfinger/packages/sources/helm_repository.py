"""Helm repositories over HTTP: ``index.yaml``, and the archives that it names by relative or absolute URLs.

An index is kept in memory with the validators of the response. While it is fresh, nothing is requested. Afterwards the request is
conditional, for servers with ``ETag`` or ``Last-Modified``. An archive whose digest is in the index is verified.

The daemon and offline builds both use this module. Source: Helm's documentation, "The Chart Repository Guide".
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urljoin, urlsplit

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find_object, find_str
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.packages.charts.chart_archive import MAX_ARCHIVE
from wharfinger.packages.errors import ArtifactError, ArtifactNotFoundError, DigestError, RegistryError, TrustError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.network.tls import ClientCertificate
from wharfinger.packages.registry.address import is_tag
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.registry.pusher import Package, pack_archive
from wharfinger.packages.sources.web_files import WebServer, get_file
from wharfinger.packages.trust.provenance import MAX_PROVENANCE, MISSING, ChartClaim, check_provenance

MAX_INDEX: Final = 64 * 1024 * 1024
MAX_INDEXES: Final = 16
FRESH_S: Final = 10.0
"""Seconds for which an index is used without a request, so that many packages need only one request."""


@dataclass(frozen=True, slots=True)
class ChartEntry:
    """A version of a chart: the URL of its archive, and the archive's SHA-256 in hexadecimal ("" if the index has no digest)."""

    version: str
    url: str
    digest: str


Charts = Mapping[str, Mapping[str, ChartEntry]]
"""The charts in an index: by the name of the chart, and then by its version, the entry of this version."""


@dataclass(frozen=True, slots=True)
class _Index:
    charts: Charts
    validators: tuple[tuple[str, str], ...]
    until: float


class HelmRepositories:
    """A cache of the indexes of Helm repositories."""

    def __init__(self) -> None:
        self._indexes: OrderedDict[tuple[str, Credentials | None, ClientCertificate | None], _Index] = OrderedDict()
        self._locks = KeyedLocks()

    async def charts(self, server: WebServer) -> Charts:
        """Return the charts of a repository. Raises PackageError."""
        url = server.url.rstrip("/") + "/"
        async with self._locks.held(url):
            # An index that was read with a login must not be returned to callers without that login.
            key = url, server.credentials, server.client
            known = self._indexes.get(key)
            if known is not None and trio.current_time() < known.until:
                return known.charts
            fresh = await _read_index(server, url, known)
            self._indexes[key] = fresh
            self._indexes.move_to_end(key)
            while len(self._indexes) > MAX_INDEXES:
                self._indexes.popitem(last=False)
            return fresh.charts


async def get_archive(server: WebServer, entry: ChartEntry) -> bytes:
    """Return the archive of a chart, verified if the index has its digest. Raises PackageError."""
    if not entry.digest and entry.url.startswith("http://") and server.url.startswith("https://"):
        raise RegistryError(
            f"{entry.url}: the index names an archive over plain http without its digest; refused: publish the digest, or an "
            "https URL",
            transient=False,
        )
    data = (await get_file(server, entry.url, max_bytes=MAX_ARCHIVE)).body
    found = hashlib.sha256(data).hexdigest()
    if entry.digest and found != entry.digest:
        raise DigestError(
            f"{entry.url}: expected the digest {entry.digest} of the index, found {found}", transient=True
        )
    return data


class HelmPacker:
    """The charts of one Helm repository as packages; implements
    :class:`~wharfinger.packages.sources.packed_registry.Packer`.
    """

    def __init__(self, repositories: HelmRepositories, server: WebServer, keyring: str = "") -> None:
        """Pack the charts of ``server``. ``keyring`` has OpenPGP public keys: each chart must have a provenance file signed by
        one of them. If ``keyring`` is "", no provenance files are needed.
        """
        self._keyring = keyring
        self._repositories = repositories
        self._server = server

    async def pack(self, name: str, tag: str) -> Package:
        """Fetch the chart of a version. Raises PackageError."""
        versions = await self._versions(name)
        entry = versions.get(tag)
        if entry is None:
            listed = ", ".join(list(versions)[:5])
            raise ArtifactNotFoundError(
                f"{self._server.url}: has no version {tag} of {name}; it has: {listed}; correct the version, or publish it"
            )
        data = await get_archive(self._server, entry)
        if self._keyring:
            await self._check_provenance(name, entry, data)
        package = await trio.to_thread.run_sync(pack_archive, data, entry.url)
        if (package.name, package.version) != (name, entry.version):
            raise ArtifactError(
                f"{entry.url}: expected the chart {name} {entry.version}, as the index says, found {package.name} "
                f"{package.version}; correct the index"
            )
        return package

    async def _check_provenance(self, name: str, entry: ChartEntry, archive: bytes) -> None:
        """Raise TrustError unless the archive's provenance file was signed with a key of the keyring."""
        path, mark, query = entry.url.partition("?")
        try:
            file = await get_file(self._server, f"{path}.prov{mark}{query}", max_bytes=MAX_PROVENANCE)
            claim = ChartClaim(name, entry.version, hashlib.sha256(archive).hexdigest())
            await check_provenance(file.body, self._keyring, claim)
        except ArtifactNotFoundError as error:
            raise TrustError(f"{entry.url}: not trusted: {MISSING}") from error
        except ArtifactError as error:
            raise TrustError(f"{entry.url}: not trusted: {error}") from error

    async def tags(self, name: str) -> tuple[str, ...]:
        """Return the tags of all versions of a chart, except versions that cannot be a tag. Raises PackageError."""
        return tuple(sorted(await self._versions(name)))

    async def check(self) -> None:
        """Raise PackageError if the index cannot be read."""
        await self._repositories.charts(self._server)

    async def _versions(self, name: str) -> dict[str, ChartEntry]:
        versions = (await self._repositories.charts(self._server)).get(name)
        if not versions:
            raise ArtifactNotFoundError(
                f"{self._server.url}: not found: the repository has no chart {name}; correct the name, or publish it"
            )
        # A version that is not a valid tag cannot be requested. It is left out, and the other versions are still found.
        return {tag: entry for version, entry in versions.items() if is_tag(tag := version.replace("+", "_"))}


async def _read_index(server: WebServer, url: str, known: _Index | None) -> _Index:
    place = urljoin(url, "index.yaml")
    answer = await get_file(server, place, max_bytes=MAX_INDEX, headers=known.validators if known is not None else ())
    until = trio.current_time() + FRESH_S
    if answer.status == 304 and known is not None:
        return _Index(known.charts, known.validators, until)
    names = {"etag": "If-None-Match", "last-modified": "If-Modified-Since"}
    validators = tuple((names[key], answer.headers[key]) for key in names if answer.headers.get(key))
    try:
        charts = await trio.to_thread.run_sync(read_charts, answer.body, url)
    except FormatError as error:
        raise RegistryError(f"{url}: {error}; is this a Helm repository?", transient=False) from error
    return _Index(charts, validators[:1], until)


def read_charts(data: bytes, url: str) -> Charts:
    """Return the charts of an index, with absolute URLs. Blocking. Raises FormatError."""
    limits = YamlLimits(MAX_INDEX, max_nodes=10_000_000, max_characters=4 * MAX_INDEX)
    index = as_object(read_yaml(data, what="index.yaml", limits=limits), "index.yaml")
    listed = find_object(index, "entries")
    return {name: _versions(entries, url) for name, entries in listed.items() if isinstance(entries, list)}


def _versions(entries: Sequence[JsonValue], url: str) -> dict[str, ChartEntry]:
    """Return the versions that can be fetched. If a version has several entries, the first entry is used, as in Helm."""
    found: dict[str, ChartEntry] = {}
    for each in entries:
        if not isinstance(each, dict):
            continue
        entry: JsonObject = each
        try:
            version, archive = find_str(entry, "version"), find_str(entry, "urls", 0)
            digest = find_str(entry, "digest").removeprefix("sha256:").lower()
            whole = urljoin(url, archive)
            urlsplit(whole)
        except (FormatError, ValueError):
            continue
        if version and archive:
            found.setdefault(version, ChartEntry(version, whole, digest))
    return found
