"""The controller of Wharfinger's Applications and Modules, which turns settings into manifests in the same way as the daemon.

The package is resolved, stored and read as the daemon does it. Its settings are converted, checked and merged as in the daemon's
Configure task, and the daemon's code makes the request for the render (:mod:`wharfinger.runtime.resources.manifests`). Hooks
are not run, so their values patches are missing, and a warning reports it.

The check whether a package may be enabled runs at the end, when all packages are known
(:mod:`wharfinger.offline.orchestrator.gates`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Final

import trio

from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject
from wharfinger.kube.resource import ObjectKey
from wharfinger.offline.building.charts import ChartRenders, objects_of
from wharfinger.offline.controllers.controller import NodeResult, RunContext
from wharfinger.offline.controllers.gate import Gate, MissingError, Need, ReconcileError
from wharfinger.offline.controllers.references import secret_bytes, with_encoded_data
from wharfinger.offline.sources.retry import with_retries
from wharfinger.offline.store.identity import DEFAULT_NAMESPACE
from wharfinger.offline.store.kinds import APPLICATION, ENABLED_MODULES, MODULE, PACKAGE_REPOSITORY, SECRET
from wharfinger.offline.store.store import Stored
from wharfinger.packages.definition.conversions import JqRunner, convert
from wharfinger.packages.definition.crd_files import read_crds, served_kinds
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import PackageError
from wharfinger.packages.files.keyed_locks import KeyedLocks
from wharfinger.packages.kustomizing.kustomize import KustomizeBuilder
from wharfinger.packages.kustomizing.patched_render import patched
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.packages.registry.oci_layout import LAYOUT_FILE
from wharfinger.packages.registry.registry import Registry
from wharfinger.packages.rendering.chart_use import chart_use
from wharfinger.packages.settings.cel_pool import Rules
from wharfinger.packages.settings.unread_settings import unread_settings
from wharfinger.packages.settings.values import (
    RenderContext,
    SettingsError,
    check_settings,
    check_values_rules,
    merged_values,
)
from wharfinger.packages.sources.packed_registry import pack_pinned
from wharfinger.packages.sources.source import (
    FolderSource,
    LayoutSource,
    Network,
    Source,
    is_packed,
    open_source,
    source_server,
    source_text,
)
from wharfinger.packages.store.store import Store
from wharfinger.runtime.fixpoint.model import Id
from wharfinger.runtime.repositories.followed_tag import followed_tag
from wharfinger.runtime.resources.identity import IdentityError, ModuleId, is_global
from wharfinger.runtime.resources.manifests import (
    PackageValues,
    Platform,
    chart_request,
    global_values,
    installed_definition,
    registry_address,
    with_overrides,
)
from wharfinger.runtime.resources.package_fit import check_kind, check_needs
from wharfinger.runtime.resources.repositories import read_repository, with_secrets
from wharfinger.runtime.resources.resources import PackageSpec, SpecError, read_application, read_module
from wharfinger.runtime.resources.settings import ResolvedSettings, SettingsSourceError, resolve_settings

MODULES: Final = Id(ENABLED_MODULES, "", "")
"""The id of the set of enabled Modules, which every package sees under ``global``."""
_ANYWHERE: Final = (Path("/"),)
"""The folders from which packages may be read: all, because an offline build has only the rights of the user who starts it."""


@dataclass(frozen=True, slots=True)
class PackageTools:
    """The tools that build packages. ``folder`` has all packages by name, and replaces the repositories."""

    store: Store
    jq: JqRunner
    rules: Rules
    folder: Path | None = None
    network: bool = True
    sources: Network = field(default_factory=Network)
    kustomize: KustomizeBuilder | None = None
    """The builder that applies `spec.patches`."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A package that was read: its resource, its definition, its files and their digest, and its source."""

    spec: PackageSpec
    definition: Definition
    tree: Path
    digest: str
    source: Source


