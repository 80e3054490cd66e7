"""The controller of Argo CD Applications: sources with a chart, a kustomization, or plain manifests.

An Application that is rendered by another one becomes a node as well, so an app of apps is built as a tree. Sync waves, hooks and
sync options have no effect: the manifests are the same.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, find, find_list, find_object, find_str
from wharfinger.offline.building.argo import ArgoError, folder_filter, helm_values, kustomize_fields, read_text, tool_of
from wharfinger.offline.building.chart_dependencies import ChartDependencies
from wharfinger.offline.building.chart_makers import fixed_chart
from wharfinger.offline.building.chart_nodes import names_nodes
from wharfinger.offline.building.charts import ChartRenders, objects_of
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, ReconcileError
from wharfinger.offline.controllers.inputs import inputs_digest
from wharfinger.offline.controllers.kustomization import build_error, check_build
from wharfinger.offline.discovery.argo import ArgoSource, argo_sources
from wharfinger.offline.discovery.build_files import normal_path
from wharfinger.offline.discovery.documents import SUFFIXES, is_encrypted, read_documents, without_encryption
from wharfinger.offline.discovery.repository_address import plain_address
from wharfinger.offline.discovery.tree import MAX_FILE
from wharfinger.offline.discovery.walk import TreeError
from wharfinger.offline.sources.fetcher import Artifact, SourceError, SourceRequest
from wharfinger.offline.sources.fetchers import Fetchers
from wharfinger.offline.sources.git import DEFAULT_REVISION
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.sources.retry import with_retries
from wharfinger.offline.store.identity import object_id
from wharfinger.offline.store.kinds import GIT_REPOSITORY
from wharfinger.offline.store.store import Stored
from wharfinger.packages.errors import PackageError
from wharfinger.packages.kustomizing.kustomization import Folder, Overlay
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder, KustomizeError
from wharfinger.packages.kustomizing.loads import LoadError, check_links, kustomization_file, read_kustomization
from wharfinger.packages.registry.address import RegistryAddress
from wharfinger.packages.rendering.renderer import RenderRequest
from wharfinger.runtime.fixpoint.model import Id

JSONNET: Final = ".jsonnet"
_CONSTRAINT: Final = frozenset("*^~<>=| ")


@dataclass(frozen=True, slots=True)
class ArgoSources:
    """The fetchers of the sources of Applications."""

    fetchers: Fetchers
    oci: OciFetcher
    repositories: HelmRepositories
    dependencies: ChartDependencies


@dataclass(frozen=True, slots=True)
class _Files:
    """The files of a source: the folder to build, the root of its repository, and a digest of the files if it is known."""

    folder: Path
    root: Path
    path: str
    digest: str = ""


class ArgoApplicationController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that builds Applications of Argo CD."""

    def __init__(self, run: RunContext, charts: ChartRenders, sources: ArgoSources, builder: KustomizeBuilder) -> None:
        self._run = run
        self._charts = charts
        self._sources = sources
        self._builder = builder

    async def reconcile(self, stored: Stored, _gate: Gate) -> NodeResult:
        """Build all sources of an Application; if two make the same object, the later source wins. Raises ReconcileError."""
        sources = argo_sources(stored.object)
        if not sources:
            raise ReconcileError("spec: expected source or sources, which name the files to build")
        namespace = find_str(stored.object, "spec", "destination", "namespace")
        fetched: list[tuple[ArgoSource, _Files]] = []
        for source in sources:
            with _errors_of(source):
                fetched.append((source, await self._files(source)))
        references = {source.ref: files.root for source, files in fetched if source.ref}
        made: dict[Id, JsonObject] = {}
        for source, files in fetched:
            if source.is_values_only:
                continue
            with _errors_of(source):
                for obj in await self._objects(stored.id, namespace, source, files, references):
                    who = object_id(obj, namespace or self._run.tree.namespace)
                    made.pop(who, None)
                    made[who] = obj
        objects = (without_encryption(each) if is_encrypted(each) else each for each in made.values())
        return NodeResult(tuple(objects), namespace=namespace)

    async def inputs(self, stored: Stored, gate: Gate) -> str | None:
        """Return the digest of everything that an Application is built from; None if it must be built.

        Only an Application of charts has such a digest, because other sources may contain further nodes. Fetches nothing.
        Raises FormatError.
        """
        sources = argo_sources(stored.object)
        root = self._run.tree.root
        references = {each.ref: root for each in sources if each.ref and self._is_local(each)}
        more: list[JsonValue] = []
        for source in sources:
            try:
                known = await self._inputs_of(source, references)
            except (FormatError, PackageError, OSError):
                return None  # the build reports the error
            if known is None:
                return None
            more.append(known)
            if source.chart and await self._charts.is_known_to_make_nodes(_fixed(source)) is None:
                self._run.unsearched.add(stored.id)
        return inputs_digest(self._run, stored, gate, more) if sources else None

    async def _inputs_of(self, source: ArgoSource, references: Mapping[str, Path]) -> JsonValue:
        """Return the inputs of one source that the Application itself does not contain. Return None if the source has to be
        built, because it may make further nodes, or because a file that it needs is not in the tree.
        """
        if source.is_values_only:
            return "" if self._is_local(source) else None
        helm = find_object(source.spec, "helm")
        if names_nodes(helm) or (source.chart and await self._charts.is_known_to_make_nodes(_fixed(source))):
            return None
        root, folder, digest = self._run.tree.root, None, ""
        if not source.chart:
            if not self._is_local(source):
                return None
            folder = _folder_of(source, root)
            tool = await trio.to_thread.run_sync(tool_of, source.spec, folder)
            if tool != "helm" or await self._charts.may_make_nodes(folder):
                return None
            await trio.to_thread.run_sync(self._check_links, source, folder, root)
            if await self._sources.dependencies.are_missing(folder):
                return None
            digest = await self._charts.digest_of(folder)
        is_known = folder is not None

        def read(name: str) -> str | None:
            """Return the text of a file of the tree; None if there is no such file. Return "" for a file of a fetched chart,
            which need not be read, because the chart's version already identifies its content.
            """
            return read_text(root, folder or root, name, references) if is_known or name.startswith("$") else ""

        return [digest, await trio.to_thread.run_sync(helm_values, helm, read)]

    def _is_local(self, source: ArgoSource) -> bool:
        """Return whether the repository of a source is the tree itself."""
        address = plain_address(source.repository)
        return bool(address) and address in self._run.tree.local_addresses

    async def _files(self, source: ArgoSource) -> _Files:
        """Fetch the files of a source. Raises SourceError, PackageError or ArgoError."""
        if not source.repository:
            raise ArgoError("needs repoURL, the address of a repository")
        if source.chart:
            artifact = await with_retries(partial(self._chart, source), self._run.retries)
            await self._charts.learn(_fixed(source), artifact.folder)
            return _Files(artifact.folder, artifact.folder, source.chart, artifact.revision)
        if self._is_local(source):
            root = self._run.tree.root
        else:
            root = (await self._sources.fetchers.fetch(_git_request(source))).folder
        folder = _folder_of(source, root)
        if not await trio.Path(folder).is_dir():
            raise ArgoError(f"path: the repository has no folder {source.path!r}; correct it, or add the folder")
        return _Files(folder, root, normal_path(source.path or ".") or "")

    async def _chart(self, source: ArgoSource) -> Artifact:
        """Fetch a chart from a Helm repository or a registry. Raises SourceError."""
        url = source.repository
        if url.startswith(("http://", "https://")):
            return await self._sources.repositories.chart({"spec": {"url": url}}, source.chart, source.revision, None)
        place = url.removeprefix("oci://")
        # An Application cannot state that a registry has no TLS. Docker assumes that registries on this machine have none.
        insecure = RegistryAddress(place.partition("/")[0]).is_loopback
        registry: JsonObject = {"spec": {"url": f"oci://{place}", "insecure": insecure}}
        return await self._sources.oci.chart(registry, source.chart, source.revision, None)

    async def _objects(
        self, who: Id, namespace: str, source: ArgoSource, files: _Files, references: Mapping[str, Path]
    ) -> Sequence[JsonObject]:
        tool = "helm" if source.chart else await trio.to_thread.run_sync(tool_of, source.spec, files.folder)
        if tool == "helm":
            return await self._rendered(who, namespace, source, files, references)
        if tool == "kustomize":
            return await self._kustomized(source, files)
        return await trio.to_thread.run_sync(_plain, files, find_object(source.spec, "directory"))

    async def _rendered(
        self, who: Id, namespace: str, source: ArgoSource, files: _Files, references: Mapping[str, Path]
    ) -> Sequence[JsonObject]:
        """Render a chart with the inputs that Argo CD passes to ``helm template``."""
        helm = find_object(source.spec, "helm")
        chart = files.folder
        if not source.chart:
            await trio.to_thread.run_sync(self._check_links, source, files.folder, files.root)
            chart = await self._sources.dependencies.complete(files.folder, self._limit(files.root))
        read = partial(read_text, files.root, files.folder, references=references)
        values = await trio.to_thread.run_sync(helm_values, helm, read)
        options = self._run.options
        api_versions = tuple(each for each in find_list(helm, "apiVersions") if isinstance(each, str))
        rendered = await self._charts.render_request(
            RenderRequest(
                chart=chart,
                chart_digest=files.digest or await self._charts.digest_of(chart),
                release=find_str(helm, "releaseName") or who.name,
                namespace=find_str(helm, "namespace") or namespace or self._run.tree.namespace,
                values=values,
                kube_version=find_str(helm, "kubeVersion") or options.kube_version,
                api_versions=api_versions or options.api_versions,
                is_upgrade=False,
            )
        )
        return objects_of(rendered, crds=find(helm, "skipCrds") is not True)

    def _check_links(self, source: ArgoSource, folder: Path, root: Path) -> None:
        """Check that no link in a chart leads out of the chart's repository, or to a folder. Blocking. Raises ArgoError."""
        try:
            check_links(folder, self._limit(root))
        except LoadError as error:
            raise ArgoError(f"path: {source.path}: {error}") from error

    def _limit(self, root: Path) -> Path:
        """Return the folder that all files of a source must lie in."""
        tree = self._run.tree
        return tree.limit if root == tree.root else root

    async def _kustomized(self, source: ArgoSource, files: _Files) -> Sequence[JsonObject]:
        own = await trio.to_thread.run_sync(_own_kustomization, files.folder)
        if own is None:
            raise ArgoError(f"path: {source.path!r} has no kustomization.yaml; add one, or remove kustomize")
        fields = kustomize_fields(find_object(source.spec, "kustomize"), own)
        what = Overlay(files.folder, files.path, (".",), fields) if fields else Folder(files.folder, files.path)
        await trio.to_thread.run_sync(check_build, self._run, files.root, files.path, fields)
        try:
            return await self._builder.build(what)
        except KustomizeError as error:
            if files.root == self._run.tree.root:
                raise build_error(self._run, files.path, error) from error
            raise


