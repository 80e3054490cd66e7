"""Charts of Helm repositories over HTTP: the index, and the archives that it names.

The index is read as the daemon reads it (:mod:`~wharfinger.packages.sources.helm_repository`). Charts are cached by the digests
of their archives. If the index has the digest of an archive, the archive is verified, and it is fetched only if its chart is
not in the cache. An archive without a digest in the index is always fetched.
"""

import hashlib
import io
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import trio

from wharfinger.formats.archives.archive import DEFAULT_LIMITS
from wharfinger.formats.json.value import JsonObject, find_str
from wharfinger.formats.version_constraint import ConstraintError
from wharfinger.offline.sources.cache_folder import CHARTS, mark_used, move_into_place, temporary_folder
from wharfinger.offline.sources.chart_version import newest
from wharfinger.offline.sources.fetcher import Artifact, OfflineError, SourceError
from wharfinger.packages.charts.chart_archive import unpack_chart
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.registry.credentials import Credentials
from wharfinger.packages.sources.helm_repository import ChartEntry, get_archive
from wharfinger.packages.sources.source import Network
from wharfinger.packages.sources.web_files import WebServer, read_url


class HelmRepositories:
    """The Helm repositories of one run; charts are kept below ``cache``.

    The logins of ``sources`` are for repositories that name no Secret.
    """

    def __init__(self, cache: Path, *, network: bool = True, sources: Network | None = None) -> None:
        self._cache = cache / CHARTS
        self._network = network
        self._sources = sources or Network()
        self._locks = KeyedLocks()

    async def chart(self, repository: JsonObject, name: str, version: str, login: tuple[str, str] | None) -> Artifact:
        """Fetch the newest chart that ``version`` allows. Raises SourceError."""
        url = find_str(repository, "spec", "url").rstrip("/") + "/"
        self._check_network(url)
        try:
            server = await self._server(url, login)
            entries = (await self._sources.helm.charts(server)).get(name)
            if not entries:
                raise SourceError(f"{url}: has no chart {name!r}; correct spec.chart.spec.chart")
            chosen = newest(entries, version or "*")
            if chosen is None:
                listed = ", ".join(list(entries)[:5])
                raise SourceError(f"{url}: no version of {name} satisfies {version!r}; it has: {listed}")
            return await self._archive(server, entries[chosen])
        except ConstraintError as error:
            raise SourceError(f"spec.chart.spec.version: {error}") from error
        except PackageError as error:
            raise SourceError(str(error), transient=error.transient) from error

    async def _server(self, url: str, login: tuple[str, str] | None) -> WebServer:
        if login is not None:
            return WebServer(url, Credentials(*login), proxies=self._sources.proxies)
        place = read_url(url)
        logins = self._sources.logins
        found = await logins.find(place.registry, place.path.strip("/"), scheme=place.scheme) if logins else None
        return WebServer(url, found, proxies=self._sources.proxies)

    async def _archive(self, server: WebServer, entry: ChartEntry) -> Artifact:
        async with self._locks.held(entry.url):
            if entry.digest and (folder := _chart_in(self._cache / entry.digest)) is not None:
                return Artifact(folder, f"sha256:{entry.digest}")
            self._check_network(entry.url)
            data = await get_archive(server, entry)
            found = hashlib.sha256(data).hexdigest()
            folder = await trio.to_thread.run_sync(_unpacked, self._cache, data, found, entry.url)
            return Artifact(folder, f"sha256:{found}")

    def _check_network(self, url: str) -> None:
        """Raise OfflineError if the network is needed and forbidden."""
        if not self._network and not _is_loopback(url):
            raise OfflineError(url, "repository")


def _unpacked(cache: Path, data: bytes, digest: str, what: str) -> Path:
    """Unpack an archive below ``cache``, unless it is there; return the chart's folder. Blocking. Raises SourceError."""
    place = cache / digest
    if (folder := _chart_in(place)) is not None:
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    temporary = temporary_folder(cache)
    try:
        unpack_chart(io.BytesIO(data), temporary, what=what, limits=DEFAULT_LIMITS)
        move_into_place(temporary, place)
    except (ArtifactError, OSError) as error:
        raise SourceError(f"{what}: {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    folder = _chart_in(place)
    if folder is None:
        raise SourceError(f"{what}: has no chart")
    return folder


def _chart_in(place: Path) -> Path | None:
    if not place.is_dir():
        return None
    mark_used(place)
    return next((each for each in sorted(place.iterdir()) if each.is_dir()), None)


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname
    return host is not None and RegistryAddress(host).is_loopback
