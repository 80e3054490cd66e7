"""The tasks Download, Install and Load, which fetch, unpack and read a version.

The installed version is not requested again: the recorded state has its digest, and the store knows whether its files are
undamaged, so a restart needs no registry. The registry is asked only if the wanted package, version, source or digest has
changed, if the files are missing or damaged, or if an annotation requests a new download. If a package comes from a folder on
this machine, its files are always checked; the folder is copied only if they have changed.
"""

import logging
from collections.abc import Callable, Hashable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import trio

from wharfinger.cluster.api.errors import ConflictError, NotFoundError
from wharfinger.formats.errors import FormatError
from wharfinger.formats.json.value import JsonObject, JsonValue, as_object, checksum, decode_json, encode_json
from wharfinger.hooks.config.bindings import HookScope
from wharfinger.hooks.config.problems import HookConfigError
from wharfinger.hooks.errors import HookError
from wharfinger.hooks.running.discovery import Hook, discover_hooks
from wharfinger.hooks.running.enabled_script import run_enabled_script
from wharfinger.hooks.watching.filters import FilterError
from wharfinger.kube.resource import ObjectKey
from wharfinger.packages.definition.conversions import check_conversions
from wharfinger.packages.definition.definition import Definition, Layout
from wharfinger.packages.digest import Digest
from wharfinger.packages.errors import PackageError
from wharfinger.packages.registry.address import tag_of_version
from wharfinger.packages.registry.manifest import manifest_fields, manifest_from_fields
from wharfinger.packages.registry.registry import Manifest, Registry
from wharfinger.packages.settings.values import check_package_rules, hook_values
from wharfinger.packages.sources.packed_registry import pack_pinned
from wharfinger.packages.sources.source import (
    FolderSource,
    Source,
    is_packed,
    source_host,
    source_text,
    with_expected_version,
)
from wharfinger.queue.slots_machine import Kind
from wharfinger.runtime.lifecycle.journal_machine import MAX_RESULT
from wharfinger.runtime.lifecycle.package_state import PackageState, StateRecord
from wharfinger.runtime.package.enabled_vote import KeptVote, globals_for, vote_key
from wharfinger.runtime.package.events import Placed, Progressed, Voted, WarnedOf
from wharfinger.runtime.package.findings import (
    Downloaded,
    FoundStored,
    PackageRead,
    ScriptAnswered,
    ScriptAsked,
    Unpacked,
    VoteReported,
)
from wharfinger.runtime.package.instance import Host, Instance, Tools
from wharfinger.runtime.resources.identity import ModuleId, identity_variables, is_global
from wharfinger.runtime.resources.manifests import installed_definition
from wharfinger.runtime.resources.package_fit import check_kind, check_needs
from wharfinger.runtime.status.package_status import Stage
from wharfinger.runtime.tasks.configuration import newest_settings
from wharfinger.runtime.tasks.values import values_of

log = logging.getLogger(__name__)

DOWNLOAD: Final = "download"
INSTALL: Final = "install"
MAX_WARNINGS: Final = 20
"""The limit on the number of warnings about hooks in a package's status."""


async def download(instance: Instance, tools: Tools, host: Host) -> Downloaded:
    """Resolve the version to the digest of a manifest, and download the blobs of this manifest to the disk, unless the wanted
    version is already there. Each blob is verified while it is streamed.
    """
    source = _source(instance)
    state = (await instance.recorded(tools)).state
    refresh = instance.desired.refresh or state.forced != instance.desired.directives.forced
    steps = instance.journalled()
    steps.begin(_fingerprint(source, instance))
    if not refresh and _is_of(state, source, instance):
        known = await _installed(instance, tools, source, state)
        if known is not None:
            return Downloaded(known, asked=False)
    back = instance.desired.directives.rolled_back
    if back is not None and back.is_back and (kept_content := await _former(instance, tools)) is not None:
        return Downloaded(kept_content, asked=False)  # no registry is needed for a rollback
    doing = f"downloading {instance.desired.package} {instance.desired.version}"
    host.emit(instance, Progressed(Stage.FETCHED, "Downloading", doing))
    # A folder is always checked, because its files may have been corrected since an earlier download.
    kept = "" if isinstance(source, FolderSource) else steps.done(DOWNLOAD) or ""
    if (manifest := await _fetched_before(instance, tools, kept)) is None:
        with steps.taking(DOWNLOAD) as taken:
            manifest = await _fetch(instance, tools, source, state)
            taken.result = _kept(manifest)
    return Downloaded(manifest, asked=True)