@contextmanager
def _errors_of(source: ArgoSource) -> Iterator[None]:
    """Turn the errors of the block into a ReconcileError that names ``source``."""
    try:
        yield
    except (FormatError, PackageError, SourceError, KustomizeError, TreeError, OSError) as error:
        raise ReconcileError(f"{source.field}: {error}") from error


def _fixed(source: ArgoSource) -> str | None:
    """Return the cache key of the chart of a source if its version is fixed; None if the version may change."""
    return fixed_chart({"url": source.repository}, source.chart, source.revision)


def _folder_of(source: ArgoSource, root: Path) -> Path:
    """Return the folder of a source in its repository. Raises ArgoError."""
    relative = normal_path(source.path or ".")
    folder = root / (relative or "")
    if relative is None or not folder.resolve().is_relative_to(root.resolve()):
        raise ArgoError(f"path: {source.path!r} leads out of the repository; correct it")
    return folder


def _git_request(source: ArgoSource) -> SourceRequest:
    """Return the request for the files of a git repository at ``targetRevision``: a branch, a tag, a commit or a constraint."""
    revision = source.revision or DEFAULT_REVISION
    ref: JsonObject = {"semver": revision} if _CONSTRAINT & set(revision) else {"name": revision}
    return SourceRequest(Id(GIT_REPOSITORY, "", source.repository), {"spec": {"url": source.repository, "ref": ref}})