class PackageController:
    """The :class:`~wharfinger.offline.controllers.controller.Controller` that builds Applications and Modules."""

    def __init__(self, run: RunContext, charts: ChartRenders, tools: PackageTools) -> None:
        self.loaded: dict[Id, Loaded] = {}
        """The packages that were read in this run, for the check of their requirements."""
        self._run = run
        self._charts = charts
        self._tools = tools
        self._locks = KeyedLocks()

    async def reconcile(self, stored: Stored, gate: Gate) -> NodeResult:
        """Build one package. Raises ReconcileError, or the errors of the gate."""
        self.loaded.pop(stored.id, None)
        spec = self._read(stored)
        if spec.directives.suspended:
            return NodeResult(skipped="suspended")
        if spec.enabled is False:
            return NodeResult(skipped="disabled by spec.enabled")
        try:
            loaded = await self._loaded(spec, gate)
            self.loaded[stored.id] = loaded
            wanted = resolve_settings(spec, self._settings_objects(spec, gate))
            return await self.built(loaded, wanted, await self._modules(gate))
        except (FormatError, PackageError, IdentityError, SpecError, SettingsSourceError) as error:
            raise ReconcileError(str(error)) from error

    async def built(
        self,
        loaded: Loaded,
        wanted: ResolvedSettings,
        modules: Mapping[str, tuple[str, ...]],
        *,
        as_template: bool = False,
    ) -> NodeResult:
        """Build a package that was read; ``modules`` are the enabled Modules. Raises PackageError, FormatError, IdentityError.

        With ``as_template``, render as `helm template` does: the package's custom resource definitions do not exist when its
        templates run.
        """
        spec, definition = loaded.spec, loaded.definition
        newest, _ = await convert(definition.conversions, self._tools.jq, wanted.settings, wanted.version)
        report = await check_settings(definition, newest, None, self._tools.rules)
        if report.problems:
            raise SettingsError(report.problems, subject=wanted.subject)
        values = merged_values(definition, newest)
        checked = await check_values_rules(definition, values, None, self._tools.rules)
        if checked.problems:
            raise SettingsError(checked.problems, subject="values")
        if definition.chart is None:
            return NodeResult(warnings=_warnings(loaded))
        platform = Platform(self._run.options.kube_version, self._run.options.api_versions)
        context = RenderContext(
            name=spec.id.release,
            namespace=spec.id.namespace,
            registry=registry_address(loaded.source),
            version=spec.version,
            digest=loaded.digest,
        )
        shared = global_values(platform.kube_version, modules)
        request = chart_request(
            definition,
            loaded.tree,
            context,
            PackageValues(shared, report.settings, values),
            platform,
            upgrade=False,
            confined=spec.id.kind == "Application",
        )
        # A plain chart on the command line is built as `helm template` prints it.
        render = self._charts.render_request if as_template else self._charts.render_installed
        rendered = await patched(await render(request), spec.directives.patches, self._tools.kustomize)
        rendered, unmatched = await trio.to_thread.run_sync(partial(with_overrides, rendered, spec.directives))
        settings = tuple(f"spec.settings.{each.path}: {each.message}" for each in report.warnings)
        unused = tuple(f"spec.resourceRequests: {each}" for each in unmatched)
        unread = await trio.to_thread.run_sync(_unread, definition, loaded.tree, wanted.settings)
        warnings = (*_warnings(loaded), *settings, *unused, *unread)
        return NodeResult(objects_of(rendered), namespace=spec.id.namespace, warnings=warnings)

    def _read(self, stored: Stored) -> PackageSpec:
        try:
            if stored.id.kind == APPLICATION:
                metadata: JsonObject = {"namespace": stored.id.namespace or DEFAULT_NAMESPACE}
                metadata |= {key: value for key, value in _metadata(stored.object).items() if value}
                return read_application({**stored.object, "metadata": metadata})
            return read_module(stored.object)
        except SpecError as error:
            raise ReconcileError(str(error)) from error

    async def _loaded(self, spec: PackageSpec, gate: Gate) -> Loaded:
        source = await self._source(spec, gate)
        server = source_server(source)
        if not self._tools.network and server is not None and not server.is_loopback:
            raise ReconcileError(
                f"package {spec.package}: the network is forbidden by --offline, and {source_text(source)} is not on this "
                "machine; name a folder of packages with --packages"
            )
        async with self._locks.held(f"{source_text(source)} {spec.package} {spec.version or spec.policy.follows}"):
            tree, digest = await with_retries(lambda: self._installed(source, spec), self._run.retries)
        definition = await trio.to_thread.run_sync(
            lambda: installed_definition(
                tree, spec.id, package=spec.package, version=spec.version, static=spec.directives.static_values
            )
        )
        check_kind(definition, spec.id)
        check_needs(definition, spec.id)
        spec = spec if spec.version else replace(spec, version=definition.version)
        return Loaded(spec, definition, tree, digest, source)

    async def _installed(self, source: Source, spec: PackageSpec) -> tuple[Path, str]:
        """Return the unpacked files of a package, and its digest. Raises PackageError."""
        async with open_source(source, spec.package, network=self._tools.sources) as (registry, repository):
            digest = await _digest(registry, repository, spec)
            manifest = await self._tools.store.installed(digest)
            if manifest is None:
                if is_packed(source) and spec.directives.digest:
                    await pack_pinned(registry, repository, tag_of_version(spec.version), digest)
                manifest = await registry.manifest(repository, digest)
                await self._tools.store.download(registry, repository, manifest)
        return await self._tools.store.install(manifest), manifest.descriptor.digest.text

    async def _source(self, spec: PackageSpec, gate: Gate) -> Source:
        """Return the source of a package: the given folder, or the PackageRepository that its resource names."""
        folder = self._tools.folder
        if folder is not None:
            layout = trio.Path(folder / spec.package / LAYOUT_FILE)
            return LayoutSource(folder) if await layout.is_file() else FolderSource(folder.resolve())
        who = Id(PACKAGE_REPOSITORY, "", spec.repository)
        gate.require([Need(who, "spec.packageRepositoryName")])
        found = self._run.store.get(who)
        repository = read_repository(found.object if found is not None else {}, _ANYWHERE, _ANYWHERE)
        secrets: dict[ObjectKey, JsonObject | None] = {}
        for where, key in repository.secrets.items():
            needed = Id(SECRET, key.namespace, key.name)
            gate.require([Need(needed, f"{who.name}: {where}")])
            secrets[key] = self._object(needed)
        return with_secrets(repository, secrets)

    def _settings_objects(self, spec: PackageSpec, gate: Gate) -> dict[ObjectKey, JsonObject | None]:
        """Return the sources of ``settingsFrom``; None for an optional source that is missing. Raises the errors of the gate."""
        found: dict[ObjectKey, JsonObject | None] = {}
        for number, entry in enumerate(spec.settings_from):
            who = Id(entry.source.resource.kind, entry.source.namespace, entry.source.name)
            try:
                gate.require([Need(who, f"spec.settingsFrom[{number}]")])
            except MissingError:
                if not entry.optional:
                    raise
            found[entry.source] = self._object(who)
        return found

    def _object(self, who: Id) -> JsonObject | None:
        stored = self._run.store.get(who)
        if stored is None or who.kind != SECRET or "stringData" not in stored.object:
            return None if stored is None else stored.object
        return with_encoded_data(stored.object, secret_bytes(stored))

    async def _modules(self, gate: Gate) -> dict[str, tuple[str, ...]]:
        """Return the enabled Modules, with the kinds of their custom resource definitions."""
        gate.reads.add(MODULES)
        found: dict[str, tuple[str, ...]] = {}
        for stored in self._run.store.list(MODULE):
            try:
                spec = self._read(stored)
                if spec.enabled is False or spec.directives.suspended or is_global(spec.id):
                    continue
                loaded = self.loaded.get(stored.id) or await self._loaded(spec, gate)
            except (ReconcileError, PackageError, FormatError, IdentityError):
                continue  # the Module's own build reports the error, and here the Module counts as off
            crds = await trio.to_thread.run_sync(read_crds, loaded.tree) if loaded.definition.crds else ()
            found[ModuleId(spec.id.name).name] = tuple(sorted({kind for crd in crds for kind in served_kinds(crd)}))
        return dict(sorted(found.items()))


def _metadata(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _warnings(loaded: Loaded) -> tuple[str, ...]:
    if not loaded.definition.hooks:
        return ()
    return ("its hooks are not run, so the values that they set are missing",)


def _unread(definition: Definition, tree: Path, settings: JsonObject) -> tuple[str, ...]:
    """Return warnings about settings that no template of a plain chart reads. Blocking."""
    if definition.layout is not Layout.CHART or not settings:
        return ()
    found = unread_settings(chart_use(tree, is_package=definition.chart_file is not None), settings)
    return tuple(f"spec.settings.{each.path}: {each.message}" for each in found)


async def _digest(registry: Registry, repository: str, spec: PackageSpec) -> Digest:
    """Return the digest that a resource pins, else the digest of the tag that it names or follows. Raises PackageError."""
    if spec.directives.digest:
        return Digest(spec.directives.digest)
    return (await registry.resolve(repository, await followed_tag(registry, repository, spec))).digest
