"""Charts of Helm repositories that HTTP serves: the index, and the archives that it names.

The index is read once for each repository and run. An archive whose digest the index tells is verified, and its chart is kept
by that digest.
"""

import hashlib
import io
import shutil
import tempfile
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

import httpx
import trio

from wharfinger.formats.archives.archive import DEFAULT_LIMITS
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_str
from wharfinger.formats.version_constraint import ConstraintError
from wharfinger.formats.yaml.reader import YamlLimits, read_yaml
from wharfinger.offline.sources.cache_folder import CHARTS, mark_used
from wharfinger.offline.sources.chart_version import newest
from wharfinger.offline.sources.fetcher import Artifact, OfflineError, SourceError
from wharfinger.packages.charts.chart_archive import MAX_ARCHIVE, unpack_chart
from wharfinger.packages.errors import ArtifactError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.registry.address import RegistryAddress

MAX_INDEX: Final = 64 * 1024 * 1024
_TRANSIENT_STATUS: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
_TIMEOUT_S: Final = 60.0


class HelmRepositories:
    """The Helm repositories of one run; charts are kept below ``cache``."""

    def __init__(self, cache: Path, *, network: bool = True) -> None:
        self._cache = cache / CHARTS
        self._network = network
        self._indexes: dict[str, JsonObject] = {}
        self._locks = KeyedLocks()

    async def chart(self, repository: JsonObject, name: str, version: str, login: tuple[str, str] | None) -> Artifact:
        """Fetch the newest chart that ``version`` allows. Raises SourceError."""
        url = find_str(repository, "spec", "url").rstrip("/") + "/"
        async with self._locks.held(url):
            index = await self._index(url, login)
        entries = {find_str(each, "version"): each for each in find_list(index, "entries", name)}
        if not entries:
            raise SourceError(f"{url}: has no chart {name!r}; correct spec.chart.spec.chart")
        try:
            chosen = newest(entries, version or "*")
        except ConstraintError as error:
            raise SourceError(f"spec.chart.spec.version: {error}") from error
        if chosen is None:
            listed = ", ".join(list(entries)[:5])
            raise SourceError(f"{url}: no version of {name} satisfies {version!r}; it has: {listed}")
        archive = find_str(entries[chosen], "urls", 0)
        digest = find_str(entries[chosen], "digest").removeprefix("sha256:")
        if not archive:
            raise SourceError(f"{url}: the index names no archive of {name} {chosen}")
        return await self._archive(urljoin(url, archive), digest, login if _same_host(url, archive) else None)

    async def _index(self, url: str, login: tuple[str, str] | None) -> JsonObject:
        if url not in self._indexes:
            data = await self._get(urljoin(url, "index.yaml"), MAX_INDEX, login)
            limits = YamlLimits(MAX_INDEX, max_nodes=10_000_000, max_characters=4 * MAX_INDEX)
            try:
                read = await trio.to_thread.run_sync(lambda: read_yaml(data, what="index.yaml", limits=limits))
                self._indexes[url] = as_object(read, "index.yaml")
            except FormatError as error:
                raise SourceError(f"{url}: {error}; is this a Helm repository?") from error
        return self._indexes[url]

    async def _archive(self, url: str, digest: str, login: tuple[str, str] | None) -> Artifact:
        async with self._locks.held(url):
            if digest and (folder := _chart_in(self._cache / digest)) is not None:
                return Artifact(folder, f"sha256:{digest}")
            data = await self._get(url, MAX_ARCHIVE, login)
            found = hashlib.sha256(data).hexdigest()
            if digest and found != digest:
                raise SourceError(f"{url}: has the digest {found}, and the index says {digest}", transient=True)
            return Artifact(await trio.to_thread.run_sync(_unpacked, self._cache, data, found, url), f"sha256:{found}")

    async def _get(self, url: str, most: int, login: tuple[str, str] | None) -> bytes:
        if not self._network and not _is_loopback(url):
            raise OfflineError(
                f"{url}: the network is forbidden by --offline, and this repository is not on this machine"
            )
        auth = None if login is None else httpx.BasicAuth(*login)
        data = bytearray()
        try:
            async with (
                httpx.AsyncClient(timeout=_TIMEOUT_S, follow_redirects=True) as client,
                client.stream("GET", url, auth=auth) as answer,
            ):
                if answer.status_code != httpx.codes.OK:
                    again = answer.status_code in _TRANSIENT_STATUS
                    raise SourceError(f"{url}: the server answers {answer.status_code}", transient=again)
                async for chunk in answer.aiter_bytes():
                    data += chunk
                    if len(data) > most:
                        raise SourceError(f"{url}: more than {most} bytes")
        except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
            raise SourceError(f"{url[:200]}: no address of a Helm repository: {error}") from error
        except httpx.HTTPError as error:
            raise SourceError(f"{url}: {str(error) or type(error).__name__}", transient=True) from error
        return bytes(data)


def _unpacked(cache: Path, data: bytes, digest: str, what: str) -> Path:
    """Unpack an archive below ``cache`` unless it is there; return the chart's folder. Blocking. Raises SourceError."""
    place = cache / digest
    if (folder := _chart_in(place)) is not None:
        return folder
    cache.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".tmp-", dir=cache))
    try:
        unpack_chart(io.BytesIO(data), temporary, what=what, limits=DEFAULT_LIMITS)
        try:
            temporary.rename(place)
        except OSError:  # another process finished the same archive first
            if not place.is_dir():
                raise
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


def _same_host(url: str, archive: str) -> bool:
    return urlsplit(urljoin(url, archive)).netloc == urlsplit(url).netloc


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname
    return host is not None and RegistryAddress(host).is_loopback


def basic_login(secret: JsonObject | None) -> tuple[str, str] | None:
    """Return the user and password of decoded Secret data, if it has both."""
    user, password = find(secret, "username"), find(secret, "password")
    return (user, password) if isinstance(user, str) and isinstance(password, str) else None
