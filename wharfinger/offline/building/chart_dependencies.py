"""The dependencies of a chart that are not in its folder ``charts``, fetched as ``helm dependency build`` does it.

Flux and Argo CD fetch them for charts in git. The chart and its dependencies are put together in a scratch folder; the tree is
not changed. The versions come from ``Chart.lock``; without one, each dependency gets the newest version that ``Chart.yaml``
allows.
"""

import os
import secrets
import shutil
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find_list, find_str
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.offline.sources.fetcher import SourceError
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.sources.retry import RetryPolicy, with_retries
from wharfinger.packages.charts.chart import read_chart
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.kustomizing.loads import LoadError, check_links
from wharfinger.packages.registry.address import RegistryAddress

MAX_LOCK: Final = 1024 * 1024
_LOCAL: Final = "file://"
_OCI: Final = "oci://"


class ChartDependencies:
    """The completion of charts: missing dependencies are added to copies of the charts, in folders below ``scratch``. All calls
    of `complete` for one chart share the result.
    """

    def __init__(self, oci: OciFetcher, repositories: HelmRepositories, scratch: Path, retries: RetryPolicy) -> None:
        self._oci = oci
        self._repositories = repositories
        self._scratch = scratch / f"charts-{secrets.token_hex(8)}"  # several builds of a command share the folder
        self._retries = retries
        self._locks = KeyedLocks()
        self._known: dict[Path, Path] = {}
        self._count = 0

    async def are_missing(self, chart: Path) -> bool:
        """Return whether a chart lacks dependencies and was not completed yet. Raises ArtifactError, FormatError."""
        return chart not in self._known and bool(await trio.to_thread.run_sync(_missing, chart))

    async def complete(self, chart: Path, limit: Path) -> Path:
        """Return a folder with the chart and all of its dependencies. If the chart lacks no dependency, this is the folder of
        the chart itself.

        Dependencies with a ``file://`` address must lie in ``limit``. Raises SourceError, ArtifactError, FormatError, OSError.
        """
        if (known := self._known.get(chart)) is not None:
            return known
        async with self._locks.held(str(chart)):
            if chart not in self._known:
                self._known[chart] = await self._completed(chart, limit, ())
            return self._known[chart]

    async def _completed(self, chart: Path, limit: Path, above: tuple[Path, ...]) -> Path:
        """Return the folder of a chart with all its dependencies: its own folder if none is missing, else a completed copy.

        ``above`` are the folders of the charts that depend on the chart, to detect cycles.
        """
        if chart in above:
            named = " -> ".join(each.name for each in (*above[above.index(chart) :], chart))
            raise SourceError(f"charts depend on each other: {named}")
        missing = await trio.to_thread.run_sync(_missing, chart)
        if not missing:
            return chart
        found: dict[str, Path] = {}
        for each in missing:
            name = find_str(each, "name")
            if name in {"", ".", ".."} or "/" in name or "\0" in name:
                raise SourceError(f"dependencies: {name[:100]!r} cannot be the name of a chart; correct it")
            try:
                found[name] = await self._dependency(chart, each, limit, (*above, chart))
            except SourceError as error:
                raise SourceError(f"the chart's dependency {name}: {error}", transient=error.transient) from error
        self._count += 1
        place = self._scratch / str(self._count) / chart.name
        await trio.to_thread.run_sync(_put_together, chart, found, place)
        return place

    async def _dependency(self, chart: Path, entry: JsonObject, limit: Path, above: tuple[Path, ...]) -> Path:
        """Return the folder of one dependency. Raises SourceError, ArtifactError, FormatError, OSError."""
        name, version, url = (find_str(entry, key) for key in ("name", "version", "repository"))
        if url.startswith(_LOCAL):
            path = await trio.to_thread.run_sync(_local, chart, url, limit)
            return await self._completed(path, limit, above)
        if url.startswith(_OCI):
            insecure = RegistryAddress(url.removeprefix(_OCI).partition("/")[0]).is_loopback
            source: JsonObject = {"spec": {"url": url, "insecure": insecure}}
            fetched = await with_retries(partial(self._oci.chart, source, name, version, None), self._retries)
        elif url.startswith(("https://", "http://")):
            source = {"spec": {"url": url}}
            fetched = await with_retries(partial(self._repositories.chart, source, name, version, None), self._retries)
        else:
            where = f"its repository {url!r} is not an address" if url else "it has no repository"
            raise SourceError(f"is not in the folder charts, and {where}; add it to the folder, or name an address")
        return fetched.folder


def _local(chart: Path, url: str, limit: Path) -> Path:
    """Return the folder that an address names, relative to a chart. Blocking. Raises SourceError."""
    path = Path(os.path.normpath(chart / url.removeprefix(_LOCAL)))
    if not path.resolve().is_relative_to(limit.resolve()):
        raise SourceError(f"{url} lies outside of the source; copy it into the source")
    try:
        check_links(path, limit)
    except LoadError as error:
        raise SourceError(f"{url}: {error}") from error
    return path


def _missing(chart: Path) -> tuple[JsonObject, ...]:
    """Return the dependencies that a chart lacks, with their locked versions. Blocking. Raises ArtifactError, FormatError."""
    read = read_chart(chart)
    metadata: Mapping[str, object] = read.metadata
    listed = [as_object(each, "dependencies") for each in find_list(read.metadata, "dependencies")]
    lock = chart / "Chart.lock"
    if "dependencies" not in metadata and (old := chart / "requirements.yaml").is_file():
        listed = [as_object(each, old.name) for each in find_list(_yaml(old), "dependencies")]
        lock = chart / "requirements.lock"
    lacking = [each for each in listed if find_str(each, "name") and not _has(chart / "charts", find_str(each, "name"))]
    if not lacking:
        return ()
    locked = find_list(_yaml(lock), "dependencies") if lock.is_file() else []
    versions = {(find_str(each, "name"), find_str(each, "repository")): find_str(each, "version") for each in locked}
    return tuple(
        {
            **each,
            "version": versions.get((find_str(each, "name"), find_str(each, "repository")))
            or find_str(each, "version"),
        }
        for each in lacking
    )


def _has(charts: Path, name: str) -> bool:
    """Return whether a folder has a chart of this name, unpacked or as an archive."""
    if not charts.is_dir():
        return False
    return (charts / name / "Chart.yaml").is_file() or any(
        each.name.startswith(f"{name}-")
        and each.name.endswith(".tgz")
        and each.name[len(name) + 1 : len(name) + 2].isdigit()
        for each in charts.iterdir()
    )


def _yaml(path: Path) -> JsonObject:
    try:
        with path.open("rb") as file:
            return as_object(read_yaml(file.read(MAX_LOCK + 1), what=path.name) or {}, path.name)
    except OSError as error:
        raise FormatError(f"{path.name}: cannot be read: {error.strerror}") from error


def _put_together(chart: Path, dependencies: Mapping[str, Path], place: Path) -> None:
    """Copy a chart to ``place``, and its dependencies into the folder ``charts`` of the copy. Blocking. Raises OSError."""
    shutil.copytree(chart, place)
    for name, folder in dependencies.items():
        shutil.copytree(folder, place / "charts" / name)
