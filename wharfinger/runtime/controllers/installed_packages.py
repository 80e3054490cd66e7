"""The installed packages, read from disk before changes of them are judged.

A process that starts may find packages with changed resources: they were deleted, disabled, or set to another version while no
daemon was running, or the earlier daemon held the change (:mod:`wharfinger.runtime.controllers.guard`). Dependents of such a
package would be switched off if it were not a node of the scheduler.

So the package becomes a node of the scheduler in its installed version, with its definition from the store. It is treated as
suspended: nothing is downloaded for it, and neither its tasks nor its hooks run. If it was ever installed completely, its
dependents may run, as if this process had run it.

Then the guard can judge the change. If the change is held, the package runs again in its installed version, provided that no
other field of its resource has changed since the last apply; otherwise the package stays suspended.
"""

import logging
from contextlib import suppress
from dataclasses import dataclass, replace

import trio

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.cluster.records.release import ReleaseRecordError
from wharfinger.formats.json.value import JsonObject, find_int, find_object
from wharfinger.packages.definition.definition import read_definition
from wharfinger.packages.digest import Digest
from wharfinger.packages.sources.source import FolderSource, Source, source_text
from wharfinger.queue.slots_machine import Kind
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.lifecycle.desired_state import DesiredState
from wharfinger.runtime.lifecycle.package_state import PackageState, StateRecord
from wharfinger.runtime.lifecycle.steps import fingerprint
from wharfinger.runtime.package.findings import FoundInstalled
from wharfinger.runtime.package.instance import Instance
from wharfinger.runtime.resources.identity import AppId, ModuleId, PackageId
from wharfinger.runtime.resources.lookup import Lookup, RepositoryUnusableError
from wharfinger.runtime.resources.resources import Directives, PackageSpec, SpecError, read_application, read_module
from wharfinger.runtime.resources.settings import ResolvedSettings, SettingsSourceError
from wharfinger.runtime.scheduler.events import IntentSet, NodeAdded, ScriptVoted
from wharfinger.runtime.scheduler.graph import CycleError, Node
from wharfinger.runtime.scheduler.package_node import node_of
from wharfinger.runtime.status.failures import EXPECTED

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """An installed package, as it was read from disk."""

    record: StateRecord
    node: Node

    @property
    def state(self) -> PackageState:
        """The recorded state of the package."""
        return self.record.state


async def read_installed(runtime: Runtime, identity: PackageId, obj: JsonObject) -> InstalledPackage | None:
    """Read the installed package of the resource ``obj``; return None if its files are lost or cannot be read.

    Raises ClusterError if a retry may help.
    """
    try:
        record = await runtime.tools.states.record(runtime.tools.cluster, identity)
        with suppress(ReleaseRecordError):  # the release records are not needed to know what is installed
            record.compare(await runtime.tools.releases.history(identity.release, identity.namespace))
        state = record.state
        manifest = await runtime.tools.store.installed(Digest(state.digest)) if state.digest else None
        if manifest is None:
            return None
        async with runtime.tools.slots.use(Kind.LOAD, identity.name):
            tree = await runtime.tools.store.install(manifest)
            package = state.source.rpartition(" ")[2]
            definition = await trio.to_thread.run_sync(
                lambda: read_definition(tree, name=package, version=state.version)
            )
    except EXPECTED as error:
        if isinstance(error, ClusterError) and error.transient:
            raise
        log.warning("%s: its requirements are not known: %s", identity, error)
        return None
    return InstalledPackage(record, node_of(identity, definition, _directives(identity, obj)))


def _directives(identity: PackageId, obj: JsonObject) -> Directives:
    try:
        spec = read_application(obj) if isinstance(identity, AppId) else read_module(obj)
    except SpecError:
        return Directives()
    return spec.directives


def suspend_as_installed(runtime: Runtime, identity: PackageId, obj: JsonObject, installed: InstalledPackage) -> None:
    """Add the package to the scheduler in its installed version, as if it were suspended. ``obj`` is its resource."""
    name, state = identity.name, installed.state
    version, package = state.version, state.source.rpartition(" ")[2]
    runtime.lifecycle.reconcile(name, DesiredState("", package, version, "", suspended=True))
    written = find_object(obj, "status")
    instance = runtime.restored(identity, find_int(written, "observedGeneration"), written)
    instance.know_record(installed.record)
    runtime.packages.emit(instance, FoundInstalled(package, version, Directives(suspended=True)))
    if isinstance(identity, ModuleId):
        runtime.packages.send(IntentSet(name, enabled=True))
    try:
        runtime.packages.send(NodeAdded(installed.node))
    except CycleError as error:
        log.warning("%s: %s", identity, error)
    runtime.packages.send(ScriptVoted(name, None))


class IdlePackages:
    """The packages that `suspend_as_installed` has added to the scheduler. `run_as_installed` runs such a package again, in its
    installed version, while a change of it is held.
    """

    def __init__(self, runtime: Runtime, lookup: Lookup) -> None:
        self.runtime = runtime
        self.lookup = lookup
        self._said: dict[str, str] = {}

    def run_as_installed(self, spec: PackageSpec) -> None:
        """Run the installed version of a package while a change of the package is held back, if everything that the run needs
        is known.

        ``spec`` is the package's resource as it was read. Its package and version are replaced with the installed ones, and
        ``enabled: false`` is ignored.
        """
        instance = self.runtime.instances.get(spec.id.name)
        if (
            instance is None
            or instance.desired.source is not None
            or instance.record is None
            or spec.directives.suspended
        ):
            return
        try:
            found = self.lookup.of(spec)
        except (SettingsSourceError, RepositoryUnusableError) as error:
            self._say(instance, str(error))
            return
        if found is None:
            return
        source, settings = found
        if not _is_as_applied(instance, instance.record.state, spec, source, settings):
            self._say(instance, "its resource has, or may have, other changes besides the held change")
            return
        self._said.pop(spec.id.name, None)
        enabled = None if spec.enabled is None else True
        generation = instance.status.generation
        kept = replace(
            spec,
            generation=generation,
            package=instance.desired.package,
            version=instance.desired.version,
            enabled=enabled,
        )
        (self.runtime.update_app if isinstance(spec.id, AppId) else self.runtime.update_module)(kept, source, settings)

    def _say(self, instance: Instance, why: str) -> None:
        """Log why the package stays idle, but only once for each reason, because every reconciliation finds the reason again."""
        if self._said.get(instance.id.name) != why:
            self._said[instance.id.name] = why
            log.info("%s: the package stays installed, but does not run: %s", instance.id, why)


def _is_as_applied(
    instance: Instance, state: PackageState, spec: PackageSpec, source: Source, settings: ResolvedSettings
) -> bool:
    """Return whether the requested state equals the state that was applied last, apart from the change that is held.

    The result is always False for a package from a folder, because the folder's content at the last apply is not known.
    """
    applied = fingerprint(state.digest, spec.id.namespace, settings, spec.directives)
    origin = f"{source_text(source)} {instance.desired.package}"
    return not isinstance(source, FolderSource) and origin == state.source and state.is_of(applied)
