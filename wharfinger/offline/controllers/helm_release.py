"""The controller of Flux HelmReleases."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, as_object, find, find_list, find_object, find_str
from wharfinger.formats.merge_patch import overlaid
from wharfinger.formats.yaml.reader import read_yaml
from wharfinger.formats.yaml.writer import write_yaml_all
from wharfinger.offline.building.chart_dependencies import ChartDependencies
from wharfinger.offline.building.chart_makers import fixed_chart
from wharfinger.offline.building.chart_nodes import names_nodes
from wharfinger.offline.building.charts import ChartRenders, objects_of
from wharfinger.offline.building.metadata import with_common_metadata
from wharfinger.offline.building.stand_ins import is_stand_in
from wharfinger.offline.building.values import Reference, references_of, release_values
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, MissingError, Need, ReconcileError
from wharfinger.offline.controllers.inputs import inputs_digest
from wharfinger.offline.controllers.kustomization import dependencies_of
from wharfinger.offline.controllers.readiness import Readiness
from wharfinger.offline.controllers.references import texts_of
from wharfinger.offline.controllers.source import SourceController
from wharfinger.offline.sources.fetcher import Artifact, SourceError
from wharfinger.offline.sources.helm_repository import HelmRepositories
from wharfinger.offline.sources.oci import OciFetcher
from wharfinger.offline.sources.retry import with_retries
from wharfinger.offline.store.identity import shown
from wharfinger.offline.store.kinds import (
    EXTERNAL_ARTIFACT,
    GIT_REPOSITORY,
    HELM_CHART,
    HELM_REPOSITORY,
    OCI_REPOSITORY,
    SECRET,
)
from wharfinger.offline.store.store import Stored
from wharfinger.packages.errors import PackageError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.kustomizing.kustomization import Manifests
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder, KustomizeError
from wharfinger.packages.kustomizing.loads import LoadError, check_links
from wharfinger.packages.rendering.renderer import Rendered
from wharfinger.runtime.fixpoint.model import Id

MAX_RELEASE: Final = 53
_SHORT: Final = 40
MAX_VALUES_FILE: Final = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ChartSources:
    """The fetchers that provide the charts of HelmReleases, by the kind of their source."""

    oci: OciFetcher
    repositories: HelmRepositories
    secrets: SourceController
    dependencies: ChartDependencies


@dataclass(frozen=True, slots=True)
class _Chart:
    """The chart of a release, and the values files that the spec of the chart names."""

    source: Id
    name: str = ""
    version: str = ""
    values_files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Fetched:
    folder: Path
    digest: str
    root: Path
    """The folder to which the paths of the values files are relative."""
    own: Path
    """The folder of the chart in its source. Dependencies that were fetched for the chart are not in this folder."""


class HelmReleaseController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that renders HelmReleases."""

    def __init__(
        self,
        run: RunContext,
        charts: ChartRenders,
        sources: ChartSources,
        builder: KustomizeBuilder,
        readiness: Readiness,
    ) -> None:
        self._run = run
        self._charts = charts
        self._sources = sources
        self._builder = builder
        self._readiness = readiness
        self._known: dict[tuple[Path, str], _Fetched] = {}
        """The charts in sources, cached because many releases of a run have the same chart."""
        self._locks = KeyedLocks()

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Render one release. Raises ReconcileError, or the errors of the gate."""
        spec = find_object(stored.object, "spec")
        if find(spec, "suspend") is True:
            return NodeResult(skipped="suspended")
        try:
            chart, references = self._required(stored, gate)
            warnings = await self._readiness.of_dependencies(stored, dependencies_of(stored))
            fetched = await self._fetched(chart, gate)
            if chart.source not in self._run.tree.local_sources:
                await self._charts.learn(self._fixed(chart), fetched.folder)
            values = overlaid(
                await self._values_of_files(fetched, chart.values_files),
                release_values(stored.object, references, self._texts),
            )
            release, namespace = names_of(stored)
            policy = find_str(spec, "install", "crds", default="Create")
            crds = policy != "Skip" and find(spec, "install", "skipCRDs") is not True
            rendered = await self._charts.render(
                fetched.folder, release, namespace, values, digest=fetched.digest, crds=crds
            )
            rendered = await self._post_rendered(rendered, spec)
        except (FormatError, PackageError) as error:
            raise ReconcileError(str(error)) from error
        objects = objects_of(rendered, crds=crds)
        made = with_common_metadata(objects, find_object(spec, "commonMetadata"))
        return NodeResult(made, namespace=namespace, warnings=warnings)

    async def inputs(self, stored: Stored, gate: Gate) -> str | None:
        """Return the digest of everything that a release is rendered from. Return None if such a digest is not sufficient, for
        example because the release may make further nodes; the release must then be rendered.

        This method fetches nothing. Raises ReconcileError, or the errors of the gate.
        """
        if find(stored.object, "spec", "suspend") is True:
            return None
        if any(find(each, "readyExpr") for each in find_list(stored.object, "spec", "dependsOn")):
            return None  # such an expression may read everything in the dependency
        try:
            chart, references = self._required(stored, gate)
            texts = [dict(self._texts(each.source) or {}).get(each.key, "") for each in references]
            if names_nodes([find_object(stored.object, "spec", "values"), *texts]):
                return None
            made = self._run.artifacts.get(chart.source) if chart.source.kind == EXTERNAL_ARTIFACT else None
            if made is not None:
                is_maker = await self._charts.may_make_nodes(made.folder)
                inside = await trio.to_thread.run_sync(_chart_inside, made.folder)
                if is_maker or inside is None or await self._charts.may_make_nodes(inside):
                    return None
                return inputs_digest(self._run, stored, gate, (made.revision,))
            if chart.source not in self._run.tree.local_sources:
                return await self._inputs_of_fetched(stored, gate, chart)
            root = self._run.tree.root
            folder = root / chart.name
            if not await trio.to_thread.run_sync(_has_chart, root, folder) or await self._charts.may_make_nodes(folder):
                return None
            await trio.to_thread.run_sync(_check_links, folder, self._run.tree.limit, chart.name)
            if await self._sources.dependencies.are_missing(folder):
                return None
            files = _Fetched(folder, await self._charts.digest_of(folder), root, folder)
            return inputs_digest(
                self._run, stored, gate, (files.digest, await self._values_of_files(files, chart.values_files))
            )
        except (FormatError, PackageError) as error:
            raise ReconcileError(str(error)) from error

    async def _inputs_of_fetched(self, stored: Stored, gate: Gate, chart: _Chart) -> str | None:
        """Return the digest of a release's inputs without its chart, which would have to be fetched.

        Return None if the chart is known to render nodes. If nothing is known about the chart, the release is also added to
        ``unsearched``.
        """
        makes_nodes = await self._charts.is_known_to_make_nodes(self._fixed(chart))
        if makes_nodes is None:
            self._run.unsearched.add(stored.id)
        return None if makes_nodes else inputs_digest(self._run, stored, gate, ())

    def _fixed(self, chart: _Chart) -> str | None:
        source = self._run.store.get(chart.source)
        if source is None:
            return None
        version = "" if chart.source.kind == GIT_REPOSITORY else chart.version
        return fixed_chart(find_object(source.object, "spec"), chart.name, version)

    def _required(self, stored: Stored, gate: Gate) -> tuple[_Chart, tuple[Reference, ...]]:
        """Return the chart and the references of a release. Raises the errors of the gate unless all objects that it names
        are ready.
        """
        chart = self._chart_of(stored, gate)
        references = self._references(stored)
        needs = [Need(each.source, f"spec.valuesFrom[{number}]") for number, each in enumerate(references)]
        gate.require([*dependencies_of(stored), Need(chart.source, "spec.chart"), *self._hard(needs, references, gate)])
        return chart, tuple(self._readable(references))

    def _readable(self, references: tuple[Reference, ...]) -> Iterator[Reference]:
        """Yield the references that can be read offline. A reference to a Secret for which there is only a stand-in is left
        out; if it has a ``targetPath``, it is yielded as optional instead.
        """
        for each in references:
            found = self._run.store.get(each.source)
            if found is None or not is_stand_in(found.object):
                yield each
            elif each.target:
                yield replace(each, optional=True)

    def _references(self, stored: Stored) -> tuple[Reference, ...]:
        """Return the entries of ``spec.valuesFrom``; if the run allows missing Secrets, all Secrets are optional."""
        may_miss = self._run.options.allow_missing_secrets
        return tuple(
            replace(each, optional=each.optional or (may_miss and each.source.kind == SECRET))
            for each in references_of(stored.object, stored.id.namespace)
        )

    def _hard(self, needs: list[Need], references: tuple[Reference, ...], gate: Gate) -> list[Need]:
        """Return the needs for references whose objects must exist. Wait for the object of an optional reference only while it
        may still be created.
        """
        hard: list[Need] = []
        for need, reference in zip(needs, references, strict=True):
            if not reference.optional:
                hard.append(need)
                continue
            try:
                gate.require([need])
            except MissingError:
                continue
        return hard

    def _texts(self, who: Id) -> Mapping[str, str] | None:
        found = self._run.store.get(who)
        return None if found is None else texts_of(found)

    def _chart_of(self, stored: Stored, gate: Gate) -> _Chart:
        """Return the chart that a release names, by its own spec or by a HelmChart."""
        obj, namespace = stored.object, stored.id.namespace
        reference = find_object(obj, "spec", "chartRef")
        if reference:
            kind, name = find_str(reference, "kind"), find_str(reference, "name")
            who = Id(f"{kind}.source.toolkit.fluxcd.io", find_str(reference, "namespace", default=namespace), name)
            if who.kind in {OCI_REPOSITORY, EXTERNAL_ARTIFACT}:
                return _Chart(who)
            if who.kind != HELM_CHART:
                raise ReconcileError(
                    f"spec.chartRef.kind: expected OCIRepository, ExternalArtifact or HelmChart, found {kind!r}"
                )
            gate.require([Need(who, "spec.chartRef")])
            chart = self._run.store.get(who)
            return _read_chart(find_object(chart.object, "spec") if chart else {}, who.namespace, "spec")
        spec = find_object(obj, "spec", "chart", "spec")
        if not spec:
            raise ReconcileError("spec: needs chart.spec or chartRef, which name the chart")
        return _read_chart(spec, namespace, "spec.chart.spec")

    async def _fetched(self, chart: _Chart, gate: Gate) -> _Fetched:
        source = self._run.store.get(chart.source)
        if source is None:
            raise AssertionError(f"{chart.source}: not in the store, although the gate required it")
        if chart.source.kind == HELM_REPOSITORY:
            secret = self._sources.secrets.secret_of(source, gate) or {}
            try:
                artifact = await with_retries(lambda: self._from_repository(source, chart, secret), self._run.retries)
            except SourceError as error:
                raise ReconcileError(str(error)) from error
            return _Fetched(artifact.folder, artifact.revision, artifact.folder, artifact.folder)
        found = self._run.artifacts.get(chart.source)
        if found is None:
            raise ReconcileError(f"{shown(chart.source)} has no files: it is suspended")
        if chart.source.kind == OCI_REPOSITORY:
            return _Fetched(found.folder, found.revision, found.folder, found.folder)
        if chart.source.kind == EXTERNAL_ARTIFACT:
            inside = await trio.to_thread.run_sync(_chart_inside, found.folder)
            if inside is None:
                raise ReconcileError(
                    f"spec.chartRef: {shown(chart.source)} contains no chart: expected Chart.yaml in its top folder, or in "
                    "exactly one folder in it"
                )
            return await self._completed(inside, inside, found.folder)
        key = found.folder, chart.name
        if key not in self._known:
            async with self._locks.held(f"{found.folder}/{chart.name}"):
                if key not in self._known:
                    self._known[key] = await self._in_source(chart, found.folder)
        return self._known[key]

    async def _in_source(self, chart: _Chart, source: Path) -> _Fetched:
        """Return the chart at the path ``chart.name`` in the folder of a source. Raises ReconcileError."""
        folder = source / chart.name
        if not await trio.to_thread.run_sync(_has_chart, source, folder):
            raise ReconcileError(f"spec.chart.spec.chart: {shown(chart.source)} has no chart at {chart.name!r}")
        limit = self._run.tree.limit if source == self._run.tree.root else source
        await trio.to_thread.run_sync(_check_links, folder, limit, chart.name)
        return await self._completed(folder, source, limit)

    async def _completed(self, folder: Path, root: Path, limit: Path) -> _Fetched:
        """Return a chart of a source with all of its dependencies. Raises ReconcileError."""
        try:
            whole = await self._sources.dependencies.complete(folder, limit)
        except (SourceError, OSError) as error:
            raise ReconcileError(f"spec.chart: {error}") from error
        return _Fetched(whole, await self._charts.digest_of(whole), root, folder)

    async def _values_of_files(self, fetched: _Fetched, files: tuple[str, ...]) -> JsonObject:
        return await trio.to_thread.run_sync(_default_values, fetched, files) if files else {}

    async def _from_repository(self, source: Stored, chart: _Chart, secret: Mapping[str, bytes]) -> Artifact:
        """Return a chart of a HelmRepository (of type ``default`` or ``oci``). Raises SourceError."""
        url = find_str(source.object, "spec", "url")
        if find_str(source.object, "spec", "type") == "oci" or url.startswith("oci://"):
            login = secret.get(".dockerconfigjson") or _docker_config(source.object, secret)
            return await self._sources.oci.chart(source.object, chart.name, chart.version, login)
        basic = None
        if "username" in secret and "password" in secret:
            basic = secret["username"].decode(errors="replace"), secret["password"].decode(errors="replace")
        return await self._sources.repositories.chart(source.object, chart.name, chart.version, basic)

    async def _post_rendered(self, rendered: Rendered, spec: JsonObject) -> Rendered:
        """Return the render after the changes of ``spec.postRenderers``, which are made in their order."""
        for each in find_list(spec, "postRenderers"):
            asked = find_object(each, "kustomize")
            fields: JsonObject = {key: asked[key] for key in ("patches", "images") if find_list(asked, key)}
            if not fields or not rendered.objects:
                continue
            text = write_yaml_all([*rendered.objects])
            try:
                objects = await self._builder.build(Manifests("postRenderers", text, fields))
            except KustomizeError as error:
                raise ReconcileError(f"spec.postRenderers: {error}") from error
            rendered = replace(rendered, objects=objects)
        return rendered


def names_of(stored: Stored) -> tuple[str, str]:
    """Return the name and the namespace of a HelmRelease's release, as Flux chooses them."""
    target = find_str(stored.object, "spec", "targetNamespace")
    name = find_str(stored.object, "spec", "releaseName")
    if not name:
        name = f"{target}-{stored.id.name}" if target else stored.id.name
        if len(name) > MAX_RELEASE:
            name = f"{name[:_SHORT]}-{hashlib.sha256(name.encode()).hexdigest()[:12]}"
    return name, target or stored.id.namespace