async def _installed(instance: Instance, tools: Tools, source: Source, state: PackageState) -> Manifest | None:
    """Return the manifest of the recorded version if its files are on the disk, otherwise None. For a package from a folder,
    also return None if a digest is wanted, or if the folder does not have the recorded digest any more.
    """
    if isinstance(source, FolderSource):
        wanted = instance.desired.directives
        if wanted.digest or wanted.kept_digest:
            return None
        async with (
            tools.slots.use(Kind.LOAD, instance.id.name),
            tools.open_source(source, instance.desired.package) as (registry, repository),
        ):
            if (await _wanted_digest(instance, registry, repository)).text != state.digest:
                return None
    return await tools.store.installed(Digest(state.digest))


async def _former(instance: Instance, tools: Tools) -> Manifest | None:
    """Return the manifest of the content to which the package is pinned by digest; None if it is not pinned, or if the content
    is not on the disk.
    """
    digest = instance.desired.directives.digest
    return await tools.store.installed(Digest(digest)) if digest else None


async def _keep_former(instance: Instance, tools: Tools) -> None:
    """Keep the files of the former revision, to which the package may return, if they are on the disk."""
    record = await instance.recorded(tools)
    if instance.desired.directives.upgrade.rollback and (ready := record.state.ready) is not None:
        manifest = await tools.store.installed(Digest(ready.inputs.digest))
        if manifest is not None:
            await tools.store.deploy(former_name(instance.id.name), manifest)


def _may_return(instance: Instance, record: StateRecord) -> bool:
    """Return whether the package may return to a former revision: its policy allows this, and it has been ready before."""
    return instance.desired.directives.upgrade.rollback and record.state.ready is not None


def former_name(name: str) -> str:
    """Return the name under which the store keeps the files of a package's former revision. No package can have this name,
    because it contains two dots.
    """
    return f"{name}..former"


async def _fetch(instance: Instance, tools: Tools, source: Source, state: PackageState) -> Manifest:
    # A package from a folder on this machine needs no registry, so it does not wait for a download slot.
    host = source_host(source)
    if not instance.desired.directives.is_digest_named:  # if the user has pinned the digest, the version is not checked
        source = with_expected_version(source, instance.desired.version)
    async with (
        tools.slots.use(Kind.DOWNLOAD if host else Kind.LOAD, instance.id.name, source=host),
        tools.open_source(source, instance.desired.package) as (registry, repository),
    ):
        digest = await _wanted_digest(instance, registry, repository)
        if is_packed(source) and _pinned(instance):
            if _is_of(state, source, instance) and (held := await tools.store.installed(digest)) is not None:
                return held
            await pack_pinned(registry, repository, tag_of_version(instance.desired.version), digest)
        manifest = await registry.manifest(repository, digest)
        await tools.store.download(registry, repository, manifest)
        return manifest


async def _wanted_digest(instance: Instance, registry: Registry, repository: str) -> Digest:
    """Return the pinned digest or, if there is none, the digest that is kept although the tag has moved. If there is neither,
    return the digest that the version's tag has in the registry.
    """
    if pinned := _pinned(instance):
        return Digest(pinned)
    return (await registry.resolve(repository, tag_of_version(instance.desired.version))).digest


def _pinned(instance: Instance) -> str:
    """Return the pinned digest or, if there is none, the digest that is kept although the tag has moved; "" for neither."""
    return instance.desired.directives.digest or instance.desired.directives.kept_digest


async def _fetched_before(instance: Instance, tools: Tools, kept: str) -> Manifest | None:
    """Return the manifest that an earlier process fetched before it was killed, if the package can still be unpacked. Return
    None if the manifest has to be fetched again. ``kept`` is the manifest in the journal; "" if there is none.
    """
    if not kept:
        return None
    try:
        manifest = manifest_from_fields(
            as_object(decode_json(kept.encode(), max_bytes=MAX_RESULT, what=DOWNLOAD), DOWNLOAD)
        )
        async with tools.slots.use(Kind.LOAD, instance.id.name):
            await tools.store.install(manifest)
    except (FormatError, PackageError) as error:
        log.info("%s: its earlier download cannot be used, so it is downloaded again: %s", instance.id, error)
        return None
    return manifest


def _kept(manifest: Manifest) -> str:
    """Return a manifest as a text for the journal. Return "" if the text is too large; after a crash, the manifest is then
    requested again.
    """
    text = encode_json(manifest_fields(manifest)).decode()
    return text if len(text) <= MAX_RESULT else ""


