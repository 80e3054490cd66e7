"""The guard of dependents: it holds back removals, disables and version changes that would break them.

It is consulted in two cases. Either a package is to get another version, or it is to be removed or turned off: its object is
deleted, a Module has ``enabled: false``, or a Module has no ``enabled`` any more and the daemon's bundle does not contain it.
Another package that is on now *stands in the way* if the change would turn it off, because one of its requirements would not be
met any more: a mandatory requirement, a version constraint, an any-of group that loses its last member, or a none-of range that
the new version falls into. Then the change is **held**: no part of the change begins or is adopted, and the installed package
keeps running. The scheduler finds the packages that stand in the way by trying the change out (`Scheduler.would_break`). A
package that is off never stands in the way; a suspended package can.

=====================================  ====================  ====================================================================
what stands in the way                 reason                the hold ends when
=====================================  ====================  ====================================================================
a package that is kept                 WouldBreakDependents  it is removed or drops the requirement, or a user accepts the change
a package that is removed, too         WaitingForDependents  it is gone (dependents are removed first)
packages not loaded since the start    WaitingForDependents  each of them has been loaded, or has failed to load once
=====================================  ====================  ====================================================================

**Holds end.** A removal that has begun is never held again. Until it is complete, the packages that the removed package needs
are recorded, so that none of them is removed first. Held packages never wait for each other in a cycle, because a wait that
would close a cycle is dropped. So one of the held packages may always proceed, unless a package that is kept stands in the way.

If the namespace of a package is being deleted, the package is removed even if others need it, because its objects are being
deleted anyway. If two members of one any-of group are to be removed, the first may be removed, and counts as removed when the
second is judged. If a package cannot be loaded (because its registry is down, or its files are lost), it no longer stands in
the way of others after its first failed load, because its requirements are not known. If a package's resource cannot be acted on
(for example, a Secret is missing), the package's requirements are read from its files on disk. A change that had begun before
a restart continues. If a change was held before the restart, the package's requirements are read from its files on disk, too
(:mod:`wharfinger.runtime.controllers.installed_packages`).

**No polling.** A hold remembers the states of the packages that it depends on. Any change of a package makes the controller
reconcile the package. If its state then differs from the remembered state, the packages whose changes are held because of it
are reconciled, too. The interval LOOK_S is only a safety net.

The requirements that the new version itself has are known only after it is downloaded. If these requirements are not met, the
package is paused like any other package, and nothing is deleted. A tag that is not a version (``latest``) cannot be compared with
constraints, so a change to such a tag is never held.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from wharfinger.cluster.api.errors import ClusterError
from wharfinger.formats.json.value import JsonObject, find, find_str
from wharfinger.kube.resource import ObjectKey
from wharfinger.runtime.controllers.holds import (
    MOST_NAMED,
    Hold,
    Standing,
    is_ignoring,
    is_off_by_default,
    is_version,
    judge,
    judge_unknown,
    needs,
    reaches,
    was_being_removed,
    was_held,
)
from wharfinger.runtime.controllers.installed_packages import read_installed, suspend_as_installed
from wharfinger.runtime.core.runtime import Runtime
from wharfinger.runtime.lifecycle.journal_machine import Operation
from wharfinger.runtime.resources.identity import ModuleId, PackageId
from wharfinger.runtime.resources.resources import FINALIZER, PackageSpec, finalizers_of, is_deleting
from wharfinger.runtime.scheduler.scheduler import Broken
from wharfinger.runtime.status import transitions as statuses
from wharfinger.runtime.status.package_status import Stage, Truth
from wharfinger.runtime.status.reasons import Reason

log = logging.getLogger(__name__)

LOOK_S: Final = 60.0
"""The interval at which a held change is checked, even without an event."""
_REMOVAL: Final = "the removal"
_DISABLE: Final = "spec.enabled: false"
_DEFAULT: Final = "being off by default (spec.enabled is not set)"


class Guard:
    """The held changes of one runtime.

    ``object_of`` returns a package's resource as it was last seen; ``look`` requests a reconciliation of the package with a
    given name.
    """

    def __init__(
        self,
        runtime: Runtime,
        object_of: Callable[[str], JsonObject | None],
        look: Callable[[str], None],
        installed: Iterable[str],
    ) -> None:
        """Make a guard without held changes. ``installed`` are the packages that an earlier process has installed, at least in
        part.
        """
        self.runtime = runtime
        self.object_of = object_of
        self.look = look
        self.held: dict[str, Hold] = {}
        self._unheard = runtime.packages.unreported.unknown
        """Installed packages whose load in this process has neither succeeded nor failed yet."""
        self._unheard.update(installed)
        self._leaving: dict[str, frozenset[str]] = {}
        """The packages whose removal has begun, each with the packages that it needs until its removal is complete."""
        self._off: set[str] = set()
        """The Modules that their resource or a default turns off, and whose disable this guard has let begin."""
        ending = (Operation.REMOVAL, Operation.DISABLE)
        self._begun_before = {each.package for each in runtime.tools.journal.entries() if each.operation in ending}

    # --- admission -------------------------------------------------------------------------------------------------------

    async def prepare(self, identity: PackageId, obj: JsonObject) -> None:
        """Load the installed version of a package before this process first judges a change of the package. Raises
        ClusterError.

        Until the change is judged, the package counts as present in its installed version.
        """
        name = identity.name
        version = find_str(obj, "spec", "packageVersion") or find_str(obj, "status", "update", "chosen")
        said, bundled = (
            find(obj, "spec", "enabled"),
            isinstance(identity, ModuleId) and self.runtime.scheduler.facts.bundle,
        )
        off = said is False or bool(said is None and bundled and was_held(obj))
        same = version == find_str(obj, "status", "currentVersion", "version") and not off
        suspended = find(obj, "spec", "suspend") is True and not off
        if same or not self._is_new(name) or suspended or is_ignoring(obj):
            return
        installed = await read_installed(self.runtime, identity, obj)
        under_way = name in self._begun_before if off else installed is not None and installed.state.version == version
        if installed is not None and not under_way:
            suspend_as_installed(self.runtime, identity, obj, installed)
            self._record_known((name,))

    async def prepare_blocked(self, identity: PackageId, obj: JsonObject) -> None:
        """Load the installed version of a package whose resource cannot be acted on. Raises ClusterError.

        The package then counts as present in its installed version.
        """
        if self._is_new(identity.name):
            placed = find_str(obj, "status", "release", "namespace")
            if isinstance(identity, ModuleId) and placed:
                identity = ModuleId(identity.name, placed)
            if (installed := await read_installed(self.runtime, identity, obj)) is not None:
                suspend_as_installed(self.runtime, identity, obj, installed)
            self._record_known((identity.name,))

    def admit(self, spec: PackageSpec) -> Hold | None:
        """Return the hold on a change of a resource; None if the change may be adopted."""
        name = spec.id.name
        self._begun_before.discard(name)
        hold = None if spec.directives.ignore_dependents else self._change(spec)
        self._note(name, hold)
        if hold is None and self._wants_off(spec):
            self._off.add(name)
        else:
            self._off.discard(name)
        return hold

    async def admit_removal(self, identity: PackageId, obj: JsonObject) -> Hold | None:
        """Return the hold on a removal; None if the removal may begin, is under way, or is complete. Raises ClusterError."""
        name, runtime = identity.name, self.runtime
        if runtime.lifecycle.is_removing(name) or runtime.is_removed(name):
            return None
        hold, node = None, runtime.scheduler.node(name)
        goes_on = name in self._begun_before or was_being_removed(obj)
        if self._is_new(name):
            installed = await read_installed(runtime, identity, obj)
            node = installed.node if installed is not None else None
            if installed is not None and not goes_on:
                suspend_as_installed(runtime, identity, obj, installed)
            self._record_known((name,))
        if not goes_on and not is_ignoring(obj):
            hold = self._stopping(name, _REMOVAL)
            if hold is not None and hold.reason is Reason.WOULD_BREAK_DEPENDENTS and await self._is_taken(identity):
                log.warning(
                    "%s: its namespace is being deleted, so the package is removed although others need it: %s",
                    identity,
                    hold.message,
                )
                hold = None
        self._note(name, hold)
        if hold is None:
            self._leaving[name] = needs(node)
        return hold

    def object_gone(self, name: str) -> None:
        """Record that the resource of a package is gone. The package is then removed, even if other packages need it."""
        self._note(name, None)
        self._off.discard(name)
        self._begun_before.discard(name)
        if name in self.runtime.instances and not self.runtime.lifecycle.is_removing(name):
            self._leaving[name] = needs(self.runtime.scheduler.node(name))

    def moved(self, name: str) -> None:
        """Record that another daemon manages a package from now on. From then on, that daemon decides about the package's
        changes.
        """
        self._note(name, None)
        self._off.discard(name)
        self._begun_before.discard(name)
        if name in self._unheard:
            self._record_known((name,))

    def _change(self, spec: PackageSpec) -> Hold | None:
        name = spec.id.name
        instance = self.runtime.instances.get(name)
        if instance is None or self.runtime.lifecycle.is_removing(name):
            return None
        on = self.runtime.scheduler.enabled(name) or name in self._unheard
        if on and name not in self._off and self._wants_off(spec):
            hold = self._stopping(name, _DISABLE if spec.enabled is False else _DEFAULT)
            return hold and replace(hold, off=True)
        if spec.directives.suspended:
            return None  # the change is judged and carried out when the package is resumed
        version = instance.desired.version
        if self.runtime.lifecycle.is_suspended(name) and instance.record is not None:
            version = instance.record.state.version
        return self._becoming(name, spec.version) if version not in ("", spec.version) else None

    def _stopping(self, name: str, what: str) -> Hold | None:
        scheduler = self.runtime.scheduler
        if scheduler.node(name) is None and name not in self._unheard:
            return None  # the package was never loaded, or is not loaded any more, so no dependent can be on
        if unknown := self._unknown():
            return judge_unknown(what, unknown)
        return self._judged(name, what, scheduler.would_break(name, None), self._removed_first(name))

    def _becoming(self, name: str, version: str) -> Hold | None:
        scheduler, what = self.runtime.scheduler, f"version {version}"
        node = scheduler.node(name)
        if (node is None and name not in self._unheard) or not is_version(version):
            return None
        if unknown := self._unknown():
            return judge_unknown(what, unknown)
        if node is None:
            return None
        return self._judged(name, what, scheduler.would_break(name, replace(node, version=version)), set())

    def _judged(self, name: str, what: str, broken: Iterable[Broken], first: set[str]) -> Hold | None:
        """Return the hold on a change of a package; None if the change may begin. The hold contains the states of all packages
        whose change may end it: the packages that stand in the way, and other packages that could meet the requirements of
        the broken dependents.
        """
        going = first | {each.name for each in broken if self._is_asked(each.name)}
        broken_nodes = {each.name: self.runtime.scheduler.node(each.name) for each in broken}
        direct = {each for each, node in broken_nodes.items() if not needs(node) & broken_nodes.keys()}
        waits = self._free(first, name) or self._free(
            going, name
        )  # packages in ``going`` wait for their own dependents first
        hold = judge(what, [each for each in broken if each.name not in going], waits, direct)
        if hold is None:
            return None
        watched = hold.waits
        if hold.reason is Reason.WOULD_BREAK_DEPENDENTS:
            around = {each for node in broken_nodes.values() if node is not None for each in node.names()}
            watched = (watched | broken_nodes.keys() | around) - {name}
        return replace(hold, seen={each: self._standing(each) for each in watched})

    def _removed_first(self, name: str) -> set[str]:
        """Return the packages that need ``name`` and that either are being removed or disabled, or are to be removed or
        disabled according to their resources.
        """
        self._leaving = {
            each: needed for each, needed in self._leaving.items() if self.runtime.lifecycle.is_removing(each)
        }
        going = {each for each, needed in self._leaving.items() if name in needed}
        for each in self.runtime.scheduler.dependents(name):
            leaves = self._is_asked(each) or self._is_uninstalling(each)
            if leaves and name in needs(self.runtime.scheduler.node(each)):
                going.add(each)
        return going

    async def _is_taken(self, identity: PackageId) -> bool:
        """Return whether the namespace of the package's release is being deleted, so that the package is lost even if its
        removal is held.
        """
        cluster = self.runtime.tools.cluster
        try:
            resource = await cluster.resource_type("v1", "Namespace")
            return is_deleting(await cluster.get(ObjectKey(resource, "", identity.namespace)))
        except ClusterError as error:
            if error.transient:
                raise
            return False

    def _free(self, going: Iterable[str], name: str) -> set[str]:
        """Return ``going`` without the packages that wait for ``name`` themselves: if two packages wait for each other, one
        of them has to be removed first.
        """
        waits = {each: hold.waits for each, hold in self.held.items()}
        return {each for each in going if not reaches(waits, each, name)}

    # --- what is known of other packages ---------------------------------------------------------------------------------

    def _is_new(self, name: str) -> bool:
        return name in self._unheard and name not in self.runtime.instances

    def _is_asked(self, name: str) -> bool:
        """Return whether a package's resource is being deleted, or asks to switch the package off while it is on."""
        obj = self.object_of(name)
        said, scheduler = find(obj, "spec", "enabled"), self.runtime.scheduler
        off = said is False or (said is None and is_off_by_default(scheduler.node(name), scheduler.facts))
        return obj is not None and (is_deleting(obj) or (off and scheduler.enabled(name)))

    def _wants_off(self, spec: PackageSpec) -> bool:
        """Return whether a Module is to be off, by ``spec.enabled`` of its resource, or by default if that is not set."""
        if spec.enabled is None:
            scheduler = self.runtime.scheduler
            return is_off_by_default(scheduler.node(spec.id.name), scheduler.facts)
        return not spec.enabled

    def _is_uninstalling(self, name: str) -> bool:
        """Return whether a Disable is uninstalling the package, and the package's status does not report yet that nothing of it
        is left.
        """
        instance = self.runtime.instances.get(name)
        return bool(instance and instance.node.disabling and instance.node.disabling[1] and instance.status.version)

    def _standing(self, name: str) -> Standing:
        scheduler = self.runtime.scheduler
        going = self.runtime.lifecycle.is_removing(name) or self._is_uninstalling(name)
        return Standing(scheduler.node(name), scheduler.decision(name), going, self._is_asked(name))

    def _unknown(self) -> set[str]:
        """Return the installed packages whose requirements are not known yet."""
        self._record_known([each for each in self._unheard if self._is_known(each)])
        return self._unheard

    def _is_known(self, name: str) -> bool:
        """Return True if a package was loaded, cannot be loaded, or is gone, so that no change waits until it is loaded."""
        obj, instance = self.object_of(name), self.runtime.instances.get(name)
        if obj is None or (is_deleting(obj) and FINALIZER not in finalizers_of(obj)):
            return True
        if instance is None:
            return False
        early = (instance.status.stages[stage].truth for stage in (Stage.FETCHED, Stage.LOADED))
        if instance.files.loaded_once or instance.status.blocked is not None or Truth.FALSE in early:
            return True
        # A suspended package is loaded at most once, when its files are found.
        return self.runtime.lifecycle.is_suspended(name) and not self.runtime.queues.dump_one(name).tasks

    # --- waking ----------------------------------------------------------------------------------------------------------

    def _note(self, name: str, hold: Hold | None) -> None:
        if hold is None:
            self.held.pop(name, None)
        else:
            self.held[name] = hold

    def _record_known(self, names: Iterable[str]) -> None:
        """Record that these packages are known now, and reconcile the packages whose changes are held because others are
        unknown.

        While many packages are unknown, the held packages are reconciled only each time that the number of unknown packages
        has about halved. When few are unknown, the held packages are reconciled each time that one of them becomes known,
        because the message of the hold lists the unknown packages by name.
        """
        before = len(self._unheard)
        self.runtime.packages.mark_known(names)
        left = len(self._unheard)
        if left < before and (left <= MOST_NAMED or left.bit_length() < before.bit_length()):
            for each in sorted(each for each, hold in self.held.items() if hold.unknown):
                self.look(each)

    def reconciled(self, name: str) -> None:
        """Record that a package was reconciled. If its state has changed, reconcile the packages whose changes are held because
        of this package.
        """
        if name in self._unheard and self._is_known(name):
            self._record_known((name,))
        held_for = [each for each, hold in self.held.items() if name in hold.seen]
        if held_for:
            standing = self._standing(name)
            for each in sorted(each for each in held_for if self.held[each].seen[name] != standing):
                self.look(each)

    # --- status ----------------------------------------------------------------------------------------------------------

    def report_held_removal(self, name: str, generation: int, hold: Hold) -> None:
        """Report in a package's status why its removal is held; ``generation`` is that of the resource to delete."""
        instance = self.runtime.instances.get(name)
        if instance is not None and name not in self._unheard:  # an unknown package keeps its earlier status
            now = self.runtime.now()
            status = statuses.removal_held(instance.status, generation, hold.reason, hold.message, now)
            self.runtime.set_status(instance, status)

    def report_hold(self, spec: PackageSpec, hold: Hold) -> None:
        """Report why no part of a resource's change is adopted.

        If the hold only waits until other packages are known, and this process has not adopted a desired state of the package
        yet, the hold is reported as progress, not as a failure.
        """
        name, instance = spec.id.name, self.runtime.instances.get(spec.id.name)
        if instance is None or name in self._unheard:
            return
        if hold.unknown and instance.desired.source is None:
            now = self.runtime.now()
            status = statuses.progressing(instance.status, Stage.FETCHED, hold.reason, hold.message, now)
            self.runtime.set_status(instance, status)
        else:
            self.runtime.block(spec.id, spec.generation, spec.status, hold.reason, hold.message)
