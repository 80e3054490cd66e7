"""The build of one package that no resource requests: a chart, a package folder, or an archive of a chart.

The caller gives the package's settings, and the namespace and the name of the release. Nothing is added to the rendered
objects, so the objects of a chart are the same as from ``helm template``.
"""

import re
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.archives.archive import DEFAULT_LIMITS
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.offline.building.chart_dependencies import ChartDependencies
from wharfinger.offline.building.charts import ChartRenders
from wharfinger.offline.controllers.controller import RunContext, RunOptions
from wharfinger.offline.controllers.package import Loaded, PackageController
from wharfinger.offline.discovery.tree import Tree, repository_above
from wharfinger.offline.discovery.walk import PACKAGE_FILES, TreeError
from wharfinger.offline.orchestrator.gates import node_of
from wharfinger.offline.orchestrator.orchestrator import Tools
from wharfinger.offline.orchestrator.result import Failure, Manifest, Notice, Result
from wharfinger.offline.sources.fetcher import SourceError
from wharfinger.offline.sources.retry import RetryPolicy
from wharfinger.offline.store.identity import object_id
from wharfinger.offline.store.store import ObjectStore, Place
from wharfinger.packages.author.package_check import own_name
from wharfinger.packages.charts.chart_archive import unpack_chart
from wharfinger.packages.definition.definition import Layout, read_definition
from wharfinger.packages.definition.package_file import PackageType
from wharfinger.packages.errors import ArtifactError, PackageError
from wharfinger.packages.kustomizing.loads import LoadError, check_links
from wharfinger.packages.sources.source import FolderSource
from wharfinger.runtime.resources.identity import AppId, IdentityError, ModuleId
from wharfinger.runtime.resources.resources import PackageSpec
from wharfinger.runtime.resources.settings import ResolvedSettings

_ARCHIVE: Final = (".tgz", ".tar.gz")
_CHART_PLACE: Final = re.compile(
    r"\((?P<file>[\w./-]+):(?P<line>\d+)(?::\d+)?\)|(?P<file2>[\w.-]+/[\w./-]+):(?P<line2>\d+)"
)


@dataclass(frozen=True, slots=True)
class PackageRequest:
    """One package to build: its folder or archive, the settings, and its release. If ``name`` is "", the package's own name is
    used.

    The targets of all symbolic links must lie in the folder ``limit``. By default, this is the git repository that contains the
    package, or the package's own folder if there is no repository.
    """

    path: Path
    settings: JsonObject
    name: str
    namespace: str
    limit: Path | None = None


def is_package(path: Path) -> bool:
    """Return whether a path is one package, and not a tree of manifests. Blocking."""
    if path.is_file():
        return path.name.endswith(_ARCHIVE)
    return path.is_dir() and any((path / name).is_file() for name in PACKAGE_FILES)


async def build_package(request: PackageRequest, tools: Tools, options: RunOptions) -> Result:
    """Build one package; a failure is part of the result. Raises TreeError if the path is not a package."""
    try:
        folder = await trio.to_thread.run_sync(_folder, request.path, tools.scratch)
        if await trio.Path(request.path).is_dir():  # an archive is checked when it is unpacked
            await trio.to_thread.run_sync(_check_links, folder, request.limit)
        loaded = await trio.to_thread.run_sync(_read, folder, request)
    except (PackageError, FormatError, IdentityError) as error:
        raise TreeError(str(error)) from error
    who = node_of(loaded.spec.id)
    charts = ChartRenders(tools.renderer, tools.digests, options.kube_version, options.api_versions)
    tree = Tree(folder, (".",), (), (), {}, (), (), frozenset(), namespace=request.namespace)
    controller = PackageController(RunContext(tree, ObjectStore(), options, tools.scratch), charts, tools.packages)
    dependencies = ChartDependencies(tools.oci, tools.helm_repositories, tools.scratch, RetryPolicy())
    try:
        if loaded.definition.layout is Layout.CHART:
            limit = request.limit or await trio.to_thread.run_sync(repository_above, folder) or folder
            folder = await dependencies.complete(folder, limit)
            loaded = Loaded(loaded.spec, loaded.definition, folder, "", loaded.source)
        loaded = Loaded(loaded.spec, loaded.definition, loaded.tree, await charts.digest_of(folder), loaded.source)
        is_chart = loaded.definition.layout is Layout.CHART
        produced = await controller.built(loaded, ResolvedSettings(request.settings), {}, as_template=is_chart)
    except (PackageError, FormatError, IdentityError, SourceError, OSError) as error:
        return Result({}, {who: Failure(who, str(error), _place(request.path, str(error)))}, {})
    manifests = tuple(Manifest(object_id(obj, request.namespace), obj) for obj in produced.objects)
    return Result({who: manifests}, {}, {}, tuple(Notice(each, who) for each in produced.warnings), runs=1)


def _folder(path: Path, scratch: Path) -> Path:
    """Return the folder of a package; an archive is unpacked first. Blocking. Raises ArtifactError."""
    if path.is_dir():
        return path.resolve()
    try:
        scratch.mkdir(parents=True, exist_ok=True)
        into = Path(tempfile.mkdtemp(prefix="archive-", dir=scratch))
        with path.open("rb") as file:
            return unpack_chart(file, into, what=str(path), limits=DEFAULT_LIMITS)
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be unpacked: {error.strerror}") from error


def _check_links(folder: Path, limit: Path | None) -> None:
    """Check that no link in a package leads out of the folder ``limit``. Blocking. Raises TreeError."""
    try:
        check_links(folder, limit or repository_above(folder) or folder)
    except LoadError as error:
        raise TreeError(f"{folder}: {error}") from error


def _read(folder: Path, request: PackageRequest) -> Loaded:
    """Read a package, and make a resource that requests it. Blocking."""
    definition = read_definition(folder, name=own_name(folder), version="")
    name = request.name or (definition.chart.name if definition.chart is not None else definition.name)
    is_module = definition.type is PackageType.MODULE or definition.layout is Layout.MODULE_FOLDER
    spec = PackageSpec(
        id=ModuleId(name, request.namespace) if is_module else AppId(request.namespace, name),
        generation=1,
        package=definition.name,
        version=definition.version,
        repository="",
        settings=request.settings,
        settings_from=(),
        status={},
    )
    return Loaded(spec, definition, folder, "", FolderSource(folder.parent))


def _place(path: Path, message: str) -> Place | None:
    """Return the file and line of the template that an error message of Helm names. If it names none, return the path."""
    found = _CHART_PLACE.search(message)
    if found is None:
        return Place(str(path))
    file, line = found["file"] or found["file2"], found["line"] or found["line2"]
    inside = file.partition("/")[2] or file
    return Place(f"{path}/{inside}" if path.is_dir() else f"{path}:{inside}", int(line))