async def install(instance: Instance, tools: Tools, host: Host) -> Unpacked:
    """Unpack the downloaded version, atomically switch the package's name in the store to it, and record its digest."""
    manifest = instance.fetched()
    digest = manifest.descriptor.digest.text
    if (await instance.recorded(tools)).state.digest != digest:
        host.emit(instance, Progressed(Stage.FETCHED, "Installing", f"unpacking {digest}"))
    steps = instance.journalled()
    if steps.done(INSTALL) == digest:
        # A killed process has already deployed and recorded the version.
        there = await _unpacked(instance, tools, manifest)
        host.emit(instance, Placed())
        return Unpacked(there)
    record = await instance.recorded(tools)
    origin = f"{source_text(_source(instance))} {instance.desired.package}"
    version, wanted = instance.desired.version, instance.desired.directives

    def noted(state: PackageState) -> PackageState:
        return state.installed(origin, version, digest).heard(forced=wanted.forced, reset=wanted.reset)

    with steps.taking_if_started(INSTALL) as taken:
        tree: Path | None = None
        if noted(record.state) == record.state and not _may_return(instance, record):
            async with tools.slots.use(Kind.LOAD, instance.id.name):
                tree = await tools.store.deployed(instance.id.name, manifest)
        if tree is None:
            taken.start()
            tree = await _unpacked(instance, tools, manifest)
            await _keep_former(instance, tools)
            await tools.store.deploy(instance.id.name, manifest)
        host.emit(instance, Placed())
        if isinstance(instance.id, ModuleId):
            await _ensure_namespace(tools, instance.id.namespace)
        if wanted.reset != record.state.reset and record.state.reset:
            log.warning(
                "%s: its one-time steps and the values patches of its hooks are forgotten, as requested", instance.id
            )
        await record.update(noted)
        taken.result = digest
    return Unpacked(tree)


async def _unpacked(instance: Instance, tools: Tools, manifest: Manifest) -> Path:
    async with tools.slots.use(Kind.LOAD, instance.id.name):
        return await tools.store.install(manifest)


async def load(instance: Instance, tools: Tools, host: Host) -> VoteReported | None:
    """Read the package: its definition, its schemas and its hooks. Run its enabled script, if there is one."""
    if instance.files.tree is None:
        raise AssertionError(f"{instance.id}: Load ran before Install")
    known = tools.contents.definitions.get(_content_key(instance))
    if known is None or known.hooks:
        doing = "reading the package, and running its hooks with --config"
        host.emit(instance, Progressed(Stage.LOADED, "Loading", doing))
    async with tools.slots.use(Kind.LOAD, instance.id.name):
        try:
            told = await read_package(instance, tools, host)
        except Exception:  # otherwise users would take warnings of the earlier version for the cause
            host.emit(instance, WarnedOf("package", ()))
            host.emit(instance, WarnedOf("hooks", ()))
            raise
    host.emit(instance, WarnedOf("package", instance.loaded().warnings))
    host.emit(instance, WarnedOf("hooks", told))
    vote = await ask_enabled_script(instance, tools, host)
    instance.journalled().finish()
    return vote


async def load_stored(instance: Instance, tools: Tools, host: Host) -> None:
    """Read the installed version from the disk, without fetching or changing anything; do nothing if its files are missing."""
    state = (await instance.recorded(tools)).state
    manifest = await tools.store.installed(Digest(state.digest)) if state.digest else None
    if manifest is None:
        return
    async with tools.slots.use(Kind.LOAD, instance.id.name):
        host.emit(instance, FoundStored(manifest, await tools.store.install(manifest)))
        await read_package(instance, tools, host)


async def read_package(instance: Instance, tools: Tools, host: Host) -> tuple[str, ...]:
    """Read the definition and the hooks from the package's folder in the store, and return the warnings about the hooks.

    Raises the errors of an invalid package.
    """
    if instance.files.tree is None:
        raise AssertionError(f"{instance.id}: no version is installed")
    tree = instance.files.tree
    definition = await _definition(instance, tools, tree)
    check_kind(definition, instance.id)
    check_needs(definition, instance.id)
    told: list[str] = []
    hooks = await _discovered(instance, tools, tree, definition, told.append) if definition.hooks else ()
    for warning in told:
        log.warning("%s: %s", instance.id, warning)
    if len(told) > MAX_WARNINGS:
        told[MAX_WARNINGS:] = [f"and {len(told) - MAX_WARNINGS} more, in the daemon's log"]
    for hook in hooks:
        for number, binding in enumerate(hook.config.kubernetes):
            try:
                if binding.jq_filter:
                    await tools.filters.check(binding.jq_filter)
            except FilterError as error:
                if error.transient:
                    raise
                raise HookConfigError(hook.name, (f"kubernetes[{number}].jqFilter: {error}",)) from error
    await check_package_rules(definition, tools.rules)
    await check_conversions(definition.conversions, tools.filters.of(instance.id.name))
    host.emit(instance, PackageRead(definition, hooks))
    for gone in instance.log_budgets.keys() - {hook.name for hook in hooks}:
        del instance.log_budgets[gone]
    return tuple(told)


