"""Download → Install → Load: a version brought here, unpacked, and read.

A version that this package had before is not asked for again: the recorded state says which digest it was, and the store
whether its files are sound, so a restart needs no registry. Asking for a fresh look (an annotation), another version or another
source goes to the registry; a folder on this machine is always looked at, because it has no promise to stay as it is.
"""

from contextlib import suppress

import trio

from wharfinger.cluster.errors import ConflictError, NotFoundError
from wharfinger.cluster.resource import ObjectKey
from wharfinger.formats.json_value import JsonObject
from wharfinger.hooks.config import HookConfigError
from wharfinger.hooks.discovery import discover_hooks
from wharfinger.hooks.enabled_script import run_enabled_script
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.filters import FilterError
from wharfinger.packages.address import tag_of_version
from wharfinger.packages.definition import read_definition
from wharfinger.packages.digest import Digest
from wharfinger.packages.source import FolderSource, Source, source_text
from wharfinger.packages.values import hook_values
from wharfinger.runtime.identity import IdentityError, ModuleId
from wharfinger.runtime.instance import Instance, Reporter, Tools
from wharfinger.runtime.package_state import PackageState
from wharfinger.runtime.status import Stage
from wharfinger.runtime.values import values_of


async def download(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Resolve the version to a digest, and bring every blob of that manifest to disk, verified while streaming."""
    reporter.progressed(instance, Stage.FETCHED, "Downloading", f"downloading {instance.package} {instance.version}")
    source = _source(instance)
    state = (await instance.recorded(tools.cluster)).state
    if not instance.refresh and _is_of(state, source, instance):
        known = await tools.store.installed(Digest(state.digest))
        if known is not None:
            instance.manifest = known
            return
    async with tools.downloads, tools.open_source(source, instance.package) as (registry, repository):
        descriptor = await registry.resolve(repository, tag_of_version(instance.version))
        manifest = await registry.manifest(repository, descriptor.digest)
        await tools.store.download(registry, repository, manifest)
    instance.manifest = manifest
    instance.refresh = False


async def install(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Unpack what was downloaded, point the package's name at it, atomically, and record which digest it is."""
    manifest = instance.fetched()
    reporter.progressed(instance, Stage.FETCHED, "Installing", f"unpacking {manifest.descriptor.digest}")
    instance.tree = await tools.store.install(manifest)
    await tools.store.deploy(instance.id.name, manifest)
    reporter.placed(instance)
    record = await instance.recorded(tools.cluster)
    if isinstance(instance.id, ModuleId):
        await _ensure_namespace(tools, instance.id.namespace)
    origin = f"{source_text(_source(instance))} {instance.package}"
    version, digest = instance.version, manifest.descriptor.digest.text
    await record.update(lambda state: state.installed(origin, version, digest))


async def load(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Read the package: what it says of itself, its schemas, its hooks; ask its enabled script, if it has one."""
    if instance.tree is None:
        raise AssertionError(f"{instance.id}: Load before Install")
    reporter.progressed(instance, Stage.LOADED, "Loading", "reading the package and asking its hooks what they want")
    await read_package(instance, tools)
    await ask_enabled_script(instance, tools, reporter)


async def read_package(instance: Instance, tools: Tools) -> None:
    """The definition and the hooks of the tree on disk. Raises what a wrong package raises."""
    if instance.tree is None:
        raise AssertionError(f"{instance.id}: nothing is installed")
    tree, name, version = instance.tree, instance.package, instance.version
    definition = await trio.to_thread.run_sync(lambda: read_definition(tree, name=name, version=version))
    if definition.type is not None and definition.type.value != instance.id.kind:
        article = "an Application" if instance.id.kind == "Application" else "a Module"
        raise IdentityError(
            f"package {name} {version} is of type {definition.type.value}, and {article} asks for it; "
            f"use a resource of kind {definition.type.value}"
        )
    hooks = await discover_hooks(tree, definition.layout, tools.config_reader) if definition.hooks else ()
    for hook in hooks:
        for number, binding in enumerate(hook.config.kubernetes):
            try:
                if binding.jq_filter:
                    await tools.filters.check(binding.jq_filter)
            except FilterError as error:
                if error.transient:
                    raise
                raise HookConfigError(hook.name, (f"kubernetes[{number}].jqFilter: {error}",)) from error
    instance.definition, instance.hooks = definition, hooks


async def ask_enabled_script(instance: Instance, tools: Tools, reporter: Reporter) -> None:
    """Whether the package wants to be enabled, by its own script; one that fails counts as no (spec/runtime §4.2)."""
    definition, tree = instance.loaded(), instance.tree
    if not definition.enabled_script or tree is None:
        reporter.voted(instance, None, "", failed=False)
        return
    wanted: JsonObject = instance.wanted_settings.settings
    values = hook_values(definition, reporter.global_values(), values_of(instance))
    asked_about = instance.wanted_settings.checksum
    try:
        async with tools.hook_slots:
            answer = await run_enabled_script(tools.hook_runner, tree, values, hook_values(definition, {}, wanted))
    except HookError as error:
        reporter.voted(instance, None, instance.masked(str(error)), failed=True)
    else:
        reason = instance.masked(answer.reason) if answer else ""
        reporter.voted(instance, answer.enabled if answer else None, reason, failed=False)
    instance.voted_for = asked_about


def _source(instance: Instance) -> Source:
    if instance.source is None:
        raise AssertionError(f"{instance.id}: Download before anything was wanted")
    return instance.source


def _is_of(state: PackageState, source: Source, instance: Instance) -> bool:
    origin = f"{source_text(source)} {instance.package}"
    same = state.digest and (state.source, state.version) == (origin, instance.version)
    return bool(same) and not isinstance(source, FolderSource)


async def _ensure_namespace(tools: Tools, name: str) -> None:
    """A Module's namespace is made for it; an Application's is there, or the Application would not be."""
    resource = await tools.cluster.resource_type("v1", "Namespace")
    try:
        await tools.cluster.get(ObjectKey(resource, "", name))
    except NotFoundError:
        body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with suppress(ConflictError):  # somebody else was quicker
            await tools.cluster.create(body)