def _read_chart(spec: JsonObject, namespace: str, where: str) -> _Chart:
    kind, name = find_str(spec, "sourceRef", "kind"), find_str(spec, "sourceRef", "name")
    if not kind or not name or not find_str(spec, "chart"):
        raise ReconcileError(f"{where}: needs chart, and sourceRef with kind and name")
    source = Id(f"{kind}.source.toolkit.fluxcd.io", find_str(spec, "sourceRef", "namespace", default=namespace), name)
    files = tuple(each for each in find_list(spec, "valuesFiles") if isinstance(each, str))
    return _Chart(source, find_str(spec, "chart"), find_str(spec, "version"), files)


def _has_chart(source: Path, folder: Path) -> bool:
    """Return whether a folder of a source is a chart. Blocking."""
    return folder.resolve().is_relative_to(source.resolve()) and (folder / "Chart.yaml").is_file()


def _chart_inside(folder: Path) -> Path | None:
    """Return the chart in an artifact: the artifact itself, or the only folder in it that is a chart. Return None if there is
    no such folder, or more than one. Blocking.
    """
    if (folder / "Chart.yaml").is_file():
        return folder
    found = [each for each in sorted(folder.iterdir()) if (each / "Chart.yaml").is_file()]
    return found[0] if len(found) == 1 else None