async def _definition(instance: Instance, tools: Tools, tree: Path) -> Definition:
    """Return the definition from the package's folder in the store. Each call returns a new object, so that the state machine
    knows that the definition was read again.
    """
    name, version, static = (
        instance.desired.package,
        instance.desired.version,
        instance.desired.directives.static_values,
    )
    key = _content_key(instance)
    known = None if static else tools.contents.definitions.get(key)
    if known is None:
        known = await trio.to_thread.run_sync(
            lambda: installed_definition(tree, instance.id, package=name, version=version, static=static)
        )
        if not static:
            tools.contents.definitions.keep(key, known)
    return replace(known)


def _content_key(instance: Instance) -> Hashable:
    """Return everything on which a definition depends, except for the values of `Directives.static_values`."""
    desired, digest = instance.desired, instance.fetched().descriptor.digest
    return digest, is_global(instance.id), desired.package, desired.version, desired.directives.static_values is None


async def _discovered(
    instance: Instance, tools: Tools, tree: Path, definition: Definition, warn: Callable[[str], None]
) -> tuple[Hook, ...]:
    return await discover_hooks(
        tree,
        definition.layout,
        tools.config_reader,
        scope=HookScope.GLOBAL if is_global(instance.id) else HookScope.PACKAGE,
        batch=definition.batch_hooks,
        environment=identity_variables(instance.id),
        webhooks=tools.webhooks is not None,
        warn=warn,
    )


async def ask_enabled_script(instance: Instance, tools: Tools, host: Host) -> VoteReported | None:
    """Run the package's own enabled script, and report its vote; a failure counts as a vote against the package (spec/runtime
    §4.2).

    The script does not run again if its last answer was for the same inputs (:mod:`~wharfinger.runtime.package.enabled_vote`).
    """
    definition, tree = instance.loaded(), instance.files.tree
    if not definition.enabled_script or tree is None:
        host.emit(instance, Voted(None, "", failed=False))
        return None
    asked_about = instance.desired.settings.checksum
    wanted = (await newest_settings(instance, tools, host)).settings
    before = host.modules_before(instance)
    host.emit(instance, ScriptAsked(before))
    ordered = definition.layout is Layout.MODULE_FOLDER
    seen = globals_for(instance.id.name, host.global_values(), before if ordered else None)
    values = hook_values(definition, seen, values_of(instance, wanted))
    config_values = hook_values(definition, host.global_settings(), wanted)
    key = vote_key(instance.fetched().descriptor.digest, instance.desired.directives, values, config_values)
    if (vote := instance.vote.kept) is None or vote.key != key:
        try:
            async with tools.slots.use(Kind.HOOK, instance.id.name):
                answer = await run_enabled_script(
                    tools.hook_runner,
                    tree,
                    values,
                    config_values,
                    masked=instance.masked,
                    credentials=tools.hook_credentials.gives(instance.isolation),
                    account=instance.account,
                )
        except HookError as error:
            host.emit(instance, Voted(None, instance.masked(str(error)), failed=True))
            return VoteReported(asked_about)
        vote = KeptVote(key, answer.enabled if answer else None, answer.reason if answer else "")
        host.emit(instance, ScriptAnswered(vote))
    host.emit(instance, Voted(vote.enabled, vote.reason, failed=False))
    return VoteReported(asked_about)


def _fingerprint(source: Source, instance: Instance) -> str:
    """Return the fingerprint of an update: a checksum of all inputs that decide which files are fetched."""
    wanted = instance.desired.directives
    asked: list[JsonValue] = [
        instance.desired.package,
        instance.desired.version,
        wanted.requested,
        wanted.forced,
        wanted.reset,
    ]
    asked += [wanted.digest] if wanted.digest else []
    return checksum([source_text(source), *asked])


def _source(instance: Instance) -> Source:
    if instance.desired.source is None:
        raise AssertionError(f"{instance.id}: Download ran before a desired state was adopted")
    return instance.desired.source


def _is_of(state: PackageState, source: Source, instance: Instance) -> bool:
    origin = f"{source_text(source)} {instance.desired.package}"
    same = state.digest and (state.source, state.version) == (origin, instance.desired.version)
    return bool(same) and instance.desired.directives.digest in ("", state.digest)


async def _ensure_namespace(tools: Tools, name: str) -> None:
    """Create the namespace of a Module if it is missing. The namespace of an Application always exists, because the
    Application is in it.
    """
    resource = await tools.cluster.resource_type("v1", "Namespace")
    try:
        await tools.cluster.get(ObjectKey(resource, "", name))
    except NotFoundError:
        body: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        with suppress(ConflictError):  # another writer has created the namespace meanwhile
            await tools.cluster.create(body)