def _own_kustomization(folder: Path) -> JsonObject | None:
    """Return the ``kustomization.yaml`` of a folder; None if the folder has none. Blocking. Raises FormatError, OSError."""
    path = kustomization_file(folder)
    return None if path is None else as_object(read_kustomization(path) or {}, path.name)


def _plain(files: _Files, directory: JsonObject) -> Sequence[JsonObject]:
    """Return the objects in the files of a folder, in the order of their paths. Blocking. Raises ReconcileError, TreeError."""
    takes = folder_filter(directory)
    found: list[JsonObject] = []
    paths = files.folder.rglob("*") if find(directory, "recurse") is True else files.folder.iterdir()
    for path in sorted(paths):
        relative = path.relative_to(files.folder).as_posix()
        if not takes(relative) or not path.is_file():
            continue
        if path.suffix == JSONNET:
            raise ArgoError(f"path: {relative} is Jsonnet, which is not run; render it beforehand, or exclude it")
        if path.suffix not in SUFFIXES:
            continue
        if not path.resolve().is_relative_to(files.root.resolve()):
            raise ArgoError(f"path: {relative} leads out of the repository; remove the link")
        name = path.relative_to(files.root).as_posix()
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
        if len(data) > MAX_FILE:
            raise ArgoError(f"{name}: more than {MAX_FILE} bytes")
        content = read_documents(data, name)
        if content.problems:
            raise ReconcileError(str(content.problems[0]), content.problems[0].place)
        found += [each.object for each in content.documents]
    return found