def _check_links(folder: Path, limit: Path, name: str) -> None:
    """Check that a chart has no links out of its source or to folders. Blocking. Raises ReconcileError."""
    try:
        check_links(folder, limit)
    except LoadError as error:
        raise ReconcileError(f"spec.chart.spec.chart: {name}: {error}") from error


def _default_values(fetched: _Fetched, files: tuple[str, ...]) -> JsonObject:
    """Return the values files that a spec names, merged in order. Blocking. Raises ReconcileError, FormatError."""
    values: JsonObject = {}
    own = (fetched.own / "values.yaml").resolve()
    paths = [(fetched.root / each).resolve() for each in files]
    if paths and own.is_file() and own not in paths:
        raise ReconcileError(
            "spec.chart.spec.valuesFiles: must list the chart's own values.yaml, too; other files cannot replace it"
        )
    for path, name in zip(paths, files, strict=True):
        if not path.is_relative_to(fetched.root.resolve()) or not path.is_file():
            raise ReconcileError(f"spec.chart.spec.valuesFiles: the source has no file {name!r}")
        with path.open("rb") as file:
            read = read_yaml(file.read(MAX_VALUES_FILE), what=name)
        values = overlaid(values, as_object(read or {}, name))
    return values


def _docker_config(repository: JsonObject, secret: Mapping[str, bytes]) -> bytes | None:
    """Return the user name and the password in a Secret as a docker configuration for the repository's host; None if the Secret
    lacks one of them.
    """
    if "username" not in secret or "password" not in secret:
        return None
    host = find_str(repository, "spec", "url").removeprefix("oci://").partition("/")[0]
    auth = base64.b64encode(secret["username"] + b":" + secret["password"]).decode()
    return b'{"auths": {"%s": {"auth": "%s"}}}' % (host.encode(), auth.encode())
